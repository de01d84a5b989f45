"""Timings of evaltools beside the limit that the runtime sets."""
