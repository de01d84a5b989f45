"""The parts of one evaluation: what is missing of them is done on devices, what is done lies in the run folder."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from evaltools.device.programs.part import PartDone, PartProgress, PartWork, ProgressReader
from evaltools.device.programs.pool import Job
from evaltools.device.run.devices import DevicesUsed
from evaltools.device.run.runner import AlikeCheck, DeviceProgram, require_answer
from evaltools.documents import json_as
from evaltools.engine.execution import Shard
from evaltools.engine.journal import JOURNAL_NAME, Journal
from evaltools.engine.ledger import Tally
from evaltools.engine.quiet_latency import QuietTimes
from evaltools.engine.run_folder import decode, digest, journals_of
from evaltools.errors import DataError, OutputError
from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK
from evaltools.native.logs.delegates import delegate_lines
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DevicePart, LostAttempt, PartFigures
from evaltools.task_kind import RequestKind
from evaltools.tasks.shared.merging import QUIET, described_in, differences_of_runs

RUN: Final = "run"
RECORDS: Final = f"{RUN}/{JOURNAL_NAME}"
_FACTS: Final = "part.json"
_POOL: Final = "pool"
WITH_RECORDS: Final = (OK, NOT_MEASURED, EXAMPLES_FAILED)


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
            return json_as(path.read_bytes(), KeptPart)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read: {error}; delete its folder, then go on") from error


class EvaltoolsProgram(DeviceProgram[PartDone, Path]):
    """Evaltools itself, which leaves records. ``work`` says what a part is.

    Devices must be alike in what the records say of configurations.
    """

    def __init__(
        self,
        kind: RequestKind,
        jobs: Sequence[Job],
        kept: PartsFolder,
        examples: int,
        work: Callable[[Shard], PartWork],
        good_codes: Collection[int],
        on_progress: Callable[[Tally], None],
    ) -> None:
        self._examples = examples
        self._work = work
        self._kept = kept
        self._kind = kind
        self._on_progress = on_progress
        self._good_codes = good_codes
        self._before = [job for job in jobs if kept.is_done(job)]
        self._progress = {job: self._whole(job) for job in self._before}
        self._losses: dict[Job, list[LostAttempt]] = {}

    def run(self, devices: DevicesUsed, serial: str, job: Job, alike: AlikeCheck[Path]) -> PartDone:
        """One part on one device, with its records, which are kept."""
        program = devices.python(serial, self._kind)
        size = self._size(job)
        reader = ProgressReader(lambda progress: self._tell(job, replace(progress, done=min(progress.done, size - 1))))
        work = self._work(self._shard(job))
        done = devices.device(serial).do(work, program, self._kept.unfinished(job), reader)
        if done.code not in self._good_codes:
            devices.check_python_again(serial)
        require_answer(done, self._good_codes, RECORDS, "records")
        folder = done.folder / RUN
        alike.admit(job, serial, folder, lambda: self._keep(done, job, devices.facts_of(serial)))
        self._tell(job, self._whole(job))
        return done

    def differences(self, _other: str, earlier: Path, _serial: str, own: Path) -> list[str]:
        """What keeps their records from being of one run."""
        return differences_of_runs(earlier, own)

    def done_before(self) -> Iterator[tuple[Job, str, Path]]:
        """The parts that the run folder has."""
        for job in self._before:
            yield job, self._kept.read(job).part.serial, self._kept.of(job) / RUN

    def lost(self, job: Job, attempt: LostAttempt) -> None:
        """Its examples are to be done again."""
        self._tell(job, PartProgress(0))
        self._losses.setdefault(job, []).append(attempt)

    def _tell(self, job: Job, progress: PartProgress) -> None:
        self._progress[job] = progress
        self._on_progress(together(list(self._progress.values())))

    def _keep(self, done: PartDone, job: Job, device: DeviceFacts) -> Path:
        """Keep a part in the run folder; returns where its records are."""
        figures = part_figures(done.folder / RUN)
        lines = delegate_lines(f"{part_messages(done.folder / RUN)}\n{done.err}")
        part = replace(done.part, delegate_lines=lines, figures=figures, lost=tuple(self._losses.get(job, ())))
        self._kept.keep(job, KeptPart(part, device))
        return self._kept.of(job) / RUN

    def _shard(self, job: Job) -> Shard:
        return Shard(job.index, self._kept.count)

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
