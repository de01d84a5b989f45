"""Runs parts on the devices of a run, and says which of them make a result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.device.device import Device
from evaltools.device.devices import DevicesUsed
from evaltools.device.errors import CommandFailed, DeviceError, ProgramMissing
from evaltools.device.flags import ProgramName
from evaltools.device.part import PartDone
from evaltools.device.pool import Job, Pool, PoolOutcome
from evaltools.device.process import last_lines
from evaltools.exit_codes import USAGE
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DeviceLeftOut, DevicePart, DeviceRun, LostAttempt
from evaltools.text import printable

SPLIT_EACH: Final = "each"
_FEWEST_PER_PART: Final = 10
_MOST_PER_PART: Final = 500
_PARTS_PER_DEVICE: Final = 4
_PROGRESS: Final = '{"phase"'
"""How lines about progress begin."""


Done = TypeVar("Done")


class CompleteParts(Struct, Generic[Done], frozen=True):
    """The parts that make a result, with what the result says of devices; ``are_all``: no other was to be done."""

    done: Mapping[Job, Done]
    device_run: DeviceRun
    are_all: bool


def run_jobs(
    do: Callable[[Device, Job], Done],
    jobs: Sequence[Job],
    count: int,
    devices: DevicesUsed,
    console: Console,
    on_lost: Callable[[Job, LostAttempt], None] = lambda _job, _attempt: None,
) -> PoolOutcome[Done]:
    """Do ``jobs``, of a run in ``count`` parts, as far as the devices can; those that cannot be used are left out.

    What was lost is printed to stderr.
    """

    def do_there(serial: str, job: Job) -> Done:
        return do(devices[serial], job)

    def lost(job: Job, attempt: LostAttempt) -> None:
        on_lost(job, attempt)
        console.print(f"part {job.index + 1} of {count}: {printable(attempt.reason)} [{attempt.kind}]")

    outcome = Pool(devices.serials, jobs, do_there, lambda serial: devices[serial].is_back(), devices.stop, lost).run()
    outcome.left_out[:0] = devices.left_out
    return outcome


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
    outcome = run_jobs(do, jobs, count, devices, console)
    complete = complete_jobs(jobs, outcome.done, outcome)
    parts = [replace(outcome.done[job][0], lost=tuple(outcome.lost.get(job, ()))) for job in complete]
    facts = (devices[serial].facts for serial in devices.serials)
    device_run = device_run_of(name, split, facts, parts, outcome.left_out)
    return CompleteParts({job: outcome.done[job][1] for job in complete}, device_run, len(complete) == len(jobs))


def require_answer(done: PartDone, good_codes: Collection[int], file: str, what: str) -> None:
    """Raise where evaltools on a device did not leave its ``file``: it refused the command, or it failed."""
    serial, quoted = done.part.serial, last_lines(done.err, leave_out=_PROGRESS)
    if done.code == USAGE:
        raise ProgramMissing(f"{serial}: evaltools refused the command there: {quoted}", serial)
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


def jobs_of(split: str, serials: Sequence[str], count: int) -> list[Job]:
    """The parts: ``count`` that any device may do, or with ``--split=each`` ``count`` for every device."""
    return [Job(index, serial) for serial in (serials if split == SPLIT_EACH else [""]) for index in range(count)]


def complete_jobs(jobs: Sequence[Job], done: Collection[Job], outcome: PoolOutcome[Any], step: str = "") -> list[Job]:
    """The parts that the result is made of.

    If any device may do any part, these are all parts, and all must be done. If every device has its own parts, they
    are those of the devices that did all of theirs.

    Raises :class:`DeviceError` where there are none; ``step`` ends its message, and says what becomes of the parts that
    are done. The message repeats no reason that :func:`run_jobs` has just printed for the only device.
    """
    unfinished = {job.serial for job in jobs if job not in done}
    complete = [job for job in jobs if job.serial not in unfinished]
    if complete:
        return complete
    missing = [job for job in jobs if job not in done]
    reasons = [entry.reason for entry in outcome.left_out]
    reasons += [attempts[-1].reason for job, attempts in outcome.lost.items() if job in missing]
    attempts = [attempt for each in outcome.lost.values() for attempt in each]
    is_one_device = len({attempt.serial for attempt in attempts}) == 1
    said = f": {'; '.join(dict.fromkeys(reasons))}"
    if is_one_device and len(set(reasons)) == 1 and reasons[0] in [attempt.reason for attempt in attempts]:
        said = "; the reason stands above"
    kept = f"\n  {len(done)} are done{step}" if done else ""
    raise DeviceError(f"{len(missing)} of {len(jobs)} parts were not done{said}{kept}")


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
