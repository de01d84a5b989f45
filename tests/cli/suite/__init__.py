"""Tests of the command ``evaltools suite``."""
