"""Packages are found: ``tasks/`` and ``datasets/`` are installed inside ``evaltools``."""

from setuptools import find_packages, setup

setup(
    packages=find_packages(include=["evaltools*"])
    + [f"evaltools.{name}" for name in find_packages(include=["tasks*", "datasets*"])],
)
