"""Passes over drawn examples: the reference runs all, the tests those that are drawn, until all is decided."""
