"""Carries a suite out: here, a shard of it, or on a cluster; and joins shards."""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.benchmark.kind import KIND as BENCHMARK
from evaltools.configuration import Configuration
from evaltools.engine.journal import Journal
from evaltools.engine.run_folder import (
    RunIdentity,
    journals_of,
    request_facts,
    require_same_run,
    run_folder,
    run_journal,
)
from evaltools.errors import DataError, UsageError
from evaltools.gates.suite_result import SUITE_VERSION, SuiteEntry, SuiteResult
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.environment import describe_environment
from evaltools.result.locate import OperatorStatus
from evaltools.runs.ray_cluster import ray_module
from evaltools.runtime.registry import installed_version, runtime_name
from evaltools.suite.entries import Entry, entries_of
from evaltools.suite.kind import KIND
from evaltools.suite.local_runs import run_here
from evaltools.suite.on_ray import run_on_ray
from evaltools.suite.rows import cells_of, operator_types
from evaltools.suite.runs import Runs
from evaltools.task_kind import request_kind
from evaltools.tasks.shared.options.execution import read_shard
from evaltools.tasks.shared.run_identity import (
    TASK,
    RunAtPlace,
    checksums_of,
    files_below,
    libraries_of,
    require_one_run,
    with_files,
)

_MOST_WORKERS: Final = 256
_BEGUN: Final = "when the suite began"
OnEntry = Callable[[int, int], object]
"""Told how many entries are done of how many, first before any is begun."""


class _Model(Struct, frozen=True):
    """What is read of a model before anything runs: it may be gone at the end. ``types`` are those of its operators."""

    sha256: str
    types: Sequence[str]


def run_suite(suite: Request, on_entry: OnEntry = lambda _done, _total: None) -> SuiteResult:
    """Run what is not done yet, of a shard its own part; Ctrl-C ends it with what is.

    Raises :class:`UsageError` and its kinds before anything is run, and for a folder that holds another suite.
    """
    workers = suite.options.number("workers")
    if not 1 <= workers <= _MOST_WORKERS:
        raise UsageError(f"--workers={workers}: use 1 to {_MOST_WORKERS}")
    started_at, start = _now(), time.monotonic()
    entries = entries_of(suite)
    ray = _ray_for(entries) if suite.options.text("executor") == "ray" else None
    models = _models_of(suite, entries)
    own = _of_shard(suite, entries)
    stated = suite.options.path("run_dir")
    with run_folder(stated) as folder, run_journal(folder) as journal:
        runs = Runs(folder, journal, is_kept=stated is not None)
        _begin(journal, suite, _identity(entries, models), runs.has_begun(entries), runs.is_kept)
        waiting = [entry for entry in own if not runs.is_done(entry)]
        ended = (
            _run_here(runs, waiting, workers)
            if ray is None
            else run_on_ray(ray, runs, waiting, suite.options.text("ray_address"))
        )
        stopped = _counted(ended, len(own) - len(waiting), len(own), on_entry)
        found = [runs.told(entry, models[entry.path].sha256) for entry in own]
        cells = cells_of(runs.operators(own, _types(models)))
    environment = describe_environment(list(suite.command), started_at, time.monotonic() - start)
    return SuiteResult(SUITE_VERSION, environment, workers, stopped, found, cells)


