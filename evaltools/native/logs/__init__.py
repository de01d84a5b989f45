"""Logs and messages of the native tools, read."""
