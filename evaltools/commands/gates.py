"""Reads the commands of the runs in ``gates.toml``: words become requests, as on the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from evaltools.commands import device_run, evaluation
from evaltools.commands.names import task_of
from evaltools.errors import UsageError
from evaltools.gates.gate_file import RunSource
from evaltools.request import Request
from evaltools.runs.gate_runs import OUTPUT_FLAG, Run
from evaltools.task_kind import names_file


def read_run(source: RunSource, folder: Path) -> Run:
    """Read the command of a run; raises :class:`UsageError`, which names the run, for flags that are wrong."""
    try:
        request = request_of_words(source.command, folder.resolve())
    except UsageError as error:
        raise UsageError(f"run {source.name}: {error}") from None
    if request is not None and OUTPUT_FLAG in request.options:
        raise UsageError(f"run {source.name}: leave --{OUTPUT_FLAG} out of its command; the gates say where it goes")
    return Run(source, folder, request)


def request_of_words(words: Sequence[str], folder: Path) -> Request | None:
    """The request of an evaluation, here or on devices, None for another command.

    Raises :class:`UsageError` for flags that are wrong.
    """
    task = task_of(words[0]) if words else None
    try:
        if task is not None:
            return evaluation.parse(task, words[1:], folder)
        match words:
            case ["run", own_task, *rest]:
                place = os.path.join(folder, own_task) if names_file(own_task) else own_task
                return evaluation.parse(place, rest, folder)
            case ["device", "run", on_devices, *rest]:
                return device_run.parse(on_devices, rest, folder)
    except SystemExit:
        raise UsageError("its command asks for help; leave that out") from None
    return None
