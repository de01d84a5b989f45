"""Measures the speed of a model with a configuration, in a process of its own."""
