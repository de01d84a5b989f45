"""The parts of one run, done by whichever device is free; a part that a device does not finish is done again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Console

from evaltools.device.device import Device
from evaltools.device.devices import DevicesUsed
from evaltools.device.errors import MAY_PASS, CommandFailed, DeviceError, DeviceStopped
from evaltools.device.flags import ProgramName
from evaltools.device.part import PartDone
from evaltools.device.process import last_lines
from evaltools.exit_codes import USAGE
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DeviceLeftOut, DevicePart, DeviceRun, LostAttempt
from evaltools.text import printable

Done = TypeVar("Done")
Ran = TypeVar("Ran")

SPLIT_EACH: Final = "each"
_FEWEST_PER_PART: Final = 10
_MOST_PER_PART: Final = 500
_PARTS_PER_DEVICE: Final = 4
_PROGRESS: Final = '{"phase"'
"""How lines about progress begin."""
MOST_ATTEMPTS: Final = 4
"""A part that was lost so often is given up: it may be what kills the devices. A device that cannot work is no loss."""
MOST_LOST_IN_A_ROW: Final = 3
"""A device that lost so many parts without finishing one is left out."""
_WORTH_ANOTHER_TRY: Final = (*MAY_PASS, CommandFailed)
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
    """Does ``do(device, job)`` for every job of a run in ``count`` parts, one at a time on each device.

    ``do`` raises :class:`DeviceError` where the device did not finish, and is called from the devices' threads, as is
    ``on_lost`` for every lost attempt, which is printed, too.
    """

    def __init__(
        self,
        devices: DevicesUsed,
        jobs: Sequence[Job],
        count: int,
        do: Callable[[Device, Job], Done],
        console: Console,
        on_lost: Callable[[Job, LostAttempt], None] = lambda _job, _attempt: None,
    ) -> None:
        self._devices = devices
        self._waiting = list(jobs)
        self._running: set[Job] = set()
        self._tries: Counter[Job] = Counter()
        self._count = count
        self._do = do
        self._console = console
        self._stop = devices.stop
        self._on_lost = on_lost
        self._outcome: PoolOutcome[Done] = PoolOutcome(left_out=list(devices.left_out))
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def run(self) -> PoolOutcome[Done]:
        """Do all jobs, as far as the devices can.

        Raises errors of ``do`` that are no :class:`DeviceError`, and :class:`KeyboardInterrupt`; before that it asks
        the devices to stop, and waits for them.
        """
        devices = [self._devices[serial] for serial in self._devices.serials]
        threads = [threading.Thread(target=self._work, args=(device,), name=device.serial) for device in devices]
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

    def _work(self, device: Device) -> None:
        """The thread of one device; an error that is not a device's stops the other devices, too."""
        try:
            self._do_jobs(device)
        except BaseException as error:
            with self._changing():
                self._error = self._error or error
                self._stop.set()

    def _do_jobs(self, device: Device) -> None:
        serial, lost_in_a_row = device.serial, 0
        while (job := self._take(serial)) is not None:
            started = time.monotonic()
            try:
                done = self._do(device, job)
            except DeviceStopped:
                with self._changing():
                    self._running.discard(job)
                return
            except DeviceError as error:
                lost_in_a_row += 1
                attempt = LostAttempt(serial, error.kind, str(error), round(time.monotonic() - started, 3))
                may_pass = isinstance(error, _WORTH_ANOTHER_TRY)
                self._lose(job, attempt, may_pass)
                if not (may_pass and lost_in_a_row < MOST_LOST_IN_A_ROW and device.is_back()):
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
        self._console.print(f"part {job.index + 1} of {self._count}: {printable(attempt.reason)} [{attempt.kind}]")
        with self._changing():
            self._outcome.lost.setdefault(job, []).append(attempt)
            self._tries[job] += may_be_its_fault
            self._running.discard(job)
            if self._tries[job] < MOST_ATTEMPTS:
                self._waiting.append(job)

    def _leave_out(self, attempt: LostAttempt) -> None:
        """Leave a device out, unless everything is to stop, with what only it could do."""
        if not self._stop.is_set():
            with self._changing():
                self._outcome.left_out.append(DeviceLeftOut(attempt.serial, attempt.reason))
                self._waiting = [job for job in self._waiting if job.serial != attempt.serial]


class Alike(Generic[Ran]):
    """Refuses a device that did not run the same as the first one with which it shares parts.

    ``differences`` says what two devices ran otherwise.
    """

    def __init__(self, differences: Callable[[Ran, Ran], Sequence[str]]) -> None:
        self._differences = differences
        self._first: dict[str, tuple[str, Ran]] = {}

    def require(self, job: Job, serial: str, ran: Ran) -> None:
        """Raise :class:`DeviceError` for a device that ran something else in its part than the first one did."""
        first, earlier = self._first.setdefault(job.serial, (serial, ran))
        changed = self._differences(earlier, ran)
        if changed:
            raise DeviceError(
                f"{serial} is not like {first}, so that their parts make no one result: {'; '.join(changed)}. "
                "Use devices that are alike, or compare them with --split=each",
                serial,
            )


