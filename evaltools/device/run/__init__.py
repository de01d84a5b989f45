"""Runs of a request on devices: which devices, which parts, and what comes of them."""
