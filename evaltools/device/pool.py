"""The parts of one run, done by whichever device is free; a part that a device does not finish is done again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

from evaltools.device.errors import MAY_PASS, CommandFailed, DeviceError, DeviceStopped, NotAlike, TransferFailed
from evaltools.result.device_run import DeviceLeftOut, LostAttempt

Done = TypeVar("Done")
Ran = TypeVar("Ran")

MOST_ATTEMPTS: Final = 4
"""A part that was lost so often is given up: it may be what kills the devices. A device that cannot work is no loss."""
MOST_LOST_IN_A_ROW: Final = 3
"""A device that lost so many parts without finishing one is left out."""
_WORTH_ANOTHER_TRY: Final = (*MAY_PASS, TransferFailed, CommandFailed)
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
            with self._changing():
                self._stop.set()
            for thread in threads:
                if thread.is_alive():
                    thread.join()
        if self._error is not None:
            raise self._error
        return self._outcome

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A context that changes what devices wait for."""
        with self._changed:
            yield
            self._changed.notify_all()

    def _work(self, serial: str) -> None:
        """The thread of one device; an error that is no device's stops the other devices, too."""
        try:
            self._do_jobs(serial)
        except BaseException as error:
            with self._changing():
                self._error = self._error or error
                self._stop.set()

    def _do_jobs(self, serial: str) -> None:
        lost_in_a_row = 0
        while (job := self._take(serial)) is not None:
            started = time.monotonic()
            try:
                done = self._do(serial, job)
            except DeviceStopped:
                with self._changing():
                    self._running.discard(job)
                return
            except DeviceError as error:
                lost_in_a_row += 1
                attempt = LostAttempt(serial, error.kind, str(error), round(time.monotonic() - started, 3))
                may_pass = isinstance(error, _WORTH_ANOTHER_TRY)
                self._lose(job, attempt, may_pass)
                if not (may_pass and lost_in_a_row < MOST_LOST_IN_A_ROW and self._is_back(serial)):
                    self._leave_out(attempt)
                    return
            else:
                lost_in_a_row = 0
                with self._changing():
                    self._running.discard(job)
                    self._outcome.done[job] = done

    def _take(self, serial: str) -> Job | None:
        """The next job for a device, None if there is none left.

        It waits while other devices may still give one back.
        """
        with self._changed:
            while not self._stop.is_set():
                own = next((job for job in self._waiting if job.serial in ("", serial)), None)
                if own is not None:
                    self._waiting.remove(own)
                    self._running.add(own)
                    return own
                if not any(job.serial in ("", serial) for job in self._running):
                    return None
                self._changed.wait()
        return None

    def _lose(self, job: Job, attempt: LostAttempt, may_be_its_fault: bool) -> None:
        self._on_lost(job, attempt)
        with self._changing():
            self._outcome.lost.setdefault(job, []).append(attempt)
            self._tries[job] += may_be_its_fault
            self._running.discard(job)
            if self._tries[job] < MOST_ATTEMPTS:
                self._waiting.append(job)

    def _leave_out(self, attempt: LostAttempt) -> None:
        """Leave a device out, unless everything is to stop, with what it alone could do."""
        if not self._stop.is_set():
            with self._changing():
                self._outcome.left_out.append(DeviceLeftOut(attempt.serial, attempt.kind, attempt.reason))
                self._waiting = [job for job in self._waiting if job.serial != attempt.serial]


class Alike(Generic[Ran]):
    """Refuses a device that did not run the same as the first one with which it shares parts.

    ``differences`` says what two devices ran otherwise. ``earlier`` are parts that an earlier run did: a part's job,
    its device, and what that ran.
    """

    def __init__(
        self, differences: Callable[[Ran, Ran], list[str]], earlier: Iterable[tuple[Job, str, Ran]] = ()
    ) -> None:
        self._differences = differences
        self._first: dict[str, tuple[str, Ran]] = {}
        for job, serial, ran in earlier:
            self._first.setdefault(job.serial, (serial, ran))
        self._admitting = threading.Lock()

    def admit(self, job: Job, serial: str, ran: Ran, keep: Callable[[], Ran]) -> None:
        """Take a part that a device has done: ``keep`` does so, and returns what others are to be like.

        Raises :class:`NotAlike` for a device that ran something else than the first.
        """
        with self._admitting:
            if job.serial not in self._first:
                self._first[job.serial] = (serial, keep())
                return
            first, earlier = self._first[job.serial]
            changed = self._differences(earlier, ran)
            if changed:
                raise NotAlike(
                    f"{serial} is not like {first}, so that their parts make no one result: {'; '.join(changed)}. "
                    "Use devices that are alike, or compare them with --split=each",
                    serial,
                )
            keep()
