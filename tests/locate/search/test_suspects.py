"""Faults that only show where operators run together, and suspects behind others, by a bench that is made up."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from evaltools.locate.parts.part import Part
from evaltools.locate.search.assemble import verdict
from evaltools.locate.search.findings import Found
from evaltools.model.cut import CuttableModel
from tests import locate_models
from tests.locate.search.made_up import RUNS, searched

PLACES = CuttableModel(locate_models.net()).makers


def last_suspect(tmp_path: Path, behind: float, fed: float = 0.1) -> Found:
    """Operators 6 and 7 are wrong alone by 0.1; ``behind`` is the error of 7 on what 6 gave, off by ``fed``."""

    def spoil(part: Part, tensor: int) -> float:
        if part.as_fed:
            return behind if PLACES[tensor] == part.last else fed
        return 0.1 if PLACES[tensor] >= 6 else 0.0

    found, _ = searched(tmp_path, spoil=spoil)
    first, last = found.culprits if found.culprits[0].place == 6 else found.culprits[::-1]
    assert (first.place, first.status, last.place) == (6, "confirmed", 7)
    return last


def test_it_is_confirmed_where_it_is_wrong_for_what_it_was_fed(tmp_path: Path) -> None:
    found = last_suspect(tmp_path, 0.1)
    assert found.status == "confirmed"
    assert [(each.method, each.part, each.beyond) for each in found.evidence] == [
        ("single", "7", RUNS), ("as fed", "4-7", RUNS),
    ]  # fmt: skip


def test_it_is_neither_confirmed_nor_cleared_where_it_is_right_for_that(tmp_path: Path) -> None:
    found = last_suspect(tmp_path, 0.0)
    assert found.status == "not confirmed"
    assert [each.method for each in found.evidence] == ["single"]


@pytest.mark.parametrize("fed", [1e7, math.inf])
def test_what_is_fed_far_larger_values_may_be_off_as_much_more(tmp_path: Path, fed: float) -> None:
    assert last_suspect(tmp_path, 0.1, fed).status == "not confirmed"


def length(part: Part) -> int:
    return part.last - part.first + 1


@pytest.mark.parametrize("least", [2, 3, 8])
def test_a_crash_of_several_operators_is_the_smallest_part_that_dies(tmp_path: Path, least: int) -> None:
    found, model = searched(tmp_path, dies=lambda part: length(part) >= least)
    (culprit,) = found.culprits
    assert (culprit.last - culprit.first + 1, culprit.status) == (least, "crashes in context")
    assert verdict(found, model).kind == "crash"


@pytest.mark.parametrize("place", [0, 3, 5])
def test_a_fault_in_long_parts_is_named_where_copies_show_it_first(tmp_path: Path, place: int) -> None:
    """The operator is wrong in parts of six and more, and so is what comes behind it."""
    made_by = CuttableModel(locate_models.net()).makers

    def spoil(part: Part, tensor: int) -> float:
        spoilt = length(part) >= 6 and part.first <= place <= part.last
        return 0.1 if spoilt and made_by[tensor] >= place else 0.0

    found, model = searched(tmp_path, spoil=spoil)
    assert verdict(found, model).kind == "fault in context"
    assert verdict(found, model).operators == (place,)
