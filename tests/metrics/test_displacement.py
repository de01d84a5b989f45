"""Tensors moved by one place or mirrored, made with NumPy's own functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaltools.metrics.patterns import displacement

PICTURE = np.random.default_rng(5).integers(0, 20, (1, 12, 9, 4)).astype(np.float64)


def moved(values: Any) -> str:
    return displacement(np.asarray(values).ravel(), PICTURE.ravel(), PICTURE.shape)


@pytest.mark.parametrize("axis", [None, 1, 2, 3])
@pytest.mark.parametrize("step", [1, -1])
def test_one_place_further_in_any_axis_is_found(axis: int | None, step: int) -> None:
    assert moved(np.roll(PICTURE, step, axis=axis)) == "exact"


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_a_mirrored_axis_is_found(axis: int) -> None:
    assert moved(np.flip(PICTURE, axis)) == "exact"


def test_with_noise_it_is_nearly_so() -> None:
    noise = np.random.default_rng(6).normal(0, 0.1, PICTURE.shape)
    assert moved(np.roll(PICTURE, 1, axis=2) + noise) == "near"


def test_other_differences_are_none() -> None:
    random = np.random.default_rng(7)
    for other in (PICTURE, PICTURE + 1, -PICTURE, PICTURE * 0, PICTURE + random.normal(0, 1, PICTURE.shape)):
        assert moved(other) == "none"


def test_few_elements_may_be_their_neighbours_by_chance() -> None:
    peak = np.zeros(100)
    peak[50] = 200
    assert displacement(np.roll(peak, 1), peak, (100,)) == "none"


def test_one_row_that_is_another_is_no_displacement() -> None:
    rows = np.random.default_rng(8).integers(0, 20, (2, 16)).astype(np.float64)
    changed = rows.copy()
    changed[1] = rows[0]
    assert displacement(changed.ravel(), rows.ravel(), (2, 16)) == "none"
