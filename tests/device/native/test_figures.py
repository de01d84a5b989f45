"""Figures of the parts of a native run add up to those of the whole."""

from __future__ import annotations

import random

import numpy as np
import pytest

from evaltools.device.native.figures import (
    NOTHING_TIMED,
    as_latency,
    merge_classifiers,
    whole_counts,
)
from evaltools.errors import DataError
from evaltools.metrics.latency import summarise_latency
from evaltools.native.logs.run import ClassifierFigures, NativeLatency
from tests.results import topk_of


def summed_up(times_us: list[int], with_std: bool = True) -> NativeLatency:
    """As a native tool gives them."""
    found = summarise_latency(times_us)
    std_us = found.std_us if with_std else None
    return NativeLatency(found.count, found.last_us, found.min_us, found.max_us, found.sum_us, found.avg_us, std_us)


def figures(ranks: list[int | None], times_us: list[int]) -> ClassifierFigures:
    accuracies = tuple(float(np.float32(share)) for share in topk_of(ranks, 10).accuracies)
    return ClassifierFigures(len(ranks), summed_up(times_us, with_std=False), summed_up(times_us), accuracies)


@pytest.mark.parametrize("seed", range(60))
def test_parts_give_what_one_run_over_all_pictures_gives(seed: int) -> None:
    """Exactly, but for the standard deviation, which is what it should be or 1 less."""
    chance = random.Random(seed)
    sizes = [chance.choice([0, 1, 2, 7, 50, 333]) for _ in range(chance.randrange(1, 6))] + [1]
    parts, all_ranks, all_times = [], [], []
    for size in sizes:
        ranks = [chance.choice([*range(12), None]) for _ in range(size)]
        ranks = [None if rank is not None and rank > 9 else rank for rank in ranks]
        middle = chance.choice([3, 900, 40_000])
        times = [max(0, round(chance.gauss(middle, chance.choice([0, 1, middle / 5])))) for _ in range(size)]
        parts.append(figures(ranks, times))
        all_ranks += ranks
        all_times += times
    whole, merged = figures(all_ranks, all_times), merge_classifiers(parts)
    assert merged.accuracies == whole.accuracies
    assert merged.runs == whole.runs
    assert whole.inference.std_us is not None
    assert merged.inference.std_us in (whole.inference.std_us, whole.inference.std_us - 1)
    exact = [getattr(merged.inference, name) for name in ("count", "last_us", "min_us", "max_us", "sum_us", "avg_us")]
    assert exact == [
        getattr(whole.inference, name) for name in ("count", "last_us", "min_us", "max_us", "sum_us", "avg_us")
    ]
    assert merged.preprocessing == whole.preprocessing


@pytest.mark.parametrize("runs", [1, 3, 7, 200, 4999, 50_000, 1_281_167])
def test_counts_come_back_from_shares_in_float32(runs: int) -> None:
    chance = random.Random(runs)
    counts = sorted(chance.randrange(runs + 1) for _ in range(10))
    shares = [float(np.float32(count) / np.float32(runs)) for count in counts]
    assert whole_counts(shares, runs) == counts


@pytest.mark.parametrize(
    "shares", [[0.5], [0.3333333], [float(np.float32(2) / np.float32(3)), float(np.float32(1) / np.float32(3))], [1.5]]
)
def test_shares_of_no_number_of_pictures_are_refused(shares: list[float]) -> None:
    with pytest.raises(DataError, match="cannot be those of 3 pictures"):
        whole_counts(shares, 3)


def test_parts_with_different_accuracies_are_refused() -> None:
    short = ClassifierFigures(1, NOTHING_TIMED, NOTHING_TIMED, (1.0,))
    with pytest.raises(DataError, match="different numbers of accuracies"):
        merge_classifiers([short, figures([0], [1])])


def test_no_single_time_is_made_up() -> None:
    found = as_latency(summed_up([10, 30]))
    assert (found.last_us, found.min_us, found.max_us, found.sum_us, found.avg_us, found.std_us) == (
        30,
        10,
        30,
        40,
        20,
        10,
    )
    assert (found.count, found.first_us, found.p50_us, found.p90_us) == (2, None, None, None)
