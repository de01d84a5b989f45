"""Measures whether a TensorFlow Lite delegate does the same job as the CPU."""
