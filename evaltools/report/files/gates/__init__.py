"""The verdicts of gates as files for CI."""
