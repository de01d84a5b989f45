"""Losses of examples: their mean is the change of the figure, and their limit that on the figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pytest

from evaltools.engine.task import Example
from evaltools.gates.criteria import parse_criterion
from evaltools.tasks.shared.sampled.figure import DrawnFigure

Row = tuple[float, float]
Seen = TypeVar("Seen")
REFERENCE: list[Row] = [(3, 4), (0, 0), (1, 2), (10, 10)]
TEST: list[Row] = [(1, 4), (0, 0), (2, 2), (9, 10)]


def numbered(values: Sequence[Seen]) -> list[tuple[Example, Seen]]:
    return [(Example(number, str(number)), value) for number, value in enumerate(values)]


def share(_example: Example, _reference: Row, own: Row) -> float | None:
    return own[0] / own[1] if own[1] else None


def whole(_example: Example, reference: Row) -> float:
    return reference[1]


def test_the_mean_loss_of_a_share_is_its_drop() -> None:
    figure = DrawnFigure(share, size=whole)
    own = figure.of_reference(numbered(REFERENCE))
    assert own.mean == 14 / 16
    losses = [
        figure.loss(own, number, share(Example(number, ""), REFERENCE[number], row)) for number, row in enumerate(TEST)
    ]
    assert np.mean(losses) == pytest.approx(14 / 16 - 12 / 16)
    known = figure.known(own, float(np.mean(losses)), 0.0, 0.25)
    assert (known.reference, known.value, known.low, known.high) == pytest.approx((14 / 16, 12 / 16, 10 / 16, 14 / 16))
    low, high = figure.bounds(own)
    assert ((low <= losses) & (losses <= high)).all()
    assert math.isnan(figure.loss(own, 0, None))


@pytest.mark.parametrize("limit", ["error rise <= 0.5", "error <= 2.25"])
def test_a_limit_on_an_error_is_one_on_the_mean_loss(limit: str) -> None:
    """The errors 1 and 2 become 2 and 3.5: a rise of 1.25 from 1.5."""
    figure = DrawnFigure[float](lambda _example, _reference, own: own, lowest=0.0, highest=10.0, lower_is_better=True)
    own = figure.of_reference(numbered([1.0, 2.0]))
    losses = [figure.loss(own, 0, 2.0), figure.loss(own, 1, 3.5)]
    assert np.mean(losses) == pytest.approx(0.125)
    most = figure.limits(own, parse_criterion(limit, of_own_task=True)).mean()
    assert most == pytest.approx({"error rise <= 0.5": 0.05, "error <= 2.25": 0.075}[limit])
    known = figure.known(own, 0.125, 0.0, 0.25)
    assert (known.value, known.low, known.high) == pytest.approx((2.75, 1.5, 4.0))
