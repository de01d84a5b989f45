"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import linecache
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


def room_of(name: str) -> str:
    return name.split(".")[1]


@pytest.mark.parametrize("room", sorted(set(map(room_of, module_names()))))
def test_examples(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The debugger that doctest makes for every example looks whether any module's file has changed: half of the time.
    monkeypatch.setattr(linecache, "checkcache", lambda _filename=None: None)
    modules = [importlib.import_module(name) for name in module_names() if room_of(name) == room]
    results = {each.__name__: doctest.testmod(each, optionflags=doctest.NORMALIZE_WHITESPACE) for each in modules}
    assert [name for name, result in results.items() if result.failed] == []
