"""Carries a suite out: each entry in a process of its own, in a folder of its own below that of the suite."""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Final

from evaltools.benchmark.kind import KIND as BENCHMARK
from evaltools.configuration import Configuration
from evaltools.engine.journal import Journal
from evaltools.engine.run_folder import (
    RunIdentity,
    decode,
    encode,
    request_facts,
    require_same_run,
    run_folder,
    run_journal,
)
from evaltools.errors import DataError, OutputError, UsageError
from evaltools.exit_codes import INTERRUPTED, MEASURED, NOT_WRITTEN
from evaltools.gates.baseline import make_baseline
from evaltools.gates.suite_result import SUITE_VERSION, SuiteEntry, SuiteResult
from evaltools.locate.kind import KIND as LOCATE
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.benchmark import BenchmarkResult
from evaltools.result.environment import describe_environment
from evaltools.result.json_file import read_content, read_json
from evaltools.result.locate import OperatorStatus
from evaltools.result.locate_file import located_in
from evaltools.result_file import read_result
from evaltools.runs.handing_over import ending_in_words, start
from evaltools.runtime.registry import installed_version, runtime_name
from evaltools.suite.entries import Entry, entries_of
from evaltools.suite.rows import cells_of, operator_types, operators_of, rows_of_benchmark, rows_of_evaluation
from evaltools.tasks.shared.run_identity import libraries_of

_ENTRIES: Final = "entries"
_RESULT: Final = "result.json"
_LOG: Final = "log.txt"
_MOST_WORKERS: Final = 256
_SECONDS_BETWEEN_LOOKS: Final = 0.05
_SECONDS_TO_END: Final = 10.0
_MOST_REASON: Final = 500
OnEntry = Callable[[int, int], object]
"""Told how many entries are done of how many, first before any is begun."""


@dataclass(frozen=True)
class _Done:
    """What the journal keeps of an entry that needs not be run again; without a ``reason`` there is a result."""

    exit_code: int
    elapsed_s: float
    reason: str = ""


@dataclass(frozen=True)
class _Model:
    """What is read of a model before anything runs: it may be gone at the end. ``types`` are those of its operators."""

    sha256: str
    types: Sequence[str]


@dataclass(frozen=True)
class _Running:
    entry: Entry
    process: subprocess.Popen[bytes]
    start: float


def run_suite(suite: Request, on_entry: OnEntry = lambda _done, _total: None) -> SuiteResult:
    """Run what is not done yet; Ctrl-C ends it with what is.

    Raises :class:`UsageError` and its kinds before anything is run, and for a folder that holds another suite.
    """
    workers = suite.options.number("workers")
    if not 1 <= workers <= _MOST_WORKERS:
        raise UsageError(f"--workers={workers}: use 1 to {_MOST_WORKERS}")
    started_at, begin = datetime.now(timezone.utc), time.monotonic()
    entries = entries_of(suite)
    with_operators = suite.options.is_on("operators")
    models = {path: _read(path, with_operators) for path in dict.fromkeys(entry.path for entry in entries)}
    stated = suite.options.path("run_dir")
    with run_folder(stated) as folder, run_journal(folder) as journal:
        _begin(journal, suite, entries, models, is_kept=stated is not None)
        runs = _Runs(folder, journal, is_kept=stated is not None)
        stopped = runs.run(entries, workers, on_entry)
        found = [runs.told(entry, models[entry.path].sha256, is_timed=workers == 1) for entry in entries]
        cells = cells_of(runs.operators(entries, models))
    elapsed = time.monotonic() - begin
    started = started_at.isoformat(timespec="seconds")
    environment = describe_environment(list(suite.command), started, elapsed)
    return SuiteResult(SUITE_VERSION, environment, workers, stopped, found, cells)


def _begin(
    journal: Journal, suite: Request, entries: Sequence[Entry], models: Mapping[Path, _Model], is_kept: bool
) -> None:
    """Raise :class:`UsageError` for the folder of another suite; keep what this one is."""
    configurations = {each.name: each for entry in entries for each in entry.request.tests}
    identity = RunIdentity(
        {f"the model {entry.model}": models[entry.path].sha256 for entry in entries},
        options={f"the {entry.key}": shlex.join(entry.request.command) for entry in entries},
        libraries=libraries_of(configurations.values()),
        configurations={name: _facts_of(each) for name, each in configurations.items()},
    )
    require_same_run(journal, identity, has_begun=any(_kept(journal, entry) for entry in entries))
    if is_kept:
        journal.state(request_facts(to_plain(suite), identity))


def _facts_of(configuration: Configuration) -> dict[str, str]:
    runtime = runtime_name(configuration)
    return {
        "its setting": " ".join(configuration.to_flags()),
        "its runtime": f"{runtime} {installed_version(runtime)}",
    }


def _read(path: Path, with_operators: bool) -> _Model:
    try:
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    return _Model(checksum, operator_types(path) if with_operators else ())


def _kept(journal: Journal, entry: Entry) -> _Done | None:
    text = journal.fact(entry.key)
    found: _Done | None = None if text is None else decode(text, _Done, journal.folder)
    return found


