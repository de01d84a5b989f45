"""The records of an evaluation that devices have done: kept in the run folder, a folder for each device."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from evaltools.device.work import RUN
from evaltools.documents import json_as
from evaltools.engine.facts import CONFIGURATIONS
from evaltools.engine.journal import JOURNAL_NAME, read_journal
from evaltools.engine.run_folder import digest
from evaltools.errors import DataError, OutputError
from evaltools.file_content import content_of
from evaltools.result.device import DeviceFacts, DeviceWork

RECORDS: Final = f"{RUN}/{JOURNAL_NAME}"
_FACTS: Final = "device.json"
_PROGRESS: Final = b'{"phase": "evaluation"'


class KeptWork(Struct, frozen=True):
    """How the work was done, and the device that did it."""

    work: DeviceWork
    device: DeviceFacts


class KeptRecords:
    """What devices have done, each in a folder of its own with its records and ``device.json``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, serial: str) -> Path:
        """The folder of a device, which may not be there yet."""
        return self._folder / f"{re.sub('[^A-Za-z0-9-]', '_', serial)}-{digest([serial])[:6]}"

    def unfinished(self, serial: str) -> Path:
        """Where results are put before the work is done; empty."""
        path = self.of(serial).with_suffix(".part")
        shutil.rmtree(path, ignore_errors=True)
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror}; make room there") from error
        return path

    def keep(self, kept: KeptWork) -> None:
        """Say that a device has done its work; from here on it is not done again."""
        serial = kept.work.serial
        unfinished = self.of(serial).with_suffix(".part")
        try:
            (unfinished / _FACTS).write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
            unfinished.rename(self.of(serial))
        except OSError as error:
            raise OutputError(
                f"{unfinished} cannot be written: {error.strerror}. What other devices have done is kept: make room, "
                "then give the same command with the same --run_dir"
            ) from error

    def is_done(self, serial: str) -> bool:
        """Whether a device has done its work, perhaps in an earlier run."""
        return (self.of(serial) / _FACTS).exists()

    def read(self, serial: str) -> KeptWork:
        """How a device did its work; raises :class:`DataError` where the file is damaged."""
        path = self.of(serial) / _FACTS
        try:
            return json_as(content_of(path), KeptWork)
        except ValueError as error:
            raise DataError(f"{path} cannot be read: {error}; delete its folder, then go on") from error


class Progress(Struct, frozen=True):
    """The progress of a device: finished examples, those of them that failed, and failures by configuration."""

    done: int
    failed_examples: int = 0
    failed: dict[str, int] = field(default_factory=dict)


def progress_of(line: bytes) -> Progress | None:
    """The progress of an evaluation in a line; None if it is any other line.

    >>> progress_of(b'{"phase": "evaluation", "done": 20, "total": 50, "failed_examples": 1, "failed": {"test": 1}}')
    Progress(done=20, failed_examples=1, failed={'test': 1})
    """
    try:
        return json_as(line, Progress) if line.startswith(_PROGRESS) else None
    except ValueError:
        return None


def messages_in(folder: Path) -> str:
    """What native code printed while the models of a run were loaded: the runtime's and the delegates' own words."""
    described = CONFIGURATIONS.read(read_journal(folder)) or []
    return "\n".join(entry.runtime.messages for entry in described if entry.runtime is not None)
