"""How sure latencies are: which examples are paired, and what is of one run."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from evaltools.engine.quiet_latency import QuietTime, QuietTimes
from evaltools.engine.run import PassOutcome
from evaltools.engine.task import Example, Failure, Record
from evaltools.tasks.shared.one_pass import MeasuredPass, latency_comparisons, sum_up, with_conditions
from tests.results import configuration

PAIR = [("reference", "test")]
BOTH = [configuration("reference", "reference"), configuration("test")]


def records(name: str, times: dict[int, int], failed: tuple[int, ...] = ()) -> list[Record[int]]:
    found: list[Record[int]] = [Record(Example(index, ""), name, (time,), 0) for index, time in times.items()]
    return found + [Record(Example(index, ""), name, (), None, Failure("inference", "died")) for index in failed]


def test_times_are_paired_by_example() -> None:
    outcome = PassOutcome(
        {
            "reference": records("reference", {0: 10, 1: 100, 3: 1000}),
            "test": records("test", {1: 50, 3: 500, 4: 1}, (0,)),
        }
    )
    (found,) = latency_comparisons(sum_up(MeasuredPass(outcome), PAIR))
    assert (found.baseline, found.other, found.pairs, found.ratio) == ("reference", "test", 2, 0.5)


def test_times_of_the_quiet_phase_are_paired_by_example() -> None:
    """Each lacks one that the other has: the same number of times, and one common example."""
    outcome = PassOutcome({"reference": records("reference", {0: 1}), "test": records("test", {0: 1})})
    both = QuietTimes(9, {"reference": taken({3: 10, 5: 20}), "test": taken({3: 30, 5: 60})})
    (found,) = latency_comparisons(sum_up(MeasuredPass(outcome, quiet=both), PAIR))
    assert (found.pairs, found.ratio) == (2, 3.0)
    failed = QuietTimes(9, {"reference": taken({3: 10, 5: 20}), "test": taken({5: 80, 7: 1})})
    (found,) = latency_comparisons(sum_up(MeasuredPass(outcome, quiet=failed), PAIR))
    assert (found.pairs, found.ratio) == (1, 4.0)
    nothing = QuietTimes(9, {"reference": taken({3: 10})})
    assert latency_comparisons(sum_up(MeasuredPass(outcome, quiet=nothing), PAIR)) == []


def taken(first_us: Mapping[int, int]) -> list[QuietTime]:
    """Two runs of each example, the second of 1 us."""
    return [QuietTime(example, (time, 1), 5) for example, time in first_us.items()]


def test_a_reference_that_ran_elsewhere_has_no_ratio() -> None:
    assert latency_comparisons(sum_up(MeasuredPass(PassOutcome({"test": records("test", {0: 1})})), PAIR)) == []


def test_drift_is_of_one_run() -> None:
    rising = {index: 1000 + 20 * index for index in range(40)}
    outcome = PassOutcome(
        {"reference": records("reference", rising), "test": records("test", dict.fromkeys(range(40), 5))}
    )
    reference, test = with_conditions(BOTH, sum_up(MeasuredPass(outcome), PAIR))
    assert reference.latency_drift is not None
    assert reference.latency_drift.change == pytest.approx((1000 + 20 * 33) / (1000 + 20 * 6) - 1)
    assert test.latency_drift is not None
    assert test.latency_drift.change == 0
    merged = with_conditions(BOTH, sum_up(MeasuredPass(outcome, merged_shards=2), PAIR))
    assert [entry.latency_drift for entry in merged] == [None, None]


def test_memory_is_that_of_its_process() -> None:
    outcome = PassOutcome({name: records(name, {0: 5}) for name in ("reference", "test")})
    reference, test = with_conditions(BOTH, sum_up(MeasuredPass(outcome, peak_memory_kb={"test": 51_200}), PAIR))
    assert (reference.peak_memory_mb, test.peak_memory_mb) == (None, 50.0)
