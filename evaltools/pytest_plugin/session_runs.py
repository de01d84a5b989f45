"""Evaluations that are carried out once per session, however many tests and worker processes want them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from evaltools.commands.gates import read_run
from evaltools.engine.run_folder import digest
from evaltools.errors import EvaltoolsError, UsageError
from evaltools.gates.check import GateDecisions, earlier_parts, hold_all, places_in
from evaltools.gates.evidence import Baseline, RunRows, parts_of
from evaltools.gates.gate_file import Gate, RunSource
from evaltools.request.plain import to_plain
from evaltools.result.result import Result
from evaltools.runs.folders import read_any_result
from evaltools.runs.gate_runs import Run, no_worse, result_of

_FOLDER: Final = "evaltools"
_ENDED: Final = ".ended"


class SessionRuns:
    """Results by run. What a run gave lies in ``shared``, the same folder for all processes of the session."""

    def __init__(self, shared: Path, has_workers: bool) -> None:
        self._shared = shared
        self._has_workers = has_workers
        self._told: set[Path] = set()
        self._decisions: dict[tuple[object, ...], list[GateDecisions]] = {}
        self._known: dict[tuple[Path, RunSource], Result | EvaltoolsError] = {}

    def result(self, source: RunSource, folder: Path) -> Result:
        """The result of a run whose relative paths are meant from ``folder``; carried out when first asked for.

        Raises :class:`EvaltoolsError` for a run that gave none, every time with the same message.
        """
        key = (folder, source)
        if key not in self._known:
            try:
                run = read_run(source, folder)
                self._known[key] = self._command(run) if source.result is None else read_any_result(source.result)
            except EvaltoolsError as error:
                self._known[key] = error
        known = self._known[key]
        if isinstance(known, EvaltoolsError):
            raise UsageError(str(known))
        return known

    def parts(self, source: RunSource, folder: Path) -> dict[str, RunRows]:
        """What gates are compared with, as of :meth:`result`."""
        return parts_of(source.name, self.result(source, folder))

    def parts_so_far(self, source: RunSource, folder: Path) -> dict[str, RunRows]:
        """The same without carrying anything out: empty for a run that no test needed."""
        try:
            output = self.file(source, folder)
            self._told.add(output)
            is_done = output.is_file() if source.result else output.with_suffix(_ENDED).exists()
            return self.parts(source, folder) if is_done else {}
        except EvaltoolsError as error:
            return Run(source, folder, None).parts(error)

    def result_so_far(self, source: RunSource, folder: Path) -> Result | None:
        """The result that :meth:`parts_so_far` found."""
        known = self._known.get((folder, source))
        return known if isinstance(known, Result) else None

    def held(self, gate: Gate, parts: Mapping[str, RunRows], sources: Sequence[RunSource]) -> list[GateDecisions]:
        """The decisions of a gate on these, made once: its limits share the allowance for chance."""
        key = (id(gate), *parts)
        if key not in self._decisions:
            read = {source.name: (source.old, read_any_result(source.old)) for source in sources if source.old}
            old = {
                part: each
                for name, (file, result) in read.items()
                for part, each in earlier_parts(name, Baseline(str(file), result)).items()
            }
            self._decisions[key] = hold_all([gate], parts, old)
        return self._decisions[key]

    def no_worse(self, source: RunSource, folder: Path) -> list[GateDecisions]:
        """Whether anything became worse in a run since its earlier result, if it has one."""
        key = (source, folder)
        if source.old is not None and key not in self._decisions:
            before = Baseline(str(source.old), read_any_result(source.old))
            run = Run(source, folder, None)
            try:
                run = read_run(source, folder)
                again = self._output(run).with_suffix(".again")
                self._decisions[key] = no_worse(run, self.result(source, folder), before, again)
            except EvaltoolsError as error:
                self._decisions[key] = no_worse(run, error, before, self._shared)
        return self._decisions.get(key, [])

    def places(self, gate: Gate, source: RunSource, folder: Path) -> list[tuple[str, str]]:
        """The runs and configurations that a gate is about in a run, as far as its file or its request knows them.

        The file is read again where limits are compared with it: a test of the session may write it anew.
        """
        try:
            if source.result is None:
                return read_run(source, folder).places(gate)
            return places_in(gate, parts_of(source.name, read_any_result(source.result)))
        except EvaltoolsError:
            return [(source.name, gate.configuration)]

    def file(self, source: RunSource, folder: Path) -> Path:
        """Where the result of a run lies."""
        return source.result or self._output(read_run(source, folder))

    def other_files(self) -> list[Path]:
        """The results of this session, of all its processes, without those that :meth:`parts_so_far` has returned."""
        return sorted({*self._shared.glob("*/*.json")} - self._told)

    def _output(self, run: Run) -> Path:
        """Runs that measure the same with the same files have one result."""
        what = [str(run.folder), *run.source.command]
        if run.request is not None:
            what = [json.dumps(to_plain(replace(run.request, command=())), sort_keys=True)]
        name = re.sub(r"[^\w.-]", "_", run.source.name)
        return self._shared / digest(what) / f"{name}.json"

    def _command(self, run: Run) -> Result:
        output = self._output(run)
        output.parent.mkdir(parents=True, exist_ok=True)
        ended = output.with_suffix(_ENDED)
        with self._lock(output.with_suffix(".lock")):
            if not ended.exists():
                failure = ""
                try:
                    result_of(run, output)
                except EvaltoolsError as error:
                    failure = str(error)
                ended.write_text(failure, encoding="utf-8")
        if failure := ended.read_text(encoding="utf-8"):
            raise UsageError(failure)
        return read_any_result(output)

    def _lock(self, file: Path) -> AbstractContextManager[object]:
        if not self._has_workers:
            return nullcontext()
        try:
            from filelock import FileLock
        except ImportError:
            raise UsageError(
                "the processes of pytest-xdist share evaluations by filelock, which is not installed: "
                "pip install 'evaltools[pytest]'"
            ) from None
        return FileLock(file)


_RUNS: Final = pytest.StashKey[SessionRuns]()


def session_runs(config: pytest.Config) -> SessionRuns:
    """Those of this session. They lie in pytest's folder for temporary files, one level up for a worker of xdist."""
    if _RUNS not in config.stash:
        has_workers = hasattr(config, "workerinput")
        base: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        shared = (base.parent if has_workers else base) / _FOLDER
        config.stash[_RUNS] = SessionRuns(shared, has_workers)
    return config.stash[_RUNS]
