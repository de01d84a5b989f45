"""The parts of one evaluation: what is missing of them is done on devices, what is done lies in the run folder."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from evaltools.device.pool import Job
from evaltools.documents import json_as
from evaltools.engine.journal import JOURNAL_NAME, Journal
from evaltools.engine.quiet_latency import QuietTimes
from evaltools.engine.run_folder import decode, digest, journals_of
from evaltools.errors import DataError, OutputError
from evaltools.file_content import content_of
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DevicePart, PartFigures
from evaltools.tasks.shared.merging import QUIET, described_in

RUN: Final = "run"
RECORDS: Final = f"{RUN}/{JOURNAL_NAME}"
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
