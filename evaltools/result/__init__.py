"""The typed result: what was measured and what was concluded, its schema, reading and writing."""
