"""Judges what was measured: verdicts with reasons, and limits that the user sets."""
