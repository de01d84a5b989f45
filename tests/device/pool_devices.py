"""Devices of a pool: threads that do as a script says. What must happen before something else waits for an event."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from evaltools.device.device import Device
from evaltools.device.errors import DeviceError
from evaltools.device.pool import Job, Pool, PoolOutcome
from evaltools.result.device_run import LostAttempt

LONGEST_S = 30.0
"""A pool that is not at its end by then never comes to it."""
Do = Callable[[str, Job], str]


@dataclass
class Devices:
    """What devices do. ``act`` does a job or raises; ``away`` are those that do not come back."""

    act: Do
    away: Sequence[str] = ()
    stop: threading.Event = field(default_factory=threading.Event)
    begun: list[tuple[str, Job]] = field(default_factory=list)
    waited_for: list[str] = field(default_factory=list)
    losses: list[tuple[Job, LostAttempt]] = field(default_factory=list)

    def do(self, device: Device, job: Job) -> str:
        self.begun.append((device.serial, job))
        return self.act(device.serial, job)

    def is_back(self, serial: str) -> bool:
        self.waited_for.append(serial)
        return serial not in self.away

    def lost(self, job: Job, attempt: LostAttempt) -> None:
        self.losses.append((job, attempt))

    def pool(self, serials: Sequence[str], jobs: Sequence[Job]) -> Pool[str]:
        return Pool(used(serials, self.is_back, self.stop), jobs, 1, self.do, Console(file=io.StringIO()), self.lost)


def used(serials: Sequence[str], is_back: Callable[[str], bool], stop: threading.Event) -> Any:
    """The devices of a run, of which nothing is known but their serial numbers."""

    class Used(dict[str, SimpleNamespace]):
        left_out = ()

    found: Any = Used({serial: SimpleNamespace(serial=serial, is_back=partial(is_back, serial)) for serial in serials})
    found.serials, found.stop = tuple(serials), stop
    return found


def to_its_end(pool: Pool[str]) -> PoolOutcome[str]:
    """Run it in a thread, so that one that never ends is a failure."""
    found: list[PoolOutcome[str] | BaseException] = []

    def run() -> None:
        try:
            found.append(pool.run())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LONGEST_S)
    assert not thread.is_alive(), "the pool does not come to its end"
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def telling(event: threading.Event, pool: Pool[str]) -> Pool[str]:
    """The same pool; the event is set when a device finds that it has to wait for others."""

    class Told(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            event.set()
            return super().wait(timeout)

    pool._changed = Told()
    return pool


def by(serial: str, job: Job) -> str:
    """A job that is done."""
    return f"{job.index} by {serial}"


def awaited(event: threading.Event) -> None:
    assert event.wait(LONGEST_S), "what was to come before did not come"


def parts(count: int, serial: str = "") -> list[Job]:
    return [Job(index, serial) for index in range(count)]


def failing(serials: Sequence[str], error: DeviceError) -> Do:
    """These devices lose everything."""

    def act(serial: str, job: Job) -> str:
        if serial in serials:
            raise error
        return by(serial, job)

    return act
