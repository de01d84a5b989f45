"""Which parts there are, which of them make a result, and what is said of the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from evaltools.device.errors import DeviceError
from evaltools.device.pool import Job, PoolOutcome, complete_jobs, device_run_of, jobs_of
from evaltools.device.process import last_lines
from evaltools.result.device import DeviceConditions, DeviceFacts
from evaltools.result.device_run import DeviceLeftOut, DevicePart, DeviceRun, LostAttempt

POOL = (Job(0), Job(1), Job(2))
EACH = (Job(0, "A"), Job(1, "A"), Job(0, "B"), Job(1, "B"))


def outcome(lost: dict[Job, Sequence[str]], *left_out: str) -> PoolOutcome[str]:
    found: PoolOutcome[str] = PoolOutcome()
    for job, reasons in lost.items():
        found.lost[job] = [LostAttempt("A", "no space", reason, 1.0) for reason in reasons]
    found.left_out = [DeviceLeftOut("A", reason) for reason in left_out]
    return found


def missing(jobs: Sequence[Job], done: Sequence[Job], found: PoolOutcome[str], step: str = "") -> str:
    """What is said where what is done makes no result."""
    with pytest.raises(DeviceError) as caught:
        complete_jobs(jobs, done, found, step)
    return str(caught.value)


def test_parts_are_for_whoever_is_free_or_for_every_device() -> None:
    assert jobs_of("pool", ["A", "B"], 3) == list(POOL)
    assert jobs_of("each", ["A", "B"], 2) == list(EACH)


def test_where_all_are_done_they_make_the_result_whatever_was_lost() -> None:
    assert complete_jobs(POOL, POOL, outcome({Job(0): ["away"]}, "B is full")) == list(POOL)
    assert complete_jobs(EACH, EACH, outcome({})) == list(EACH)


def test_a_device_that_did_not_do_everything_is_not_in_the_result_and_the_others_are() -> None:
    assert complete_jobs(EACH, EACH[1:], outcome({EACH[0]: ["away"]}, "away")) == [Job(0, "B"), Job(1, "B")]


def test_parts_of_one_result_are_all_needed() -> None:
    found = outcome({Job(1): ["away", "A is full"], Job(2): ["A is full"]}, "A is full", "B has no Python")
    assert missing(POOL, [Job(0)], found, "; go on") == (
        "2 of 3 parts were not done: A is full; B has no Python\n  1 are done; go on"
    )


def test_the_last_reason_of_a_part_that_was_given_up_is_said() -> None:
    """Although its devices were not left out, or others were for another reason; not those of parts that are done."""
    given_up = outcome({Job(0): ["long past"], Job(1): ["x", "y", "z", "it killed the device"]})
    given_up.lost[Job(0)] = [LostAttempt("B", "no space", "long past", 1.0)]
    assert missing(POOL, [Job(0), Job(2)], given_up).startswith("1 of 3 parts were not done: it killed the device\n")
    other = outcome({Job(1): ["it killed the device"]}, "B is not like A")
    assert missing(POOL, [Job(0), Job(2)], other).startswith(
        "1 of 3 parts were not done: B is not like A; it killed the device\n"
    )


def part(index: int, serial: str) -> DevicePart:
    nothing = DeviceConditions()
    return DevicePart(index, 3, serial, 5, "2026-01-01T00:00:00+00:00", 0.0, 1.5, nothing, nothing)


def test_the_result_names_the_devices_that_did_parts_once_each() -> None:
    """In the order of their parts."""
    first, second = DeviceFacts("A", model="one"), DeviceFacts("B")
    unused = DeviceFacts("C")
    left_out = DeviceLeftOut("C", "C is full")
    parts = [part(0, "B"), part(1, "A"), part(2, "B")]
    assert device_run_of("evaltools", "pool", [unused, first, second], parts, [left_out]) == DeviceRun(
        "evaltools", "pool", (second, first), tuple(parts), (left_out,)
    )
    assert device_run_of("native", "each", [second, second], [part(0, "B")], []).devices == (second,)


@pytest.mark.parametrize(
    ("text", "leave_out", "words"),
    [
        ("\n \n", "", "nothing"),
        ("one\ntwo\n\n three \nfour\n", "", "two | three | four"),
        ('one\n{"phase": 1}\ntwo\n{"phase": 2}', '{"phase"', "one | two"),
        ('{"phase": 1}', '{"phase"', "nothing"),
        ("one\x1b[2J\n\x07two\n", "", "one\\x1b[2J | \\x07two"),
    ],
)
def test_the_last_lines_of_a_program_are_quoted(text: str, leave_out: str, words: str) -> None:
    assert last_lines(text, leave_out) == words
