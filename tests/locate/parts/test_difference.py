"""Errors to one side, with the figures of rules for rounding that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.locate.parts.difference import HALVES, ONE_SIDED, one_sided

Array = npt.NDArray[Any]

SUMS = np.add.outer(np.arange(-128, 128), np.arange(-128, 128))
"""Of all pairs of bytes; half of them are odd, so that their half lies in the middle between two whole numbers."""


def halved(rule: str) -> Array:
    """The mean of each pair, as a byte."""
    exact = SUMS / 2
    rules: dict[str, Array] = {
        "even": np.rint(exact),
        "up": np.floor(exact + 0.5),
        "away": np.trunc(exact + np.copysign(0.5, exact)),
        "cut off": np.floor(exact),
    }
    stored: Array = np.clip(rules[rule], -128, 127).astype(np.int8)
    return stored


@pytest.mark.parametrize("one", ["even", "up", "away"])
@pytest.mark.parametrize("other", ["even", "up", "away"])
def test_rules_for_halves_stay_within_a_quarter(one: str, other: str) -> None:
    assert abs(one_sided(halved(one), halved(other))) <= HALVES + 0.002


def test_results_that_are_cut_off_are_half_a_step_too_small() -> None:
    exact = np.random.default_rng(1).uniform(-128, 127, 20000)
    cut, nearest = np.floor(exact).astype(np.int8), np.rint(exact).astype(np.int8)
    assert one_sided(cut, nearest) == pytest.approx(-0.5, abs=0.02)
    assert abs(one_sided(cut, nearest)) > ONE_SIDED


def test_one_value_that_fills_a_tensor_counts_once() -> None:
    """Each of 9 000 elements of 10 000 is a step off, but they are one value of 201."""
    reference = np.concatenate([np.zeros(9000), np.tile(np.arange(-100, 101), 5)[:1000]]).astype(np.int8)
    assert one_sided(reference + (reference == 0).astype(np.int8), reference) < 0.01


def test_errors_to_both_sides_and_steps_in_some_places_are_not_to_one_side() -> None:
    random = np.random.default_rng(2)
    reference = random.integers(-100, 100, 5000).astype(np.int8)
    assert abs(one_sided(reference + random.integers(-1, 2, 5000).astype(np.int8), reference)) < ONE_SIDED / 4
    third = (random.random(5000) < 0.33).astype(np.int8)
    assert one_sided(reference + third, reference) < ONE_SIDED


@pytest.mark.parametrize(("count", "is_seen"), [(8, False), (12, True)])
def test_few_values_need_to_be_off_all_together(count: int, is_seen: bool) -> None:
    reference = np.arange(count, dtype=np.uint8)
    assert (one_sided(reference + np.uint8(1), reference) > ONE_SIDED) == is_seen
    most = np.arange(count) < count * 2 // 3
    assert one_sided(reference + most.astype(np.uint8), reference) < ONE_SIDED


def test_sixteen_bits_have_no_side() -> None:
    reference = np.arange(-100, 100, dtype=np.int16)
    assert one_sided(reference + np.int16(1), reference) == 0


def test_arrays_of_other_shapes_and_without_elements() -> None:
    assert one_sided(np.zeros(3, np.int8), np.zeros(4, np.int8)) == 0
    assert one_sided(np.zeros(0, np.int8), np.zeros(0, np.int8)) == 0
