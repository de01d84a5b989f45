"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import evaltools
import evaltools.datasets
import evaltools.tasks


def module_names() -> list[str]:
    names = []
    for package in (evaltools, evaltools.datasets, evaltools.tasks):
        names += [found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return sorted(set(names) - {"evaltools.cli.main"})


@pytest.mark.parametrize("name", module_names())
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_modules_of_every_room_are_found() -> None:
    rooms = {name.split(".")[1] for name in module_names()}
    assert {
        "cli",
        "datasets",
        "delegates",
        "engine",
        "metrics",
        "model",
        "preprocess",
        "report",
        "runtime",
        "tasks",
    } <= rooms
