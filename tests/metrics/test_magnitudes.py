"""Percentiles from counts against NumPy's over the values themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.metrics.magnitudes import count_magnitudes, merge_magnitudes

PERCENTS = (1, 10, 50, 90, 99, 100)


def exact(values: npt.NDArray[np.integer[Any]] | npt.NDArray[np.floating[Any]], percent: float) -> float:
    return float(np.percentile(values, percent, method="inverted_cdf"))


def test_percentiles_of_real_magnitudes_are_within_04_percent() -> None:
    values = 10.0 ** np.random.default_rng(1).uniform(-30, 30, 5000)
    counted = count_magnitudes(values, whole=False)
    for percent in PERCENTS:
        assert counted.percentile(percent) == pytest.approx(exact(values, percent), rel=0.004)


def test_percentiles_of_whole_magnitudes_are_exact() -> None:
    values = np.random.default_rng(2).geometric(0.01, 999) - 1
    counted = count_magnitudes(values, whole=True)
    assert [counted.percentile(percent) for percent in PERCENTS] == [exact(values, percent) for percent in PERCENTS]


def test_the_rank_is_that_of_the_smallest_value_that_covers_the_share() -> None:
    counted = count_magnitudes(np.array([7, 0, 0, 0]), whole=True)
    assert (counted.percentile(75), counted.percentile(75.1)) == (0.0, 7.0)


@pytest.mark.parametrize("whole", [True, False])
def test_merging_equals_counting_everything_at_once(whole: bool) -> None:
    random = np.random.default_rng(3)
    chunks: list[npt.NDArray[np.float64]] = [random.integers(0, 500, size).astype(np.float64) for size in (100, 1, 0)]
    chunks.append(random.integers(400, 900, 57).astype(np.float64))
    merged = merge_magnitudes(count_magnitudes(chunk, whole) for chunk in chunks)
    everything = count_magnitudes(np.concatenate(chunks), whole)
    assert int(merged.counts.sum()) == 158
    assert sorted(zip(merged.bins.tolist(), merged.counts.tolist(), strict=True)) == sorted(
        zip(everything.bins.tolist(), everything.counts.tolist(), strict=True)
    )
    assert [merged.percentile(percent) for percent in PERCENTS] == [everything.percentile(p) for p in PERCENTS]


def test_an_empty_part_does_not_say_what_the_others_count() -> None:
    parts = [count_magnitudes(np.empty(0), whole=False), count_magnitudes(np.array([3, 3, 5]), whole=True)]
    assert merge_magnitudes(parts).percentile(50) == 3.0
    assert merge_magnitudes(reversed(parts)).percentile(50) == 3.0


def test_nothing_has_no_percentile() -> None:
    assert math.isnan(merge_magnitudes([]).percentile(50))
    assert math.isnan(count_magnitudes(np.empty((0, 4)), whole=False).percentile(50))
