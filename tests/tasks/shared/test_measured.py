"""What a pass gave: times, lost configurations, conditions; and what the start was spent on."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.engine.execution import Execution, Shard
from evaltools.engine.ledger import GivenUp
from evaltools.engine.quiet_latency import QuietTime, QuietTimes
from evaltools.engine.run import PassOutcome
from evaltools.engine.task import Example, Failure, Record
from evaltools.tasks.shared.measuring import FIRST_TURN, OPENING, STARTING, Startup
from evaltools.tasks.shared.one_pass import MeasuredPass, describe_execution, judge_records, nothing_measured, sum_up
from tests.results import configuration

WRONG = Failure("inference", "node 7 failed")


def outcome(records: str, **facts: Any) -> PassOutcome[float]:
    """One letter per record of ``a``: ``.`` took 10 and 20 us, and 5 to read; ``x`` failed."""
    found = [
        Record(Example(index, ""), "a", (10, 20), 0.5, None, 5)
        if letter == "."
        else Record[float](Example(index, ""), "a", (), None, WRONG)
        for index, letter in enumerate(records)
    ]
    return PassOutcome({"a": found}, **facts)


def test_latency_is_that_of_the_pass_unless_it_was_taken_in_quiet() -> None:
    measured = MeasuredPass(outcome(".x."))
    in_pass = sum_up(measured, [])
    assert (list(in_pass.invokes_us("a")), list(in_pass.run_and_read_us("a"))) == ([10, 20, 10, 20], [25, 25])
    quiet = sum_up(replace(measured, quiet=QuietTimes(1, {"a": [QuietTime(2, (7, 6), 9)]})), [])
    assert (quiet.invokes_us("a"), quiet.run_and_read_us("a")) == ([7, 6], [9])
    given_up = sum_up(replace(measured, quiet=QuietTimes(1, {"b": [QuietTime(2, (7,), 9)]})), [])
    assert (given_up.invokes_us("a"), given_up.run_and_read_us("a")) == ([], [])


def test_of_a_pass_that_cannot_be_there_are_no_records() -> None:
    measured = nothing_measured({"a": 1, "b": 2})
    assert {name: list(records) for name, records in measured.outcome.records.items()} == {"a": [], "b": []}
    assert (list(sum_up(measured, []).invokes_us("b")), measured.workers) == ([], 1)


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
    judged = sum_up(MeasuredPass(found), []).with_figures(judge_records(configuration("a"), found))
    assert judged.failed_examples == failed
    assert judged.status == ("measured" if reason is None else "not measured")
    assert (reason or "") in (judged.reason or "")


def test_a_configuration_that_was_not_measured_stays_as_it_was() -> None:
    described = replace(configuration("gone"), status="not measured", reason="no GPU here")
    found = outcome(".")
    judged = judge_records(described, found)
    assert judged is described
    assert sum_up(MeasuredPass(found), []).with_figures(judged) is described


def test_conditions_are_those_of_the_pass() -> None:
    measured = MeasuredPass(outcome("."), 3, QuietTimes(11), merged_shards=4, startup_seconds={OPENING: 0.5})
    measured.outcome.stages.seconds["decode"] = 2.0
    used = describe_execution(Execution(shard=Shard(1, 4)), measured)
    assert (used.workers, used.shard, used.merged_shards, used.quiet_latency_examples) == (3, "1/4", 4, 11)
    assert (used.startup_seconds, used.bound) == ({OPENING: 0.5}, "input")
    assert used.stage_seconds["decode"] == 2.0
    alone = describe_execution(Execution(), MeasuredPass(outcome(".")))
    assert (alone.shard, alone.quiet_latency_examples, alone.bound) == (None, None, None)


def test_phases_of_the_start_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("evaltools.tasks.shared.measuring.time.monotonic", lambda: now[0])
    monkeypatch.setattr("evaltools.tasks.shared.measuring._age_of_process", lambda: 0.25)
    startup = Startup()
    for seconds, phase in ((1, OPENING), (2, FIRST_TURN), (4, FIRST_TURN)):
        now[0] += seconds
        startup.mark_once(phase)
    assert startup.seconds == {STARTING: 0.25, OPENING: 1, FIRST_TURN: 2}
    monkeypatch.setattr("evaltools.tasks.shared.measuring._age_of_process", lambda: None)
    assert Startup().seconds == {}
