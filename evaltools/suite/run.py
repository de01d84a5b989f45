"""Carries a suite out."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.run_folder import (
    RunIdentity,
    request_facts,
    require_same_run,
    run_folder,
    run_journal,
    with_files,
)
from evaltools.errors import DataError
from evaltools.file_content import Unreadable, sha256_of
from evaltools.known_tasks import moved
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.environment import describe_environment
from evaltools.result.facts import Model
from evaltools.result.result import Result
from evaltools.runs.identity import (
    TASK,
    checksums_of,
    files_below,
    libraries_of,
)
from evaltools.runtime.registry import installed_version, runtime_name
from evaltools.suite.command import COMMAND
from evaltools.suite.conclude import conclude
from evaltools.suite.entries import Entry, entries_of
from evaltools.suite.runs import Found, Runs
from evaltools.tasks.framework.loading import files_beside

OnEntry = Callable[[int, int], object]
"""Gets how many entries are done of how many, first before any is begun."""


def run_suite(suite: Request, on_entry: OnEntry = lambda _done, _total: None) -> Result:
    """Run what is not done yet; Ctrl-C ends it with what is.

    Raises :class:`UsageError` and its kinds before anything is run, and for a folder that holds another suite.
    """
    started_at, start = _now(), time.monotonic()
    entries = entries_of(suite)
    checksums = {path: _checksum(path) for path in dict.fromkeys(entry.path for entry in entries)}
    stated = suite.options.path("run_dir")
    with run_folder(stated) as folder, run_journal(folder) as journal:
        runs = Runs(folder, journal, is_kept=stated is not None)
        identity = _identity(entries, checksums)
        require_same_run(journal, identity, runs.has_begun(entries))
        if runs.is_kept:
            journal.state(request_facts(to_plain(suite), identity))
        stopped = _run(runs, entries, on_entry)
        found = [(entry.path, runs.found(entry)) for entry in entries]
    environment = describe_environment(list(suite.command), started_at, time.monotonic() - start)
    models = {path: _model(path, checksums[path], [each for of, each in found if of == path]) for path in checksums}
    numbers = {path: number for number, path in enumerate(models)}
    rows = [replace(row, model=numbers[path]) for path, each in found for row in each.rows]
    return conclude(environment, list(models.values()), rows, stopped)


def _model(path: Path, sha256: str, found: Sequence[Found]) -> Model:
    """A model as its results have it; of one without any only its name and its content are known."""
    known = next((each.model for each in found if each.model is not None), Model("", sha256, 0, 0, [], []))
    return replace(known, file=str(path))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _checksum(path: Path) -> str:
    """Of a model before anything runs: it may be gone at the end."""
    try:
        return sha256_of(path)
    except Unreadable as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _identity(entries: Sequence[Entry], checksums: Mapping[Path, str]) -> RunIdentity:
    configurations = {each.name: each for entry in entries for each in entry.request.tests}
    code = checksums_of(_code_of(entries))
    identity = RunIdentity(
        {TASK: COMMAND.name}
        | {f"the model {entry.model}": checksums[entry.path] for entry in entries}
        | {f"the task's file {Path(path).name}": content for path, content in code.items()},
        options={f"the job {entry.job}": _without_model(entry) for entry in entries},
        libraries=libraries_of(configurations.values()),
        configurations={name: _facts_of(each) for name, each in configurations.items()},
        code=code,
    )
    for what, path in {what: path for entry in entries for what, path in entry.data.items()}.items():
        if path.is_dir():
            identity = with_files(identity, what, files_below([path]))
        else:
            identity.inputs[what] = checksums_of([path])[str(path)]
    return identity


def _code_of(entries: Sequence[Entry]) -> list[Path]:
    """The files of tasks that are in a file, and the modules beside them."""
    files: list[Path] = []

    def noted(file: Path) -> str:
        files.append(file)
        return str(file)

    for task in dict.fromkeys(entry.request.task for entry in entries):
        moved(task, noted)
        files.extend(files_beside(task))
    return files


def _without_model(entry: Entry) -> str:
    """The command of a job, which is the same for all models."""
    return shlex.join("MODEL" if word == str(entry.path) else word for word in entry.request.command)


def _facts_of(configuration: Configuration) -> dict[str, str]:
    runtime = runtime_name(configuration)
    return {
        "its setting": " ".join(configuration.to_flags()),
        "its runtime": f"{runtime} {installed_version(runtime)}",
    }


def _run(runs: Runs, entries: Sequence[Entry], on_entry: OnEntry) -> str:
    """Run what is not done; says why it stopped before the end."""
    waiting = [entry for entry in entries if not runs.is_done(entry)]
    done = len(entries) - len(waiting)
    on_entry(done, len(entries))
    try:
        for entry in waiting:
            runs.run(entry)
            done += 1
            on_entry(done, len(entries))
    except KeyboardInterrupt:
        return "interrupted"
    return ""
