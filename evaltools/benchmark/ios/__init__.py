"""Benchmarks by the app for iOS, which has no command line: its file of flags, and what it prints."""
