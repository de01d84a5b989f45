"""Parts that devices share: what is done by whom, what is tried again, who is left out."""

from __future__ import annotations

import threading
from collections import defaultdict

import pytest

from evaltools.device.errors import CommandFailed, ConnectionLost, DeviceAway, DeviceError, DeviceTimeout
from evaltools.device.pool import MOST_ATTEMPTS, MOST_LOST_IN_A_ROW, Job
from evaltools.result.device_run import DeviceLeftOut, LostAttempt
from tests.device.pool_devices import LONGEST_S, Devices, awaited, by, failing, parts, to_its_end


@pytest.mark.parametrize("count", [0, 1, 100])
def test_every_part_is_done_once(count: int) -> None:
    devices = Devices(by)
    outcome = to_its_end(devices.pool(["A", "B", "C"], parts(count)))
    assert sorted(outcome.done, key=lambda job: job.index) == parts(count)
    assert sorted(job.index for _, job in devices.begun) == list(range(count))
    assert all(outcome.done[job] == by(serial, job) for serial, job in devices.begun)
    assert (outcome.lost, outcome.left_out, devices.waited_for) == ({}, [], [])


def test_devices_work_at_the_same_time_and_each_on_one_part() -> None:
    together = threading.Barrier(3, timeout=LONGEST_S)
    at_work: dict[str, int] = defaultdict(int)
    most: dict[str, int] = defaultdict(int)

    def act(serial: str, job: Job) -> str:
        at_work[serial] += 1
        most[serial] = max(most[serial], at_work[serial])
        together.wait()
        at_work[serial] -= 1
        return by(serial, job)

    outcome = to_its_end(Devices(act).pool(["A", "B", "C"], parts(9)))
    assert len(outcome.done) == 9
    assert most == {"A": 1, "B": 1, "C": 1}


def test_a_free_device_takes_the_next_part_and_a_slow_one_holds_nobody_up() -> None:
    a_has_begun, rest_is_done = threading.Event(), threading.Event()
    done_by_b: list[Job] = []

    def act(serial: str, job: Job) -> str:
        if serial == "A":
            a_has_begun.set()
            awaited(rest_is_done)
            return by(serial, job)
        awaited(a_has_begun)
        done_by_b.append(job)
        if len(done_by_b) == 7:
            rest_is_done.set()
        return by(serial, job)

    outcome = to_its_end(Devices(act).pool(["A", "B"], parts(8)))
    assert len(outcome.done) == 8
    assert len(done_by_b) == 7


def test_a_part_that_is_lost_is_done_by_another_device() -> None:
    a_has_lost = threading.Event()

    def act(serial: str, job: Job) -> str:
        if serial == "A":
            raise ConnectionLost("A: the link broke", "A")
        awaited(a_has_lost)
        return by(serial, job)

    class Losing(Devices):
        def lost(self, job: Job, attempt: LostAttempt) -> None:
            super().lost(job, attempt)
            a_has_lost.set()

    devices = Losing(act, away=["A"])
    outcome = to_its_end(devices.pool(["A", "B"], parts(2)))
    assert outcome.done == {job: by("B", job) for job in parts(2)}
    ((job, (attempt,)),) = outcome.lost.items()
    assert devices.losses == [(job, attempt)]
    assert (attempt.serial, attempt.kind, attempt.reason) == ("A", "connection lost", "A: the link broke")
    assert 0 <= attempt.elapsed_s < LONGEST_S
    assert outcome.left_out == [DeviceLeftOut("A", "A: the link broke")]


def test_a_device_that_comes_back_goes_on() -> None:
    """However often: it finishes something between any two losses."""
    tries: list[Job] = []

    def act(serial: str, job: Job) -> str:
        tries.append(job)
        if len(tries) in (1, 4, 7, 10):
            raise ConnectionLost("the link broke", serial)
        return by(serial, job)

    devices = Devices(act)
    outcome = to_its_end(devices.pool(["A"], parts(10)))
    assert sorted(job.index for job in outcome.done) == list(range(10))
    assert set(outcome.lost) == {tries[number - 1] for number in (1, 4, 7, 10)}
    assert (len(tries), devices.waited_for) == (14, ["A"] * 4)
    assert outcome.left_out == []


