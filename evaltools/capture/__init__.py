"""Traces of what runs now: models of the user's own in this process, and runs in others."""
