"""Runs that stop as soon as a limit is decided, on examples that are drawn where changes are expected."""
