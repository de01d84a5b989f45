"""What a pass gave: times and how sure they are, lost configurations, conditions; and what the start was spent on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace

from evaltools.engine.facts import PassFacts
from evaltools.engine.ledger import GivenUp, PassOutcome
from evaltools.engine.quiet_latency import QuietTime, QuietTimes, Taken, invoke_times, times_with_reading
from evaltools.engine.steps import Failure, Record
from evaltools.result.result import DRIFT, Row
from evaltools.runs.conclude import judge_records, latency_ratios, sum_up, with_sums
from evaltools.runs.one_pass import FIRST_TURN, OPENING, STARTING, Startup, are_known
from tests.results import configuration

WRONG = Failure("inference", "node 7 failed")


def outcome(records: str, **facts: Any) -> PassOutcome[float]:
    """One letter per record of ``a``: ``.`` took 10 and 20 us, and 5 to read; ``x`` failed."""
    found = [
        Record(index, "a", (10, 20), 0.5, None, 5) if letter == "." else Record[float](index, "a", (), None, WRONG)
        for index, letter in enumerate(records)
    ]
    return PassOutcome({"a": found}, names=[""] * len(found), **facts)


def times(outcome: PassOutcome[Any], quiet: QuietTimes | None = None) -> Taken:
    return {name: own.times for name, own in sum_up(outcome, quiet).items()}


def summed(
    rows: Sequence[Row], outcome: PassOutcome[Any], facts: PassFacts | None = None, is_one_series: bool = True
) -> list[Row]:
    return with_sums(rows, sum_up(outcome), outcome, facts or PassFacts(), is_one_series)


def test_latency_is_that_of_the_pass_unless_it_was_taken_in_quiet() -> None:
    found = outcome(".x.")
    in_pass = times(found)["a"]
    assert (invoke_times(in_pass), times_with_reading(in_pass)) == ([10, 20, 10, 20], [25, 25])
    quiet = times(found, QuietTimes(1, {"a": [QuietTime(2, (7, 6), 9)]}))["a"]
    assert (invoke_times(quiet), times_with_reading(quiet)) == ([7, 6], [9])
    assert times(found, QuietTimes(1, {"b": [QuietTime(2, (7,), 9)]}))["a"] == [], "it was given up"


@pytest.mark.parametrize(
    ("found", "failed", "reason"),
    [
        (outcome(".x"), 1, None),
        (outcome("xx", examples_done=2), 2, "not one example succeeded: node 7 failed"),
        (outcome("", stopped="interrupted"), 0, "no example was finished"),
        (
            outcome(".x", given_up={"a": GivenUp(1, "died (SIGABRT)")}),
            1,
            "its process died or hung too often in a row (--max_crashes); the last time: died (SIGABRT)",
        ),
        (outcome(".x", given_up={"b": GivenUp(1, "died")}), 1, None),
    ],
)
def test_a_configuration_without_figures_says_why(found: PassOutcome[float], failed: int, reason: str | None) -> None:
    (judged,) = summed([judge_records(configuration("a"), found)], found)
    assert judged.failed_examples == failed
    assert judged.status == ("measured" if reason is None else "not measured")
    assert (reason or "") in (judged.reason or "")


def test_a_configuration_that_was_not_measured_stays_as_it_was() -> None:
    described = replace(configuration("gone"), status="not measured", reason="no GPU here")
    found = outcome(".")
    judged = judge_records(described, found)
    assert judged is described
    assert summed([judged], found) == [described]


def test_phases_of_the_start_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("evaltools.runs.one_pass.time.monotonic", lambda: now[0])
    monkeypatch.setattr("evaltools.runs.one_pass._age_of_process", lambda: 0.25)
    startup = Startup()
    for seconds, phase in ((1, OPENING), (2, FIRST_TURN), (4, FIRST_TURN)):
        now[0] += seconds
        startup.mark_once(phase)
    assert startup.seconds == {STARTING: 0.25, OPENING: 1, FIRST_TURN: 2}
    monkeypatch.setattr("evaltools.runs.one_pass._age_of_process", lambda: None)
    assert Startup().seconds == {}


PAIR = [("reference", "test")]
BOTH = [configuration("reference", "reference"), configuration("test")]


def records(name: str, times: dict[int, int], failed: tuple[int, ...] = ()) -> list[Record[int]]:
    found: list[Record[int]] = [Record(index, name, (time,), 0) for index, time in times.items()]
    return found + [Record(index, name, (), None, Failure("inference", "died")) for index in failed]


def test_times_are_paired_by_example() -> None:
    outcome = PassOutcome(
        {
            "reference": records("reference", {0: 10, 1: 100, 3: 1000}),
            "test": records("test", {1: 50, 3: 500, 4: 1}, (0,)),
        },
        names="abcde",
    )
    found = latency_ratios(times(outcome), PAIR)[PAIR[0]]
    assert (found.pairs, found.ratio) == (2, 0.5)


def test_times_of_the_quiet_phase_are_paired_by_example() -> None:
    """Each lacks one that the other has: the same number of times, and one common example."""
    outcome = PassOutcome({"reference": records("reference", {0: 1}), "test": records("test", {0: 1})})
    both = QuietTimes(9, {"reference": taken({3: 10, 5: 20}), "test": taken({3: 30, 5: 60})})
    found = latency_ratios(times(outcome, both), PAIR)[PAIR[0]]
    assert (found.pairs, found.ratio) == (2, 3.0)
    failed = QuietTimes(9, {"reference": taken({3: 10, 5: 20}), "test": taken({5: 80, 7: 1})})
    found = latency_ratios(times(outcome, failed), PAIR)[PAIR[0]]
    assert (found.pairs, found.ratio) == (1, 4.0)
    nothing = QuietTimes(9, {"reference": taken({3: 10})})
    assert latency_ratios(times(outcome, nothing), PAIR) == {}


def taken(first_us: Mapping[int, int]) -> list[QuietTime]:
    """Two runs of each example, the second of 1 us."""
    return [QuietTime(example, (time, 1), 5) for example, time in first_us.items()]


def test_a_reference_that_ran_elsewhere_has_no_ratio() -> None:
    assert latency_ratios(times(PassOutcome({"test": records("test", {0: 1})})), PAIR) == {}


def test_drift_is_of_one_run() -> None:
    rising = {index: 1000 + 20 * index for index in range(40)}
    outcome = PassOutcome(
        {"reference": records("reference", rising), "test": records("test", dict.fromkeys(range(40), 5))}
    )
    reference, test = summed(BOTH, outcome)
    percent = 100 * ((1000 + 20 * 33) / (1000 + 20 * 6) - 1)
    assert reference.texts[DRIFT].startswith(f"its times rose by {percent:.0f} %")
    assert DRIFT not in test.texts
    merged = summed(BOTH, outcome, is_one_series=False)
    assert not any(DRIFT in row.texts for row in merged)


def test_memory_is_that_of_its_process() -> None:
    outcome = PassOutcome({name: records(name, {0: 5}) for name in ("reference", "test")})
    reference, test = summed(BOTH, outcome, PassFacts(peak_memory_kb={"test": 51_200}))
    assert (reference.value("peak_memory_mb"), test.value("peak_memory_mb")) == (None, 50.0)


def timed(times_us: npt.ArrayLike, skipped: int = -1) -> list[QuietTime]:
    times = np.asarray(times_us, np.float64).tolist()
    return [QuietTime(number, (time,), time) for number, time in enumerate(times) if number != skipped]


NOISE = np.random.default_rng(1).lognormal(0.0, 0.3, 40)
"""Of the machine: both sides of an example feel it."""
STEADY = np.random.default_rng(2).lognormal(0.0, 0.01, 40)


def test_of_ratios_the_noise_of_the_machine_does_not_count() -> None:
    slow = {"reference": timed(300 * NOISE), "test": timed(100 * NOISE * STEADY)}
    assert are_known("reference", slow)
    assert not are_known(None, slow)
    assert not are_known("reference", {**slow, "other": timed(100 * NOISE[::-1])})


def test_without_a_reference_or_with_nothing_beside_it_each_time_is_to_be_known() -> None:
    for reference in (None, "not run here", "alone"):
        assert are_known(reference, {"alone": timed(100 * STEADY)})
        assert not are_known(reference, {"alone": timed(100 * NOISE)})
    assert not are_known(None, {"test": timed(100 * STEADY), "other": timed(100 * NOISE)})


def test_ratios_are_of_the_examples_of_both() -> None:
    assert are_known("reference", {"reference": timed(300 * NOISE, 7), "test": timed(100 * NOISE * STEADY, 5)})
    assert not are_known("reference", {"reference": timed(300 * NOISE), "test": []})


def test_a_clock_that_is_coarser_than_the_times_tells_too_little() -> None:
    assert not are_known("reference", {"reference": timed([1.0, 2.0] * 20), "test": timed([2.0, 1.0] * 20)})
