"""Delegates that do harm cost their own configuration, are told, and leave nothing; ``table`` has all moments."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.example_delegate import CompilerMissing
from tests.hostile.harm import Cell, build_hostile_delegate, problems, run_cell

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="other platforms do not tell what a process left"),
]
CELLS = [
    ("load", "group"),
    ("create", "refuse"),
    ("create", "fork"),
    ("prepare", "close"),
    ("allocate", "setsid"),
    ("first", "stdout"),
    ("first", "junk"),
    ("first", "child"),
    ("later", "abort"),
    ("between", "length"),
    ("free", "hang"),
    ("destroy", "segv"),
    ("exit", "abort"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build_hostile_delegate(tmp_path_factory.mktemp("hostile_delegate"))
    except CompilerMissing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def undisturbed(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Cell:
    return run_cell(library, "never", "sleep", tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize(("moment", "misbehaviour"), CELLS)
def test_harm_is_told_and_costs_nobody_else_anything(
    library: Path, undisturbed: Cell, moment: str, misbehaviour: str, tmp_path: Path
) -> None:
    cell = run_cell(library, moment, misbehaviour, tmp_path)
    assert list(problems(cell, undisturbed)) == [], cell.errors
