"""The parts of one evaluation: what is missing of them is done on devices, what is done lies in the run folder."""

from __future__ import annotations

import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from evaltools.cli.device.devices_used import DevicesUsed
from evaltools.cli.device.jobs import last_lines, tell_lost, wait_for_others
from evaltools.cli.shared.progress import show_progress
from evaltools.device.adb.errors import CommandFailed, NotAlike, ProgramMissing
from evaltools.device.programs.part import PartDone, PartProgress, PartWork, ProgressReader
from evaltools.device.programs.pool import Job, Pool, PoolOutcome
from evaltools.engine import Shard, Tally
from evaltools.engine.journal import JOURNAL_NAME
from evaltools.engine.run_folder import digest
from evaltools.errors import DataError, OutputError
from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK, USAGE
from evaltools.native.logs.delegates import delegate_lines
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DevicePart, LostAttempt
from evaltools.task_kind import RequestKind
from evaltools.tasks.shared.part_figures import not_measured, part_figures, part_messages
from evaltools.tasks.shared.run_identity import differences_of_runs

RUN: Final = "run"
RECORDS: Final = f"{RUN}/{JOURNAL_NAME}"
_FACTS: Final = "part.json"
_POOL: Final = "pool"
WITH_RECORDS: Final = (OK, NOT_MEASURED, EXAMPLES_FAILED)
_PROGRESS: Final = '{"phase"'


@dataclass(frozen=True)
class KeptPart:
    """How a part was done, and the device that did it."""

    part: DevicePart
    device: DeviceFacts