def test_a_device_that_loses_three_in_a_row_is_left_out() -> None:
    devices = Devices(failing(["A"], CommandFailed("broken again")))
    outcome = to_its_end(devices.pool(["A"], parts(5)))
    assert MOST_LOST_IN_A_ROW == 3
    assert len(devices.begun) == 3
    assert outcome.done == {}
    assert outcome.left_out == [DeviceLeftOut("A", "broken again")]
    assert devices.waited_for == ["A", "A"], "it is not waited for once more when it is left out"


@pytest.mark.parametrize("kind", [ConnectionLost, DeviceTimeout, DeviceAway, CommandFailed])
def test_what_may_pass_is_tried_again_where_it_failed(kind: type[DeviceError]) -> None:
    tried = threading.Event()

    def act(serial: str, job: Job) -> str:
        if not tried.is_set():
            tried.set()
            raise kind("for a moment")
        return by(serial, job)

    outcome = to_its_end(Devices(act).pool(["A"], parts(1)))
    assert outcome.done == {Job(0): "0 by A"}
    assert [attempt.kind for attempt in outcome.lost[Job(0)]] == [kind.kind]


def test_a_device_whose_trouble_cannot_pass_is_left_out_at_once() -> None:
    devices = Devices(failing(["A"], DeviceError("for good", "A")))
    outcome = to_its_end(devices.pool(["A"], parts(6)))
    assert (outcome.done, devices.waited_for, len(devices.begun)) == ({}, [], 1)
    assert outcome.left_out == [DeviceLeftOut("A", "for good")]


def test_a_part_that_every_device_loses_is_given_up_and_the_others_are_done() -> None:
    def act(serial: str, job: Job) -> str:
        if job.index == 2:
            raise CommandFailed(f"{serial}: it died", serial)
        return by(serial, job)

    serials = ["A", "B", "C", "D", "E", "F"]
    devices = Devices(act)
    outcome = to_its_end(devices.pool(serials, parts(40)))
    assert sorted(job.index for job in outcome.done) == [index for index in range(40) if index != 2]
    assert len(outcome.lost[Job(2)]) == MOST_ATTEMPTS
    assert sum(job.index == 2 for _, job in devices.begun) == MOST_ATTEMPTS
    assert len(outcome.left_out) <= 1, "only three losses in a row leave one out"


def test_a_part_that_is_always_lost_does_not_keep_a_device_from_the_others() -> None:
    """It comes last: else three losses in a row would leave the only device out before the others were tried."""

    def act(serial: str, job: Job) -> str:
        if job.index == 1:
            raise CommandFailed("it died", serial)
        return by(serial, job)

    outcome = to_its_end(Devices(act).pool(["A"], parts(5)))
    assert sorted(job.index for job in outcome.done) == [0, 2, 3, 4]


def test_what_only_a_device_that_is_left_out_could_do_is_dropped() -> None:
    jobs = [*parts(5, "A"), *parts(5, "B")]
    outcome = to_its_end(Devices(failing(["A"], DeviceError("full", "A"))).pool(["A", "B"], jobs))
    assert outcome.done == {job: by("B", job) for job in parts(5, "B")}
    assert outcome.left_out == [DeviceLeftOut("A", "full")]
    assert list(outcome.lost) == [Job(0, "A")]


def test_many_devices_that_fail_now_and_then_do_everything() -> None:
    """Every third attempt is lost, whoever makes it."""
    counting = threading.Lock()
    attempts = [0]

    def act(serial: str, job: Job) -> str:
        with counting:
            attempts[0] += 1
            is_lost = attempts[0] % 3 == 0
        if is_lost:
            raise ConnectionLost("away", serial)
        return by(serial, job)

    devices = Devices(act)
    outcome = to_its_end(devices.pool([f"device {number}" for number in range(8)], parts(300)))
    assert attempts[0] == len(devices.begun) == len(outcome.done) + sum(map(len, outcome.lost.values()))
    given_up = {job for job, lost in outcome.lost.items() if len(lost) == MOST_ATTEMPTS}
    assert set(outcome.done) | given_up == set(parts(300))
    assert not set(outcome.done) & given_up
