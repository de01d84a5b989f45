"""The parts of one evaluation: what is missing of them is done on devices, what is done lies in the run folder."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Console

from evaltools.device.device import Device
from evaltools.device.devices import DevicesUsed
from evaltools.device.part import PartDone, PartWork, StderrLines
from evaltools.device.pool import Alike, Job, PoolOutcome, require_answer, run_jobs
from evaltools.device.python_program import Pythons
from evaltools.documents import json_as
from evaltools.engine.execution import Shard
from evaltools.engine.journal import JOURNAL_NAME, Journal
from evaltools.engine.ledger import Tally
from evaltools.engine.quiet_latency import QuietTimes
from evaltools.engine.run_folder import decode, digest, journals_of
from evaltools.errors import DataError, OutputError
from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK
from evaltools.file_content import content_of
from evaltools.native.logs.delegates import delegate_lines
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DevicePart, LostAttempt, PartFigures
from evaltools.task_kind import RequestKind
from evaltools.tasks.shared.merging import QUIET, described_in, differences_of_runs

RUN: Final = "run"
RECORDS: Final = f"{RUN}/{JOURNAL_NAME}"
WITH_RECORDS: Final = (OK, NOT_MEASURED, EXAMPLES_FAILED)
_FACTS: Final = "part.json"
_POOL: Final = "pool"
_PROGRESS: Final = b'{"phase": "evaluation"'


class KeptPart(Struct, frozen=True):
    """How a part was done, and the device that did it."""

    part: DevicePart
    device: DeviceFacts


class PartsFolder:
    """Parts that are done, each in a folder of its own with its records and ``part.json``."""

    def __init__(self, folder: Path, count: int) -> None:
        self.count = count
        self._folder = folder

    def of(self, job: Job) -> Path:
        """The folder of a part, which may not be there yet."""
        place = _POOL
        if job.serial:
            place = f"{re.sub('[^A-Za-z0-9-]', '_', job.serial)}-{digest([job.serial])[:6]}"
        return self._folder / place / f"shard-{job.index}-of-{self.count}"

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
            return json_as(content_of(path), KeptPart)
        except ValueError as error:
            raise DataError(f"{path} cannot be read: {error}; delete its folder, then go on") from error


class PartProgress(Struct, frozen=True):
    """The progress of a part: finished examples, those of them that failed, and failures by configuration."""

    done: int
    failed_examples: int = 0
    failed: dict[str, int] = field(default_factory=dict)


def progress_of(line: bytes) -> PartProgress | None:
    """The progress of an evaluation in a line; None if it is any other line.

    >>> progress_of(b'{"phase": "evaluation", "done": 20, "total": 50, "failed_examples": 1, "failed": {"test": 1}}')
    PartProgress(done=20, failed_examples=1, failed={'test': 1})
    """
    try:
        return json_as(line, PartProgress) if line.startswith(_PROGRESS) else None
    except ValueError:
        return None


class MissingParts:
    """The parts of an evaluation that devices do with evaltools itself, and which are kept in the run folder.

    ``work`` says what a part is, ``good_codes`` are the exit codes of one that leaves records. Devices must be alike in
    what the records say of configurations. ``on_progress`` gets the progress of all parts together.
    """

    def __init__(
        self,
        kind: RequestKind,
        pythons: Pythons,
        jobs: Sequence[Job],
        kept: PartsFolder,
        examples: int,
        work: Callable[[Shard], PartWork],
        good_codes: Collection[int],
        on_progress: Callable[[Tally], None],
    ) -> None:
        self._kind = kind
        self._pythons = pythons
        self._kept = kept
        self._examples = examples
        self._work = work
        self._good_codes = good_codes
        self._on_progress = on_progress
        done = [job for job in jobs if kept.is_done(job)]
        self._missing = [job for job in jobs if job not in done]
        self._progress = {job: self._finished(job) for job in done}
        self._losses: dict[Job, list[LostAttempt]] = {}
        earlier = ((job, kept.read(job).part.serial, kept.of(job) / RUN) for job in done)
        self._alike = Alike(differences_of_runs, earlier)

    def run(self, devices: DevicesUsed, console: Console) -> PoolOutcome[PartDone]:
        """Do them, as far as the devices can."""
        return run_jobs(self._do, self._missing, self._kept.count, devices, console, self._lose)

    def _do(self, device: Device, job: Job) -> PartDone:
        """One part on one device, with its records, which are kept."""
        program = self._pythons.on(device, self._kind)
        shard = Shard(job.index, self._kept.count)
        most = shard.size_of(self._examples) - 1  # it is whole once its records are here

        def on_line(line: bytes) -> None:
            progress = progress_of(line)
            if progress is not None:
                self._report(job, replace(progress, done=min(progress.done, most)))

        folder = self._kept.unfinished(job)
        done = device.do(self._work(shard), program, folder, StderrLines(on_line))
        if done.code not in self._good_codes:
            device.known.discard(program.folder)  # a package may be gone
        require_answer(done, self._good_codes, RECORDS, "records")
        run = done.folder / RUN
        self._alike.admit(job, device.serial, run, lambda: self._keep(done, job, device.facts))
        self._report(job, self._finished(job))
        return done

    def _keep(self, done: PartDone, job: Job, device: DeviceFacts) -> Path:
        """Keep a part in the run folder; returns where its records are."""
        run = done.folder / RUN
        lines = delegate_lines(f"{part_messages(run)}\n{done.err}")
        lost = tuple(self._losses.get(job, ()))
        part = replace(done.part, delegate_lines=lines, figures=part_figures(run), lost=lost)
        self._kept.keep(job, KeptPart(part, device))
        return self._kept.of(job) / RUN

    def _lose(self, job: Job, attempt: LostAttempt) -> None:
        """Its examples are to be done again."""
        self._report(job, PartProgress(0))
        self._losses.setdefault(job, []).append(attempt)

    def _report(self, job: Job, progress: PartProgress) -> None:
        self._progress[job] = progress
        parts = list(self._progress.values())
        failed: Counter[str] = Counter()
        for part in parts:
            failed.update(part.failed)
        done, failed_examples = sum(part.done for part in parts), sum(part.failed_examples for part in parts)
        self._on_progress(Tally(done, failed_examples, dict(failed)))

    def _finished(self, job: Job) -> PartProgress:
        """Of a part that is done: as many examples failed as for the configuration with the most failures, at least."""
        failed = {figures.configuration: figures.failed for figures in self._kept.read(job).part.figures}
        size = Shard(job.index, self._kept.count).size_of(self._examples)
        return PartProgress(size, max(failed.values(), default=0), failed)


def part_figures(folder: Path) -> tuple[PartFigures, ...]:
    """The figures of every configuration that was measured in the run folder of a part."""
    with journals_of([folder]) as (journal,):
        text = journal.fact(QUIET)
        quiet: QuietTimes | None = None if text is None else decode(text, QuietTimes | None, folder)
        return tuple(
            _figures(journal, entry.name, quiet) for entry in described_in(journal) if entry.status == "measured"
        )


def part_messages(folder: Path) -> str:
    """What native code printed in a part while its models were loaded: the runtime's and the delegates' own words."""
    with journals_of([folder]) as (journal,):
        return "\n".join(entry.runtime.messages for entry in described_in(journal) if entry.runtime is not None)


def _figures(journal: Journal, name: str, quiet: QuietTimes | None) -> PartFigures:
    records = list(journal.read_plainly(name))
    observed = [record.observation for record in records if record.observation is not None]
    times = [time for record in records for time in record.invokes_us]
    ranked = [entry for entry in observed if isinstance(entry, dict) and "rank" in entry]
    return PartFigures(
        configuration=name,
        examples=len(records),
        failed=sum(record.failure is not None for record in records),
        invokes_us=tuple(times if quiet is None else quiet.invokes_us(name)),
        right=sum(entry["rank"] == 0 for entry in ranked) if ranked else None,
    )
