"""The parts of a run on devices: which there are, messages about lost ones, and what the result says of devices."""

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


def jobs_of(split: str, serials: Sequence[str], count: int) -> list[Job]:
    """The parts: ``count`` that any device may do, or with ``--split=each`` ``count`` for every device."""
    return [Job(index, serial) for serial in (serials if split == SPLIT_EACH else [""]) for index in range(count)]


def tell_lost(console: Console, count: int) -> Callable[[Job, LostAttempt], None]:
    """A callback that prints on stderr that a device did not finish one of ``count`` parts, and why."""

    def tell(job: Job, attempt: LostAttempt) -> None:
        console.print(f"part {job.index + 1} of {count}: {printable(attempt.reason)} [{attempt.kind}]")

    return tell


def complete_jobs(jobs: Sequence[Job], done: Collection[Job], outcome: PoolOutcome[Done], step: str = "") -> list[Job]:
    """The parts that the result is made of.

    If any device may do any part, these are all parts, and all must be done. If every device has its own parts, they
    are those of the devices that did all of theirs.

    Raises :class:`DeviceError` where there are none; ``step`` ends its message, and says what becomes of the parts that
    are done. The message repeats no reason that :func:`tell_lost` has just printed for the only device.
    """
    if jobs and not jobs[0].serial:
        complete = list(jobs) if all(job in done for job in jobs) else []
    else:
        unfinished_devices = {job.serial for job in jobs if job not in done}
        complete = [job for job in jobs if job.serial not in unfinished_devices]
    if complete:
        return complete
    missing = [job for job in jobs if job not in done]
    reasons = [entry.reason for entry in outcome.left_out]
    reasons += [attempts[-1].reason for job, attempts in outcome.lost.items() if job in missing]
    kept = f"\n  {len(done)} are done{step}" if done else ""
    said = f": {'; '.join(dict.fromkeys(reasons))}"
    if _is_already_printed(reasons, outcome):
        said = "; the reason stands above"
    raise DeviceError(f"{len(missing)} of {len(jobs)} parts were not done{said}{kept}")


def _is_already_printed(reasons: Sequence[str], outcome: PoolOutcome[Done]) -> bool:
    """Whether :func:`tell_lost` has printed all ``reasons``: one device lost parts, and all for the same reason."""
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


def last_lines(text: str, leave_out: str = "") -> str:
    """The last three lines that a program printed, on one line for a message; "nothing" if there are none.

    Blank lines are skipped, as are lines that begin with ``leave_out``, unless that is empty.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not leave_out or not line.startswith(leave_out)]
    return " | ".join(map(printable, kept[-_LAST_LINES:])) or "nothing"
