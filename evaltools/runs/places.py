"""A run at another place than this process: what is asked of it, how a process here does it, how far it is.

A place carries out a request for its records alone, which :func:`~evaltools.runs.evaluate.measure` makes a result of;
see :mod:`~evaltools.runs.at_places` for places of this computer, :mod:`evaltools.device.evaluation` for devices.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.arm64.box import ANY_CORE, is_arm64, users_box
from evaltools.command import TaskCommand
from evaltools.documents import json_as
from evaltools.engine.facts import CONFIGURATIONS
from evaltools.engine.journal import read_journal
from evaltools.engine.ledger import Tally
from evaltools.engine.run_folder import digest
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.exit_codes import EXAMPLES_FAILED, INTERRUPTED, MEASURED, NOT_MEASURED, OK, USAGE
from evaltools.known_tasks import command_named
from evaltools.report.files.evaluation import planned_files, planned_files_of_task
from evaltools.request import Request
from evaltools.runs.first_look import check_on_host
from evaltools.runs.handing_over import Ended, Start, ending_in_words, run_in_own_process
from evaltools.runs.task_run import TaskRun
from evaltools.tasks.framework import read
from evaltools.text import last_lines

REFERENCE_FOLDER: Final = "reference"
REFERENCE_HERE: Final = "the inputs of the reference, which ran on this computer"
AT: Final = "at"
ADB: Final = "adb"
HERE: Final = "here"
ARM64: Final = "arm64"
_WITH_RECORDS: Final = (OK, NOT_MEASURED, EXAMPLES_FAILED)
_PROGRESS: Final = '{"phase"'


class Place(Struct, frozen=True):
    """Where a request is carried out: ``python`` is what is started there, in that ``environment``."""

    name: str
    python: str = sys.executable
    environment: Mapping[str, str] | None = None

    def folder_in(self, run_dir: Path) -> Path:
        """The folder of its records in a run folder."""
        return run_dir / f"at-{self.name.replace(':', '-')}-{digest([self.name])[:6]}"


def places_named(texts: Sequence[str]) -> list[Place]:
    """The places of ``--at``, each once: ``here``, ``arm64`` or ``arm64:CORE``.

    Raises :class:`UsageError` for any other, and for ARM64 where it is not installed.
    """
    return [_place(text) for text in dict.fromkeys(texts)]


def _place(text: str) -> Place:
    if text == HERE:
        return Place(text)
    kind, _, detail = text.partition(":")
    if kind not in PLACES:
        raise UsageError(
            f"--{AT}={text}: no such place; use here, arm64, arm64:CORE, such as arm64:cortex-a76, or adb:SERIAL"
        )
    return PLACES[kind](text, detail)


def _as_arm64(text: str, core: str) -> Place:
    if not is_arm64():
        box = users_box()
        return Place(text, str(box.python), box.environment(core or ANY_CORE))
    if core:
        raise UsageError(f"--{AT}={text}: this machine is ARM64 itself, whose core is what it is; leave --{AT} out")
    return Place(text)


PLACES: Final[dict[str, Callable[[str, str], Place]]] = {ARM64: _as_arm64}
"""What makes the place of ``--at=KIND:DETAIL``, of the whole text and the detail; a new kind is a line here."""


def run_at(place: Place, request: Request, start: Start, file: Path, step: str) -> Ended:
    """Have a place carry out a request, which writes a ``file``; paths start at the working directory.

    Raises :class:`UsageError` for what is wrong with the request, and :class:`ConfigurationUnavailable` where the place
    ended without the file; ``step`` is what to do then.
    """
    ended = run_in_own_process(request, Path.cwd(), start)
    if ended.code in _WITH_RECORDS and file.is_file():
        return ended
    said = last_lines(ended.err, leave_out=_PROGRESS)
    if ended.code == INTERRUPTED:
        raise KeyboardInterrupt
    if ended.code == USAGE:
        raise UsageError(f"--{AT}={place.name}: {said.removeprefix('evaltools: ')}")
    raise ConfigurationUnavailable(
        f"--{AT}={place.name}: evaltools ended there ({ending_in_words(ended.code)}); it printed last: {said}; {step}"
    )


def examples_of(task: TaskCommand, request: Request) -> TaskRun:
    """Read and check model, data and files on the host, before anything is sent.

    Raises :class:`UsageError` and its kinds.
    """
    asked = read(task, request)
    planned_files_of_task(task, request, planned_files(request).values())
    task_run = TaskRun(asked)
    check_on_host(task_run)
    return task_run


def of_several(task: TaskCommand, request: Request, folder: Path) -> Request:
    """The request for several places: if the task has such, they are compared with outputs of the reference here.

    The host computes these outputs once, into a folder below ``folder``. Raises :class:`UsageError` for what
    is wrong, and :class:`ConfigurationUnavailable` where the reference does not run here.
    """
    require_one_file(task, request)
    saved, unfinished = folder / REFERENCE_FOLDER, folder / f"{REFERENCE_FOLDER}.part"
    outputs = task.reference_outputs
    saving: Request | None = None if outputs is None else outputs.saving_reference(request, unfinished)
    if outputs is None or saving is None:
        return request
    if not saved.is_dir():
        _save_reference(saving, unfinished)
        unfinished.rename(saved)
    against_saved: Request = outputs.against_saved(request, saved)
    return against_saved


def _save_reference(saving: Request, outputs: Path) -> None:
    """Have this computer save the outputs of the reference; raises as :func:`of_several` says."""
    shutil.rmtree(outputs, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="evaltools-") as run_dir:
        ended = run_here(saving.stating(run_dir=Path(run_dir)))
        if ended.code != NOT_MEASURED:
            return
        rows = CONFIGURATIONS.read(read_journal(Path(run_dir))) or []
    reasons = "; ".join(dict.fromkeys(row.reason for row in rows if row.reason)) or last_lines(ended.err)
    raise ConfigurationUnavailable(
        f"the reference, whose outputs all places are compared with, does not run on this computer: {reasons}; state "
        "another one with --reference"
    )


def require_one_file(task: TaskCommand, request: Request) -> None:
    """Raise :class:`UsageError` for files by configuration, where every place has configurations of its own."""
    files = planned_files(request)
    more = planned_files_of_task(task, request, files.values())
    path = next(iter([*more.values(), *(path for path in files.values() if path.suffix.lower() != ".json")]), None)
    if path is not None:
        raise UsageError(
            f"{path}: what several places give is one result in JSON; give --output_file_path a name ending in .json, "
            "or name one place, as one device with --serials"
        )


def for_place(task: TaskCommand, request: Request, is_one: bool) -> Request:
    """The request without what the host makes of the records; of several places also what only it measures."""
    request = without_host_options(request).for_records()
    outputs = task.reference_outputs
    return request if is_one or outputs is None else outputs.for_places(request)


def without_host_options(request: Request) -> Request:
    """The request without what is about the result, the run as a whole, or devices."""
    parameters = request.options.parameters.values()
    kept = request.without(*(each.name for each in parameters if not each.is_sent))
    return replace(kept, devices=None, command=())


def run_here(request: Request) -> Ended:
    """Carry out a request, whose relative paths start at the working directory.

    Raises :class:`UsageError` with the last lines of stderr where nothing was measured that could be.
    """
    ended = run_in_own_process(request, Path.cwd())
    if ended.code not in MEASURED:
        words = command_named(request.task).words
        raise UsageError(
            f"what was to run on this computer, evaltools {words}, did not end well ({ending_in_words(ended.code)}): "
            f"{last_lines(ended.err)}. Try that command here by itself"
        )
    return ended


def progress_of(line: bytes, phase: str = "evaluation") -> Tally | None:
    """The progress of a phase in a line; None if it is any other line.

    >>> progress_of(b'{"phase": "evaluation", "done": 20, "total": 50, "failed_examples": 1, "failed": {"test": 1}}')
    Tally(done=20, failed_examples=1, failed={'test': 1})
    """
    try:
        return json_as(line, Tally) if line.startswith(f'{_PROGRESS}: "{phase}"'.encode()) else None
    except ValueError:
        return None


def together(each: Sequence[Tally]) -> Tally:
    """The progress of several devices."""
    failed = {name for one in each for name in one.failed}
    return Tally(
        sum(one.done for one in each),
        sum(one.failed_examples for one in each),
        {name: sum(one.failed.get(name, 0) for one in each) for name in sorted(failed)},
    )
