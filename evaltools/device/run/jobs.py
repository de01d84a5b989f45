"""The parts of a run on devices: which there are, what is said of lost ones, what the result tells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, TypeVar

from rich.console import Console

from evaltools.device.adb.errors import DeviceError
from evaltools.device.programs.pool import Job, PoolOutcome
from evaltools.device.run.flags import ProgramName
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DeviceLeftOut, DevicePart, DeviceRun, LostAttempt
from evaltools.text import printable

Done = TypeVar("Done")
Ran = TypeVar("Ran")

SPLIT_EACH: Final = "each"
_LAST_LINES: Final = 3
_FEWEST_PER_PART: Final = 10
_MOST_PER_PART: Final = 500
_PARTS_PER_DEVICE: Final = 4


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
        console.print(f"part {job.index + 1} of {count}: {printable(attempt.reason)} [{attempt.kind}]")

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