class _Runs:
    """The runs of a suite in its folder; the journal says which are done. ``is_kept``: somebody may go on with them."""

    def __init__(self, folder: Path, journal: Journal, is_kept: bool) -> None:
        self._folder = folder
        self._journal = journal
        self._is_kept = is_kept
        self._running: list[_Running] = []

    def run(self, entries: Sequence[Entry], workers: int, on_entry: OnEntry) -> str:
        """Run what is not done, ``workers`` at a time; benchmarks alone where others are not. Says why it stopped."""
        waiting = [entry for entry in entries if not self._is_done(entry)]
        apart = workers > 1
        alone = [entry for entry in waiting if apart and entry.request.task == BENCHMARK.name]
        others = [entry for entry in waiting if not (apart and entry.request.task == BENCHMARK.name)]
        done = len(entries) - len(waiting)
        on_entry(done, len(entries))
        try:
            for _ in chain(self._each(others, workers), self._each(alone, 1)):
                done += 1
                on_entry(done, len(entries))
        except KeyboardInterrupt:
            return "interrupted"
        return ""

    def told(self, entry: Entry, model_sha256: str, is_timed: bool) -> SuiteEntry:
        """What the result says of an entry; ``model_sha256`` is that of its model when the suite began."""
        kept = _kept(self._journal, entry)
        told = SuiteEntry(
            model=entry.model,
            model_file=str(entry.path),
            model_sha256=model_sha256,
            job=entry.job,
            command=list(entry.request.command),
            state="skipped",
            reason="the suite ended before it was done",
        )
        if kept is None:
            return told
        told = replace(told, exit_code=kept.exit_code, elapsed_s=kept.elapsed_s, reason=kept.reason)
        if kept.reason:
            return replace(told, state="failed")
        place = self._place(entry) / _RESULT
        told = replace(told, state="done", result=str(place.relative_to(self._folder)) if self._is_kept else "")
        if entry.request.task == LOCATE.name:
            return told
        if entry.request.task == BENCHMARK.name:
            return replace(told, rows=rows_of_benchmark(_benchmark_in(place)))
        result = read_result(place)
        rows = rows_of_evaluation(result, is_timed)
        is_comparable = result.complete and any(row.status == "measured" and not row.fallback for row in rows)
        return replace(told, rows=rows, baseline=make_baseline(result) if is_comparable else None)

    def operators(
        self, entries: Sequence[Entry], models: Mapping[Path, _Model]
    ) -> dict[str, list[tuple[str, str, OperatorStatus]]]:
        """What every operator alone showed, by configuration."""
        found: dict[str, list[tuple[str, str, OperatorStatus]]] = {}
        for entry in entries:
            kept = _kept(self._journal, entry)
            if entry.request.task == LOCATE.name and kept is not None and not kept.reason:
                path = self._place(entry) / _RESULT
                operators = operators_of(models[entry.path].types, located_in(read_content(path), path))
                found.setdefault(entry.request.tests[0].name, []).extend(operators)
        return found

    def _is_done(self, entry: Entry) -> bool:
        kept = _kept(self._journal, entry)
        return kept is not None and (bool(kept.reason) or (self._place(entry) / _RESULT).is_file())

    def _each(self, entries: Sequence[Entry], at_a_time: int) -> Iterator[Entry]:
        """Run all of them; gives each that has ended, whatever came of it."""
        waiting = list(entries)
        with self._ending():
            while waiting or self._running:
                while waiting and len(self._running) < at_a_time:
                    self._start(waiting.pop(0))
                for running in [each for each in self._running if each.process.poll() is not None]:
                    self._running.remove(running)
                    self._finish(running)
                    yield running.entry
                time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _start(self, entry: Entry) -> None:
        place = self._place(entry)
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / _RESULT).unlink(missing_ok=True)
            request = entry.request.stating(output_file_path=place / _RESULT)
            if self._is_kept and "run_dir" in request.options.parameters:
                request = request.stating(run_dir=place / "run")
            with open(place / _LOG, "wb") as log:
                process = start(request, place / "request.json", log)
        except OSError as error:
            raise OutputError(f"{place} cannot be written: {error.strerror}; make room, and resume") from error
        self._running.append(_Running(entry, process, time.monotonic()))

    def _finish(self, running: _Running) -> None:
        """Keep what came of an entry."""
        code = running.process.returncode
        place = self._place(running.entry)
        if running.process.stdin is not None:
            running.process.stdin.close()
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        if code == NOT_WRITTEN:
            raise OutputError(f"{running.entry.key}: {_last_words(place / _LOG)}")
        has_result = code in MEASURED and (place / _RESULT).is_file()
        reason = "" if has_result else _last_words(place / _LOG) or ending_in_words(code)
        done = _Done(code, round(time.monotonic() - running.start, 3), reason)
        self._journal.state({running.entry.key: encode(done)})

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """At its end no process is left; each ends by itself when its stdin closes."""
        try:
            yield
        finally:
            for running in self._running:
                if running.process.stdin is not None:
                    running.process.stdin.close()
            for running in self._running:
                try:
                    running.process.wait(_SECONDS_TO_END)
                except subprocess.TimeoutExpired:
                    running.process.kill()
                    running.process.wait()
            self._running.clear()

    def _place(self, entry: Entry) -> Path:
        """The folder of an entry; a checksum tells names apart that look alike in a file system."""
        checksum = hashlib.sha256(entry.key.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        name = re.sub(r"[^\w.-]+", "_", f"{entry.model}.{entry.job}")[:80]
        return self._folder / _ENTRIES / f"{name}.{checksum}"


def _benchmark_in(path: Path) -> BenchmarkResult:
    return read_json(path, BenchmarkResult, "evaltools benchmark result")


def _last_words(log: Path) -> str:
    """The last message of a log, else its last line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    said = [line.removeprefix("evaltools: ") for line in lines if line.startswith("evaltools: ")]
    return (said or lines or [""])[-1][:_MOST_REASON]
