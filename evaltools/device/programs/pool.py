"""The parts of one run, done by whichever device is free; a part that a device does not finish is done again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

from evaltools.device.adb.errors import (
    MAY_PASS,
    CommandFailed,
    DeviceError,
    DeviceStopped,
    ServerFailed,
    TransferFailed,
)
from evaltools.result.device_run import DeviceLeftOut, LostAttempt

Done = TypeVar("Done")

MOST_ATTEMPTS: Final = 4
"""A part that was lost so often is given up: it may be what kills the devices. A device that cannot work is no loss."""
MOST_LOST_IN_A_ROW: Final = 3
"""A device that lost so many parts without finishing one is left out."""
_WORTH_ANOTHER_TRY: Final = (*MAY_PASS, ServerFailed, TransferFailed, CommandFailed)
_LOOK_S: Final = 0.2


class Job(Struct, frozen=True):
    """The ``index``-th part; ``serial`` names the only device that may do it, empty: any."""

    index: int
    serial: str = ""


class PoolOutcome(Struct, Generic[Done]):
    """The parts that were done, the attempts that were lost, and the devices that were left out."""

    done: dict[Job, Done] = field(default_factory=dict)
    lost: dict[Job, list[LostAttempt]] = field(default_factory=dict)
    left_out: list[DeviceLeftOut] = field(default_factory=list)


class Pool(Generic[Done]):
    """Runs ``do(serial, job)`` for every job, one at a time on each device.

    ``do`` raises :class:`DeviceError` where the device did not finish. Then ``is_back(serial)`` waits for the device
    and returns whether it can be used again. ``on_lost`` is called for every lost attempt. All are called from the
    devices' threads.
    """

    def __init__(
        self,
        serials: Sequence[str],
        jobs: Sequence[Job],
        do: Callable[[str, Job], Done],
        is_back: Callable[[str], bool],
        stop: threading.Event,
        on_lost: Callable[[Job, LostAttempt], None] = lambda _job, _attempt: None,
    ) -> None:
        self._serials = tuple(serials)
        self._waiting = list(jobs)
        self._running: set[Job] = set()
        self._tries: Counter[Job] = Counter()
        self._do = do
        self._is_back = is_back
        self._stop = stop
        self._on_lost = on_lost
        self._outcome: PoolOutcome[Done] = PoolOutcome()
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def run(self) -> PoolOutcome[Done]:
        """Do all jobs, as far as the devices can.

        Raises errors of ``do`` that are no :class:`DeviceError`, and :class:`KeyboardInterrupt`; before that it tells
        the devices to stop, and waits for them.
        """
        threads = [threading.Thread(target=self._work, args=(serial,), name=serial) for serial in self._serials]
        try:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                time.sleep(_LOOK_S)
        finally:
            self._stop.set()
            self._wake()
            for thread in threads:
                if thread.is_alive():
                    thread.join()
        if self._error is not None:
            raise self._error
        return self._outcome

    def _work(self, serial: str) -> None:
        """The thread of one device; an error that is no device's stops the other devices, too."""
        try:
            self._do_jobs(serial)
        except BaseException as error:
            self._fail(error)

    def _do_jobs(self, serial: str) -> None:
        lost_in_a_row = 0
        while (job := self._take(serial)) is not None:
            started = time.monotonic()
            try:
                done = self._do(serial, job)
            except DeviceStopped:
                self._give_back(job)
                return
            except DeviceError as error:
                lost_in_a_row += 1
                attempt = LostAttempt(serial, error.kind, str(error), round(time.monotonic() - started, 3))
                self._lose(job, attempt, isinstance(error, _WORTH_ANOTHER_TRY))
                if not self._goes_on(serial, error, lost_in_a_row):
                    return
            else:
                lost_in_a_row = 0
                self._finish(job, done)

    def _take(self, serial: str) -> Job | None:
        """The next job for a device, None if there is none left.

        It waits while other devices may still give one back.
        """
        with self._changed:
            while True:
                own = next((job for job in self._waiting if job.serial in ("", serial)), None)
                if self._stop.is_set():
                    return None
                if own is not None:
                    self._waiting.remove(own)
                    self._running.add(own)
                    return own
                if not any(job.serial in ("", serial) for job in self._running):
                    return None
                self._changed.wait()

    def _goes_on(self, serial: str, error: DeviceError, lost_in_a_row: int) -> bool:
        """Whether a device that lost a part is tried again; otherwise it is left out."""
        may_pass = isinstance(error, _WORTH_ANOTHER_TRY) and lost_in_a_row < MOST_LOST_IN_A_ROW
        if may_pass and self._is_back(serial):
            return True
        if not self._stop.is_set():
            with self._changed:
                self._outcome.left_out.append(DeviceLeftOut(serial, error.kind, str(error)))
                self._waiting = [job for job in self._waiting if job.serial != serial]
                self._changed.notify_all()
        return False

    def _lose(self, job: Job, attempt: LostAttempt, may_be_its_fault: bool) -> None:
        self._on_lost(job, attempt)
        with self._changed:
            self._outcome.lost.setdefault(job, []).append(attempt)
            self._tries[job] += may_be_its_fault
            self._running.discard(job)
            if self._tries[job] < MOST_ATTEMPTS:
                self._waiting.append(job)
            self._changed.notify_all()

    def _finish(self, job: Job, done: Done) -> None:
        with self._changed:
            self._running.discard(job)
            self._outcome.done[job] = done
            self._changed.notify_all()

    def _give_back(self, job: Job) -> None:
        with self._changed:
            self._running.discard(job)
            self._waiting.insert(0, job)
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._stop.set()
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
