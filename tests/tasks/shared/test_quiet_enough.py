"""When the quiet phase has measured enough."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaltools.engine.quiet_latency import QuietTime
from evaltools.tasks.shared.measuring import are_known


def taken(times_us: npt.ArrayLike, skipped: int = -1) -> list[QuietTime]:
    times = np.asarray(times_us, np.float64).tolist()
    return [QuietTime(number, (time,), time) for number, time in enumerate(times) if number != skipped]


NOISE = np.random.default_rng(1).lognormal(0.0, 0.3, 40)
"""Of the machine: both sides of an example feel it."""
STEADY = np.random.default_rng(2).lognormal(0.0, 0.01, 40)


def test_of_ratios_the_noise_of_the_machine_does_not_count() -> None:
    slow = {"reference": taken(300 * NOISE), "test": taken(100 * NOISE * STEADY)}
    assert are_known("reference", slow)
    assert not are_known(None, slow)
    assert not are_known("reference", {**slow, "other": taken(100 * NOISE[::-1])})


def test_without_a_reference_or_with_nothing_beside_it_each_time_is_to_be_known() -> None:
    for reference in (None, "not run here", "alone"):
        assert are_known(reference, {"alone": taken(100 * STEADY)})
        assert not are_known(reference, {"alone": taken(100 * NOISE)})
    assert not are_known(None, {"test": taken(100 * STEADY), "other": taken(100 * NOISE)})


def test_ratios_are_of_the_examples_of_both() -> None:
    assert are_known("reference", {"reference": taken(300 * NOISE, 7), "test": taken(100 * NOISE * STEADY, 5)})
    assert not are_known("reference", {"reference": taken(300 * NOISE), "test": []})


def test_a_clock_that_is_coarser_than_the_times_tells_too_little() -> None:
    assert not are_known("reference", {"reference": taken([1.0, 2.0] * 20), "test": taken([2.0, 1.0] * 20)})