class CompleteParts(Struct, Generic[Done], frozen=True):
    """The parts that make a result, with what the result says of devices; ``are_all``: no other was to be done."""

    done: Mapping[Job, Done]
    device_run: DeviceRun
    are_all: bool


def run_on_devices(
    do: Callable[[Device, Job], tuple[DevicePart, Done]],
    name: ProgramName,
    split: str,
    count: int,
    devices: DevicesUsed,
    console: Console,
) -> CompleteParts[Done]:
    """Do ``count`` parts, or with ``split`` each as many on every device; ``do`` says how a part was done there, too.

    Raises :class:`DeviceError` where nothing makes a result.
    """
    jobs = jobs_of(split, devices.serials, count)
    outcome = Pool(devices, jobs, count, do, console).run()
    complete = complete_jobs(jobs, outcome.done, outcome)
    parts = [replace(outcome.done[job][0], lost=tuple(outcome.lost.get(job, ()))) for job in complete]
    facts = (devices[serial].facts for serial in devices.serials)
    device_run = device_run_of(name, split, facts, parts, outcome.left_out)
    return CompleteParts({job: outcome.done[job][1] for job in complete}, device_run, len(complete) == len(jobs))


def require_answer(done: PartDone, good_codes: Collection[int], file: str, what: str) -> None:
    """Raise where evaltools on a device did not leave its ``file``: it refused the command, or it failed."""
    serial, quoted = done.part.serial, last_lines(done.err, leave_out=_PROGRESS)
    if done.code == USAGE:
        raise DeviceError(f"{serial}: evaltools refused the command there: {quoted}", serial)
    if done.code not in good_codes or not (done.folder / file).is_file():
        raise CommandFailed(
            f"{serial}: evaltools ended there with exit code {done.code} and no {what}; it printed last: {quoted}",
            serial,
        )


def parts_of(examples: int, asked: int, devices: int) -> int:
    """The number of parts, at least 1, into which ``examples`` examples are divided.

    ``asked`` is the number that the user stated, 0 for none; it is never more than the number of examples. Otherwise
    there are as many parts as keep each at 500 examples or fewer, since a part that a device loses is done again. With
    several ``devices`` there are up to four parts per device, as long as each has 10 examples or more.

    >>> parts_of(200, 0, 2), parts_of(50_000, 0, 1), parts_of(15, 4, 1)
    (8, 100, 4)
    """
    if asked:
        return max(1, min(asked, examples))
    enough = -(-examples // _MOST_PER_PART)
    if devices > 1:
        enough = max(enough, min(_PARTS_PER_DEVICE * devices, examples // _FEWEST_PER_PART))
    return max(1, enough)


def jobs_of(split: str, serials: Iterable[str], count: int) -> list[Job]:
    """The parts: ``count`` that any device may do, or with ``--split=each`` ``count`` for every device."""
    return [Job(index, serial) for serial in (serials if split == SPLIT_EACH else [""]) for index in range(count)]


def complete_jobs(jobs: Sequence[Job], done: Collection[Job], outcome: PoolOutcome[Any], step: str = "") -> list[Job]:
    """The parts that the result is made of.

    If any device may do any part, these are all parts, and all must be done. If every device has its own parts, they
    are those of the devices that did all of theirs.

    Raises :class:`DeviceError` where there are none; ``step`` ends its message, and says what becomes of the parts that
    are done.
    """
    unfinished = {job.serial for job in jobs if job not in done}
    complete = [job for job in jobs if job.serial not in unfinished]
    if complete:
        return complete
    missing = [job for job in jobs if job not in done]
    reasons = [entry.reason for entry in outcome.left_out]
    reasons += [attempts[-1].reason for job, attempts in outcome.lost.items() if job in missing]
    kept = f"\n  {len(done)} are done{step}" if done else ""
    raise DeviceError(f"{len(missing)} of {len(jobs)} parts were not done: {'; '.join(dict.fromkeys(reasons))}{kept}")


def device_run_of(
    program: ProgramName,
    split: str,
    devices: Iterable[DeviceFacts],
    parts: Sequence[DevicePart],
    left_out: Iterable[DeviceLeftOut],
) -> DeviceRun:
    """What the result says of devices. Of ``devices`` it names those that did parts, each once."""
    known = {facts.serial: facts for facts in devices}
    serials = dict.fromkeys(part.serial for part in parts)
    return DeviceRun(
        program=program,
        split="each" if split == SPLIT_EACH else "pool",
        devices=tuple(known[serial] for serial in serials if serial in known),
        parts=tuple(parts),
        left_out=tuple(left_out),
    )