class PartsFolder:
    """Parts that are done, each in a folder of its own with its records and ``part.json``."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._count = count

    def of(self, job: Job) -> Path:
        """The folder of a part, which may not be there yet."""
        place = _POOL
        if job.serial:
            place = f"{re.sub('[^A-Za-z0-9-]', '_', job.serial)}-{digest([job.serial])[:6]}"
        return self._folder / place / f"shard-{job.index}-of-{self._count}"

    def unfinished(self, job: Job) -> Path:
        """Where the results of a part are put before it is done; empty."""
        path = self.of(job).with_suffix(".part")
        shutil.rmtree(path, ignore_errors=True)
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror}; make room there") from error
        return path

    def keep(self, job: Job, kept: KeptPart) -> None:
        """Say that a part is done; from here on it is not done again."""
        unfinished = self.of(job).with_suffix(".part")
        try:
            (unfinished / _FACTS).write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
            unfinished.rename(self.of(job))
        except OSError as error:
            raise OutputError(
                f"{unfinished} cannot be written: {error.strerror}. Parts that are done are kept: make room, then give "
                "the same command with the same --run_dir"
            ) from error

    def is_done(self, job: Job) -> bool:
        """Whether a part was done, perhaps by an earlier run."""
        return (self.of(job) / _FACTS).exists()

    def read(self, job: Job) -> KeptPart:
        """How a part was done; raises :class:`DataError` where its file is damaged."""
        path = self.of(job) / _FACTS
        try:
            return msgspec.json.decode(path.read_bytes(), type=KeptPart)
        except (OSError, RecursionError, msgspec.DecodeError) as error:
            raise DataError(f"{path} cannot be read: {error}; delete its folder, then go on") from error


class Parts:
    """Runs the parts of an evaluation on devices. ``work`` says what a part is."""

    def __init__(
        self,
        jobs: Sequence[Job],
        count: int,
        examples: int,
        work: Callable[[Shard], PartWork],
        kept: PartsFolder,
        devices: DevicesUsed,
        kind: RequestKind,
        console: Console,
        good_codes: Collection[int] = WITH_RECORDS,
    ) -> None:
        self._jobs = tuple(jobs)
        self._count = count
        self._examples = examples
        self._work = work
        self._kept = kept
        self._devices = devices
        self._kind = kind
        self._console = console
        self._good_codes = good_codes
        self._keeping = threading.Condition()
        self._progress: dict[Job, PartProgress] = {}
        self._losses: dict[Job, list[LostAttempt]] = {}
        self._lacking: set[str] = set()
        self._pool: Pool[PartDone] | None = None
        self._tell_lost = tell_lost(console, count)

    def run(self, progress: str) -> PoolOutcome[PartDone]:
        """Do the parts that are missing, as far as the devices can; ``progress`` is the value of ``--progress``."""
        missing = [job for job in self._jobs if not self._kept.is_done(job)]
        self._progress = {job: self._whole(job) for job in self._jobs if job not in missing}
        total = sum(map(self._size, self._jobs))
        with show_progress("on devices", total, self._console, progress) as on_progress:

            def tell(job: Job, progress: PartProgress) -> None:
                self._progress[job] = progress
                on_progress(together(list(self._progress.values())))

            self._pool = self._devices.pool(missing, partial(self._do, tell), partial(self._lost, tell))
            return self._pool.run()

    def _do(self, tell: Callable[[Job, PartProgress], None], serial: str, job: Job) -> PartDone:
        """One part on one device, kept in the run folder."""
        work = self._work(self._shard(job))
        program = self._devices.python(serial, self._kind)
        size = self._size(job)
        reader = ProgressReader(lambda progress: tell(job, replace(progress, done=min(progress.done, size - 1))))
        done = self._devices.device(serial).do(work, program, self._kept.unfinished(job), reader)
        _require_records(done, serial, self._good_codes)
        with self._keeping:
            self._require_alike(done, job, serial)
            figures = part_figures(done.folder / RUN)
            lines = delegate_lines(f"{part_messages(done.folder / RUN)}\n{done.err}")
            part = replace(done.part, delegate_lines=lines, figures=figures, lost=tuple(self._losses.get(job, ())))
            self._kept.keep(job, KeptPart(part, self._devices.facts_of(serial)))
            self._keeping.notify_all()
        tell(job, self._whole(job))
        return done

    def _lost(self, tell: Callable[[Job, PartProgress], None], job: Job, attempt: LostAttempt) -> None:
        tell(job, PartProgress(0))
        self._losses.setdefault(job, []).append(attempt)
        self._tell_lost(job, attempt)

    def _require_alike(self, done: PartDone, job: Job, serial: str) -> None:
        """Raise :class:`NotAlike` where a device ran something else than those that did the other parts.

        The first part that is kept is what others are like. One that lacks a configuration is not kept first while
        there are devices that may have it: it waits for those that are at work, and leaves its part to the others.
        """
        lacking = not_measured(done.folder / RUN)
        if lacking and not job.serial and self._pool is not None:
            self._lacking.add(serial)
            if wait_for_others(
                self._pool,
                serial,
                self._lacking,
                self._keeping,
                lambda: self._earlier(job) is not None,
                self._devices.stop,
            ):
                raise NotAlike(f"{serial} cannot do its part as others may: {lacking}", serial)
        earlier = self._earlier(job)
        if earlier is None:
            return
        changed = differences_of_runs(self._kept.of(earlier) / RUN, done.folder / RUN)
        if changed:
            raise NotAlike(
                f"{serial} is not like {self._kept.read(earlier).part.serial}, so that their parts make no one result: "
                f"{'; '.join(changed)}. Use devices that are alike, or compare them with --split=each",
                serial,
            )

    def _earlier(self, job: Job) -> Job | None:
        """A part that is done, and must be like another."""
        return next((other for other in self._jobs if other.serial == job.serial and self._kept.is_done(other)), None)

    def _shard(self, job: Job) -> Shard:
        return Shard(job.index, self._count)

    def _size(self, job: Job) -> int:
        return self._shard(job).size_of(self._examples)

    def _whole(self, job: Job) -> PartProgress:
        """Of a part that is done: as many examples failed as for the configuration with the most failures, at least."""
        failed = {figures.configuration: figures.failed for figures in self._kept.read(job).part.figures}
        return PartProgress(self._size(job), max(failed.values(), default=0), failed)


def together(parts: Sequence[PartProgress]) -> Tally:
    """The progress of all parts.

    >>> together([PartProgress(5, 1, {"test": 1}), PartProgress(2, 1, {"test": 1, "reference": 1})])
    Tally(done=7, failed_examples=2, failed={'test': 2, 'reference': 1})
    """
    failed: Counter[str] = Counter()
    for part in parts:
        failed.update(part.failed)
    return Tally(sum(part.done for part in parts), sum(part.failed_examples for part in parts), dict(failed))


def _require_records(done: PartDone, serial: str, good_codes: Collection[int]) -> None:
    """Raise where the command on the device gave no records: it refused the command, or it failed."""
    quoted = last_lines(done.err, leave_out=_PROGRESS)
    if done.code == USAGE:
        raise ProgramMissing(f"{serial}: evaltools refused the command there: {quoted}", serial)
    if done.code not in good_codes or not (done.folder / RECORDS).is_file():
        raise CommandFailed(
            f"{serial}: evaltools ended there with exit code {done.code} and no records; it printed last: {quoted}",
            serial,
        )
