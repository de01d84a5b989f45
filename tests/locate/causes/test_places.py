"""Values that are wrong at the border, in the last lanes or in few channels alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.locate.causes.table import find_causes
from tests.locate.causes import models
from tests.locate.causes.cases import Array, case, model, random

NOISE = random((1, 12, 12, 8), 7)


def test_errors_at_the_border(tmp_path: Path) -> None:
    content, inputs = models.conv()

    def fault(expected: Array) -> Array:
        given = np.add(expected, NOISE)
        given[:, 1:-1, 1:-1] = expected[:, 1:-1, 1:-1]
        return given

    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, fault))
    assert cause.name == "wrong at the border"
    assert "44 of 144 pixels of 12 x 12 are wrong, each within 1 of the border" in cause.shown_by
    assert "(top, bottom, left, right); the 100 pixels inside are right" in cause.shown_by


def test_errors_at_one_side(tmp_path: Path) -> None:
    content, inputs = models.conv()

    def fault(expected: Array) -> Array:
        given = expected.copy()
        given[:, -1] = np.add(expected, NOISE)[:, -1]
        return given

    assert "(bottom)" in find_causes(case(tmp_path, "CONV_2D", content, inputs, fault))[0].shown_by


def test_one_pixel_inside_is_no_border(tmp_path: Path) -> None:
    content, inputs = models.conv()

    def fault(expected: Array) -> Array:
        given = np.add(expected, NOISE)
        given[:, 1:-1, 1:-1] = expected[:, 1:-1, 1:-1]
        given[:, 6, 6] += 1
        return given

    assert not find_causes(case(tmp_path, "CONV_2D", content, inputs, fault))


def test_errors_in_the_last_lanes(tmp_path: Path) -> None:
    values = random((10, 35), 1)
    content, inputs = models.unary("TANH", values)

    def fault(expected: Array) -> Array:
        given = expected.copy()
        given[:, 32:] = random((10, 3), 2)
        return given

    (cause,) = find_causes(case(tmp_path, "TANH", content, inputs, fault))
    assert cause.name == "wrong in the last lanes"
    assert "in the last 3 of 35 channels of the last dimension; 35 divided by 16 leaves 3" in cause.shown_by


def test_errors_in_the_last_elements_of_the_tensor(tmp_path: Path) -> None:
    content, inputs = models.unary("TANH", random((1, 9, 7, 3), 1))

    def fault(expected: Array) -> Array:
        given = expected.copy()
        given.reshape(-1)[-5:] = random((5,), 2)
        return given

    (cause,) = find_causes(case(tmp_path, "TANH", content, inputs, fault))
    assert "in the last 5 of 189 elements of the tensor; 189 divided by 16" not in cause.shown_by
    assert "in the last 5 of 189 elements of the tensor" in cause.shown_by


def test_errors_in_few_channels(tmp_path: Path) -> None:
    content, inputs = models.conv()

    def fault(expected: Array) -> Array:
        given = expected.copy()
        given[..., [1, 4]] = NOISE[..., [1, 4]]
        return given

    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, fault))
    assert cause.name == "wrong in few channels"
    assert "all 288 wrong values lie in 2 of 8 channels: 1, 4" in cause.shown_by


def test_a_few_errors_are_in_few_channels_by_chance(tmp_path: Path) -> None:
    values = random((10, 20), 1)
    content = model("TANH", [values], (10, 20))

    def fault(expected: Array) -> Array:
        given = expected.copy()
        given[[2, 5, 8], [1, 7, 11]] += 1
        return given

    assert not find_causes(case(tmp_path, "TANH", content, [values], fault))


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        (1, 0, "has 1 row further down;"),
        (-1, 1, "1 row further up and 1 column further to the right"),
        (0, -2, "has 2 columns further to the left;"),
    ],
)
def test_all_values_one_or_two_pixels_away(tmp_path: Path, rows: int, columns: int, words: str) -> None:
    """At the border, where they come from outside, there are others."""
    content, inputs = models.conv()

    def fault(expected: Array) -> Array:
        filled = np.pad(expected, [(0, 0), (2, 2), (2, 2), (0, 0)], constant_values=9)
        return filled[:, 2 + rows : 14 + rows, 2 + columns : 14 + columns]

    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, fault))
    assert cause.name == "moved by pixels"
    assert words in cause.shown_by
