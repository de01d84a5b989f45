"""Faults that only show where many operators run together: a bench that is made up stands for such a delegate."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.locate.parts.part import Part
from evaltools.locate.search.assemble import verdict
from evaltools.model.cut import CuttableModel
from tests import locate_models
from tests.locate.search.made_up import searched


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
