"""What every run on devices has in common: which parts there are, what is said of lost ones, what the result tells."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from rich.console import Console

from evaltools.device.adb.answer import printable
from evaltools.device.adb.errors import DeviceError, DeviceStopped, NotAlike
from evaltools.device.programs.pool import Job, Pool, PoolOutcome
from evaltools.device.run.flags import ProgramName
from evaltools.report.tables.cells import one_line
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DeviceLeftOut, DevicePart, DeviceRun, LostAttempt

Done = TypeVar("Done")
Ran = TypeVar("Ran")

SPLIT_EACH: Final = "each"
_LAST_LINES: Final = 3
_FEWEST_PER_PART: Final = 10
_MOST_PER_PART: Final = 500
_PARTS_PER_DEVICE: Final = 4
_LOOK_S: Final = 0.2


def parts_of(examples: int, asked: int, devices: int) -> int:
    """How many parts to make: as asked for, else few enough to be worth it and small enough to be lost.

    >>> parts_of(200, 0, 2), parts_of(50_000, 0, 1), parts_of(15, 4, 1)
    (8, 100, 4)
    """
    if asked:
        return max(1, min(asked, examples))
    enough = -(-examples // _MOST_PER_PART)
    if devices > 1:
        enough = max(enough, min(_PARTS_PER_DEVICE * devices, examples // _FEWEST_PER_PART))
    return max(1, enough)


def jobs_of(split: str, serials: Sequence[str], count: int) -> list[Job]:
    """The parts: ``count`` for whichever device is free, or as many for every device."""
    return [Job(index, serial) for serial in (serials if split == SPLIT_EACH else [""]) for index in range(count)]


def tell_lost(console: Console, count: int) -> Callable[[Job, LostAttempt], None]:
    """What says on stderr that a device did not finish one of ``count`` parts."""

    def tell(job: Job, attempt: LostAttempt) -> None:
        console.print(f"part {job.index + 1} of {count}: {one_line(attempt.reason)} [{attempt.kind}]")

    return tell


def complete_jobs(jobs: Sequence[Job], done: Collection[Job], outcome: PoolOutcome[Done], step: str = "") -> list[Job]:
    """The parts that make a result: all, or where every device has its own, those of the devices that did all.

    Raises :class:`DeviceError` where there are none; ``step`` says what to do with parts that are done. The reason of
    a single device, which stands on stderr since :func:`tell_lost`, is not repeated.
    """
    if jobs and not jobs[0].serial:
        complete = list(jobs) if all(job in done for job in jobs) else []
    else:
        lacking = {job.serial for job in jobs if job not in done}
        complete = [job for job in jobs if job.serial not in lacking]
    if complete:
        return complete
    missing = [job for job in jobs if job not in done]
    reasons = [entry.reason for entry in outcome.left_out]
    reasons += [attempts[-1].reason for job, attempts in outcome.lost.items() if job in missing]
    kept = f"\n  {len(done)} are done{step}" if done else ""
    said = f": {'; '.join(dict.fromkeys(reasons))}"
    if _is_told(reasons, outcome):
        said = "; the reason stands above"
    raise DeviceError(f"{len(missing)} of {len(jobs)} parts were not done{said}{kept}")


def _is_told(reasons: Sequence[str], outcome: PoolOutcome[Done]) -> bool:
    """Whether there is one device, and the only reason that of a part that it lost."""
    attempts = [attempt for each in outcome.lost.values() for attempt in each]
    is_one_device = len({attempt.serial for attempt in attempts}) == 1
    return is_one_device and len(set(reasons)) == 1 and reasons[0] in [attempt.reason for attempt in attempts]


def device_run_of(
    program: ProgramName,
    split: str,
    devices: Iterable[DeviceFacts],
    parts: Sequence[DevicePart],
    left_out: Iterable[DeviceLeftOut],
) -> DeviceRun:
    """What the result says of devices: those of ``devices`` that did parts, once each."""
    known = {facts.serial: facts for facts in devices}
    serials = dict.fromkeys(part.serial for part in parts)
    return DeviceRun(
        program=program,
        split="each" if split == SPLIT_EACH else "pool",
        devices=tuple(known[serial] for serial in serials if serial in known),
        parts=tuple(parts),
        left_out=tuple(left_out),
    )


def last_lines(text: str, leave_out: str = "") -> str:
    """The last lines that a program printed, safe for a message; those that begin with ``leave_out`` are left out."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not leave_out or not line.startswith(leave_out)]
    return " | ".join(map(printable, kept[-_LAST_LINES:])) or "nothing"


