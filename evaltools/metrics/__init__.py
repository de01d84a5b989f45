"""Numbers: pure functions of arrays, and frozen structs that hold their results.

A new metric is one file here; the task that wants it calls it.
"""
