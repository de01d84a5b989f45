"""The records of an evaluation that devices have done: kept in the run folder, a folder for each device."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from evaltools.documents import json_as
from evaltools.engine.facts import CONFIGURATIONS
from evaltools.engine.journal import JOURNAL_NAME, read_journal
from evaltools.engine.ledger import Tally
from evaltools.engine.run_folder import digest
from evaltools.errors import DataError, OutputError
from evaltools.file_content import content_of
from evaltools.result.device import DeviceFacts, DeviceWork

RUN: Final = "run"
"""The run folder, in the folder of a device here, and in the folder that a program works in there."""
RECORDS: Final = f"{RUN}/{JOURNAL_NAME}"
_KEPT: Final = "device.json"
_PROGRESS: Final = b'{"phase": "evaluation"'


class KeptWork(Struct, frozen=True):
    """How the work was done, and the device that did it."""

    work: DeviceWork
    device: DeviceFacts


def folder_of(run_dir: Path, serial: str) -> Path:
    """The folder with the records of a device, which may not be there yet."""
    return run_dir / f"{re.sub('[^A-Za-z0-9-]', '_', serial)}-{digest([serial])[:6]}"


def keep(folder: Path, kept: KeptWork) -> None:
    """Say that a device has done its work, whose records lie in its folder; from here on it is not done again."""
    file = folder / _KEPT
    unfinished = file.with_suffix(".part")
    try:
        unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
        unfinished.rename(file)
    except OSError as error:
        raise OutputError(
            f"{file} cannot be written: {error.strerror}. What other devices have done is kept: make room, then give "
            "the same command with the same --run_dir"
        ) from error


def is_kept(folder: Path) -> bool:
    """Whether a device has done its work, perhaps in an earlier run."""
    return (folder / _KEPT).exists()


def read_kept(folder: Path) -> KeptWork:
    """How a device did its work; raises :class:`DataError` where the file is damaged."""
    file = folder / _KEPT
    try:
        return json_as(content_of(file), KeptWork)
    except ValueError as error:
        raise DataError(f"{file} cannot be read: {error}; delete its folder, then go on") from error


def progress_of(line: bytes) -> Tally | None:
    """The progress of an evaluation in a line; None if it is any other line.

    >>> progress_of(b'{"phase": "evaluation", "done": 20, "total": 50, "failed_examples": 1, "failed": {"test": 1}}')
    Tally(done=20, failed_examples=1, failed={'test': 1})
    """
    try:
        return json_as(line, Tally) if line.startswith(_PROGRESS) else None
    except ValueError:
        return None


def together(each: list[Tally]) -> Tally:
    """The progress of several devices."""
    failed = {name for one in each for name in one.failed}
    return Tally(
        sum(one.done for one in each),
        sum(one.failed_examples for one in each),
        {name: sum(one.failed.get(name, 0) for one in each) for name in sorted(failed)},
    )


def messages_in(folder: Path) -> str:
    """What native code printed while the models of a run were loaded: the runtime's and the delegates' own words."""
    described = CONFIGURATIONS.read(read_journal(folder)) or []
    return "\n".join(entry.runtime.messages for entry in described if entry.runtime is not None)
