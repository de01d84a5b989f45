"""The one runner of programs on devices: parts are done, a device that is lost or not like the others is left out.

A :class:`DeviceProgram` says what a part is there and what its answer means. Everything else is the same for all: the
devices are found and held by :class:`DevicesUsed`; files go there, a part runs detached, and its results are fetched by
:class:`~evaltools.device.programs.part.PartDevice`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.device.adb.errors import CommandFailed, DeviceError, NotAlike, ProgramMissing
from evaltools.device.adb.process import last_lines
from evaltools.device.programs.part import PartDone
from evaltools.device.programs.pool import Job, Pool, PoolOutcome
from evaltools.device.run.devices import DevicesUsed
from evaltools.device.run.flags import ProgramName
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


class PartAnswer(Protocol):
    """What a program makes of a part that a device has done."""

    @property
    def part(self) -> DevicePart:
        """How it was done there."""


Done = TypeVar("Done", bound=PartAnswer)
Ran = TypeVar("Ran")


class AlikeCheck(Generic[Ran]):
    """Refuses devices that did not run the same as those with which they share parts: the first part decides.

    ``differences`` says, of two devices and what each ran, what they did otherwise. ``earlier`` are parts that an
    earlier run did: a part's job, its device, and what that ran.
    """

    def __init__(
        self, differences: Callable[[str, Ran, str, Ran], list[str]], earlier: Iterable[tuple[Job, str, Ran]] = ()
    ) -> None:
        self._differences = differences
        self._done: dict[str, dict[str, Ran]] = {}
        self._admitting = threading.Lock()
        for job, serial, ran in earlier:
            self._done.setdefault(job.serial, {}).setdefault(serial, ran)

    def admit(self, job: Job, serial: str, ran: Ran, keep: Callable[[], Ran]) -> None:
        """Take a part that a device has done: ``keep`` does so, and returns what others are to be like.

        Raises :class:`NotAlike` for a device that ran something else than another one.
        """
        with self._admitting:
            done = self._done.setdefault(job.serial, {})
            for other, earlier in done.items():
                changed = self._differences(other, earlier, serial, ran)
                if changed:
                    raise NotAlike(
                        f"{serial} is not like {other}, so that their parts make no one result: {'; '.join(changed)}. "
                        "Use devices that are alike, or compare them with --split=each",
                        serial,
                    )
            done[serial] = keep()


class DeviceProgram(ABC, Generic[Done, Ran]):
    """A program that does parts on devices. ``Ran`` is what devices that share the parts must be alike in."""

    @abstractmethod
    def run(self, devices: DevicesUsed, serial: str, job: Job, alike: AlikeCheck[Ran]) -> Done:
        """Do a part on a device and read its answer; ``alike`` is asked before it is kept, where parts make one result.

        Raises :class:`DeviceError` where the device did not finish.
        """

    def differences(self, _other: str, _earlier: Ran, _serial: str, _own: Ran) -> list[str]:
        """In words, what a device ran otherwise than an earlier one, so that their parts make no one result."""
        return []

    def done_before(self) -> Iterable[tuple[Job, str, Ran]]:
        """Parts that an earlier run did, as :class:`AlikeCheck` takes them."""
        return ()

    def lost(self, job: Job, attempt: LostAttempt) -> None:
        """Take note that a device did not finish a part; people are told by the runner."""


def run_jobs(
    program: DeviceProgram[Done, Ran], jobs: Sequence[Job], count: int, devices: DevicesUsed, console: Console
) -> PoolOutcome[Done]:
    """Do ``jobs``, of a run in ``count`` parts, as far as the devices can; those that cannot be used are left out."""
    tell = tell_lost(console, count)

    def do(serial: str, job: Job) -> Done:
        return program.run(devices, serial, job, alike)

    def on_lost(job: Job, attempt: LostAttempt) -> None:
        program.lost(job, attempt)
        tell(job, attempt)

    alike = AlikeCheck(program.differences, program.done_before())
    outcome = Pool(devices.serials, jobs, do, devices.is_back, devices.stop, on_lost).run()
    outcome.left_out[:0] = devices.left_out
    return outcome


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


class CompleteParts(Struct, Generic[Done], frozen=True):
    """The parts that make a result, with what the result says of devices; ``are_all``: no other was to be done."""

    done: Mapping[Job, Done]
    device_run: DeviceRun
    are_all: bool


def run_on_devices(
    program: DeviceProgram[Done, Ran], name: ProgramName, split: str, count: int, devices: DevicesUsed, console: Console
) -> CompleteParts[Done]:
    """Do ``count`` parts, or with ``split`` each as many on every device.

    Raises :class:`DeviceError` where nothing makes a result.
    """
    jobs = jobs_of(split, devices.serials, count)
    outcome = run_jobs(program, jobs, count, devices, console)
    complete = complete_jobs(jobs, outcome.done, outcome)
    parts = [replace(outcome.done[job].part, lost=tuple(outcome.lost.get(job, ()))) for job in complete]
    facts = map(devices.facts_of, devices.serials)
    device_run = device_run_of(name, split, facts, parts, outcome.left_out)
    return CompleteParts({job: outcome.done[job] for job in complete}, device_run, len(complete) == len(jobs))


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


def complete_jobs(jobs: Sequence[Job], done: Collection[Job], outcome: PoolOutcome[Any], step: str = "") -> list[Job]:
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


def _is_already_printed(reasons: Sequence[str], outcome: PoolOutcome[Any]) -> bool:
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
