"""Verdicts as sentences."""
