"""The interval of a median of times, by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal, stats

from evaltools.stats.median_interval import median_interval

TRUE_MEDIAN = 10_000


def simulated(generator: np.random.Generator, count: int, memory: float) -> list[int]:
    """Skewed times around a known median; ``memory`` is the correlation of neighbours, AR(1)."""
    noise = generator.normal(0, 1, count + 200)
    normal = signal.lfilter([np.sqrt(1 - memory * memory)], [1, -memory], noise)[200:]
    times: list[int] = np.round(TRUE_MEDIAN * np.exp(0.3 * normal)).astype(int).tolist()
    return times


@pytest.mark.parametrize(("count", "memory"), [(50, 0.0), (107, 0.0), (400, 0.5), (2000, 0.9)])
def test_about_95_percent_of_intervals_hold_the_median(count: int, memory: float) -> None:
    generator = np.random.default_rng(7)
    trials = 500
    found = [median_interval([simulated(generator, count, memory)]) for _ in range(trials)]
    held = sum(entry is not None and entry.low <= TRUE_MEDIAN <= entry.high for entry in found)
    assert 0.91 <= held / trials <= 0.98


def test_processes_of_different_speed_count_as_one_value_each() -> None:
    """Each process is as fast as chance has it; no number of runs within one makes the median surer."""
    generator = np.random.default_rng(3)
    trials, held = 400, 0
    for _ in range(trials):
        speeds = TRUE_MEDIAN * np.exp(generator.normal(0, 0.05, 8))
        series = [np.round(generator.normal(speed, 50, 100)).astype(int).tolist() for speed in speeds]
        found = median_interval(series)
        assert found is not None
        held += found.low <= TRUE_MEDIAN <= found.high
    assert 0.90 <= held / trials <= 0.99


def test_by_hand() -> None:
    """Ten batches of two: their medians are 1.5, 3.5, ..., 19.5."""
    found = median_interval([list(range(1, 21))])
    assert found is not None
    spread = np.std(np.arange(1.5, 20, 2), ddof=1)
    half = stats.t.ppf(0.975, 9) * spread / np.sqrt(10)
    assert (found.low, found.high) == pytest.approx((10.5 - half, 10.5 + half))


def test_too_few_times_have_none() -> None:
    assert median_interval([list(range(19))]) is None
    assert median_interval([]) is None
    assert median_interval([[], []]) is None