def merge_suite(suite: Request, folders: Sequence[Path]) -> SuiteResult:
    """One result from the folders of all shards; nothing is run.

    Raises :class:`UsageError` where they are not those of one suite, or an entry is not done in any.
    """
    start = time.monotonic()
    entries = entries_of(suite)
    models = _models_of(suite, entries)
    require_one_run(RunAtPlace(tuple(folders)), replace(_identity(entries, models), configurations={}))
    begun: list[str] = []
    told: dict[str, SuiteEntry] = {}
    operators: dict[str, list[tuple[str, str, OperatorStatus]]] = {}
    for folder in folders:
        with journals_of([folder]) as (journal,):
            begun.append(journal.fact(_BEGUN) or _now())
            shard = Runs(folder, journal, is_kept=True)
            done = [entry for entry in entries if entry.key not in told and shard.is_done(entry)]
            for entry in done:
                found = shard.told(entry, models[entry.path].sha256)
                told[entry.key] = replace(found, result=str(folder / found.result) if found.result else "")
            for name, each in shard.operators(done, _types(models)).items():
                operators.setdefault(name, []).extend(each)
    missing = next((entry.key for entry in entries if entry.key not in told), None)
    if missing is not None:
        raise UsageError(
            f"{missing} is not done in any of {', '.join(map(str, folders))}: give the folders of all shards, each run "
            "to its end; evaltools resume FOLDER goes on with one"
        )
    in_order = [told[entry.key] for entry in entries]
    environment = describe_environment(list(suite.command), min(begun), time.monotonic() - start)
    return SuiteResult(SUITE_VERSION, environment, 1, "", in_order, cells_of(operators))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _ray_for(entries: Sequence[Entry]) -> object:
    """Ray; raises :class:`UsageError` where it is not installed, or runs that are only about time would go there."""
    timed = next((entry for entry in entries if entry.request.task == BENCHMARK.name), None)
    if timed is not None:
        raise UsageError(
            f"job {timed.job}: a benchmark on a cluster is timed while other runs share its machine; leave it out, or "
            "give each machine a part with --shard_index and --shard_count"
        )
    return ray_module()


def _models_of(suite: Request, entries: Sequence[Entry]) -> dict[Path, _Model]:
    with_operators = suite.options.is_on("operators")
    return {path: _read(path, with_operators) for path in dict.fromkeys(entry.path for entry in entries)}


def _read(path: Path, with_operators: bool) -> _Model:
    try:
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    return _Model(checksum, operator_types(path) if with_operators else ())


def _types(models: Mapping[Path, _Model]) -> dict[Path, Sequence[str]]:
    return {path: model.types for path, model in models.items()}


def _of_shard(suite: Request, entries: Sequence[Entry]) -> list[Entry]:
    """The entries of the shard: those of every --shard_count-th model."""
    shard = read_shard(suite.options)
    paths = list(dict.fromkeys(entry.path for entry in entries))
    if shard.count > len(paths):
        raise UsageError(f"--shard_count={shard.count}: there are {len(paths)} models; use at most so many parts")
    own = set(paths[shard.index :: shard.count])
    return [entry for entry in entries if entry.path in own]


def _begin(journal: Journal, suite: Request, identity: RunIdentity, has_begun: bool, is_kept: bool) -> None:
    """Raise :class:`UsageError` for the folder of another suite; keep what this one is."""
    shard = read_shard(suite.options)
    if shard.count > 1:
        identity = replace(identity, shard=f"{shard.index}/{shard.count}")
    require_same_run(journal, identity, has_begun)
    if is_kept:
        journal.state({_BEGUN: journal.fact(_BEGUN) or _now(), **request_facts(to_plain(suite), identity)})


def _identity(entries: Sequence[Entry], models: Mapping[Path, _Model]) -> RunIdentity:
    configurations = {each.name: each for entry in entries for each in entry.request.tests}
    code = checksums_of(_code_of(entries))
    identity = RunIdentity(
        {TASK: KIND.name}
        | {f"the model {entry.model}": models[entry.path].sha256 for entry in entries}
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
        kind = request_kind(task)
        kind.moved(task, noted)
        files.extend(kind.files_beside())
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


def _run_here(runs: Runs, waiting: Sequence[Entry], workers: int) -> Iterator[Entry]:
    """Run entries, ``workers`` at a time; benchmarks alone, after the others."""
    if workers == 1:
        return run_here(runs, waiting, 1, is_timed=True)
    alone = [entry for entry in waiting if entry.request.task == BENCHMARK.name]
    together = [entry for entry in waiting if entry.request.task != BENCHMARK.name]
    return chain(run_here(runs, together, workers, is_timed=False), run_here(runs, alone, 1, is_timed=True))


def _counted(ended: Iterator[Entry], done: int, total: int, on_entry: OnEntry) -> str:
    """Run until all have ended; says why it stopped before."""
    on_entry(done, total)
    try:
        for _ in ended:
            done += 1
            on_entry(done, total)
    except KeyboardInterrupt:
        return "interrupted"
    return ""