class AlikeCheck(Generic[Ran]):
    """Leaves out devices that run something else than those with which they share the parts of ``pool``.

    ``differences`` says, of two devices and what each ran, what they did otherwise. ``earlier`` are parts that an
    earlier run did, as :meth:`admit` takes them: a part's job, its device, what that ran, and what it lacked.
    """

    def __init__(
        self,
        pool: Pool[Done],
        differences: Callable[[str, Ran, str, Ran], list[str]],
        stop: threading.Event,
        earlier: Iterable[tuple[Job, str, Ran, str]] = (),
    ) -> None:
        self._others: Callable[[str], set[str]] = pool.others
        self._at_work: Callable[[], set[str]] = pool.at_work
        self._differences = differences
        self._stop = stop
        self._lacking: set[str] = set()
        self._done: dict[str, dict[str, Ran]] = {}
        self._changed = threading.Condition()
        for job, serial, ran, lacks in earlier:
            self._done.setdefault(job.serial, {}).setdefault(serial, ran)
            self._lacking |= {serial} if lacks else set()

    def admit(self, job: Job, serial: str, ran: Ran, lacks: str, keep: Callable[[], Ran]) -> None:
        """Take a part that a device has done: ``keep`` does so, and returns what others are to be like.

        ``lacks`` says what the device could not do although another may, empty: nothing. Such a device leaves its part
        to others, and waits until it is known whether those that are at work can do it; where none can, all go on.
        Raises :class:`NotAlike` for a device that is left out, and :class:`DeviceStopped`.
        """
        with self._changed:
            done = self._done.setdefault(job.serial, {})
            if lacks and not job.serial:
                self._lacking.add(serial)
                self._changed.notify_all()
                self._leave_to_others(done, serial, lacks)
            for other, earlier in done.items():
                changed = self._differences(other, earlier, serial, ran)
                if changed:
                    raise NotAlike(
                        f"{serial} is not like {other}, so that their parts make no one result: {'; '.join(changed)}. "
                        "Use devices that are alike, or compare them with --split=each",
                        serial,
                    )
            done[serial] = keep()
            self._changed.notify_all()

    def _leave_to_others(self, done: Mapping[str, Ran], serial: str, lacks: str) -> None:
        """Return where no other device may have what this one lacks, or what is kept decides."""
        verb, named = "may", set[str]()
        while not done and not named and (others := self._others(serial) - self._lacking):
            if others & self._at_work():
                self._changed.wait(_LOOK_S)
                if self._stop.is_set():
                    raise DeviceStopped(f"{serial}: stopped while it waited for others", serial)
            else:
                named = others
        having = (self._others(serial) - self._lacking) & done.keys()
        if having:
            verb, named = "does", having
        if named:
            raise NotAlike(f"{serial} cannot do its part as {' or '.join(sorted(named))} {verb}: {lacks}", serial)


@dataclass(frozen=True)
class CompleteParts(Generic[Done]):
    """The parts that make a result, with what the result says of devices; ``are_all``: no other was to be done."""

    done: Mapping[Job, Done]
    device_run: DeviceRun
    are_all: bool


def complete_parts(
    program: ProgramName,
    split: str,
    devices: Iterable[DeviceFacts],
    jobs: Sequence[Job],
    outcome: PoolOutcome[Done],
    part_of: Callable[[Done], DevicePart],
) -> CompleteParts[Done]:
    """What a pool of devices has done, as far as it makes a result; raises :class:`DeviceError` where nothing does."""
    complete = complete_jobs(jobs, outcome.done, outcome)
    parts = [replace(part_of(outcome.done[job]), lost=tuple(outcome.lost.get(job, ()))) for job in complete]
    device_run = device_run_of(program, split, devices, parts, outcome.left_out)
    return CompleteParts({job: outcome.done[job] for job in complete}, device_run, len(complete) == len(jobs))
