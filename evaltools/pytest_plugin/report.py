"""The page that ``--evaltools-report`` asks for, written when all tests have ended."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

import pytest

from evaltools.errors import EvaltoolsError
from evaltools.gates.check import GateDecisions
from evaltools.gates.evidence import RunRows
from evaltools.gates.gate_file import read_gate_file
from evaltools.gates.outcome import outcome_of
from evaltools.pytest_plugin.session_runs import session_runs
from evaltools.report.content import Sources
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.page.file import page_file, require_page_file
from evaltools.result.environment import describe_environment
from evaltools.result.result import Result
from evaltools.runs.folders import read_any_result

_OPTION: Final = "--evaltools-report"


class SessionReport:
    """Writes one page about every evaluation of the session, whichever process carried it out, and all limits."""

    def __init__(self, config: pytest.Config, path: Path, gate_files: frozenset[Path]) -> None:
        try:
            require_page_file(path, _OPTION)
            require_output_file(path, _OPTION, gate_files)
        except EvaltoolsError as error:
            raise pytest.UsageError(str(error)) from None
        self._config = config
        self._path = path
        self._gate_files = sorted(gate_files)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the page and say where it is, or why there is none."""
        terminalreporter.section("evaltools")
        try:
            sources = self._sources()
            if not sources.results:
                terminalreporter.write_line(f"{self._path} is not written: no test evaluated anything")
                return
            write_file(self._path, page_file(sources, self._path))
        except EvaltoolsError as error:
            terminalreporter.write_line(f"{self._path} is not written: {error}")
            return
        terminalreporter.write_line(f"report: {self._path}")

    def _sources(self) -> Sources:
        results: dict[str, Result] = {}
        runs = session_runs(self._config)
        for file in self._gate_files:
            gate_file = read_gate_file(file)
            parts: dict[str, RunRows] = {}
            compared: list[GateDecisions] = []
            for source in gate_file.runs:
                own = runs.parts_so_far(source, file.parent)
                parts |= own
                compared += runs.no_worse(source, file.parent) if own else []
                result = runs.result_so_far(source, file.parent)
                if result is not None:
                    results[_free(source.name, file, results)] = result
            if parts:
                held = [each for gate in gate_file.gates for each in runs.held(gate, parts, gate_file.runs)]
                now = datetime.now(timezone.utc).isoformat(timespec="seconds")
                environment = describe_environment(["pytest", *self._config.invocation_params.args], now, 0.0)
                results[_free(file.stem, file, results)] = outcome_of(str(file), held + compared, environment)
        for path in runs.other_files():
            results[_free(path.stem, path, results)] = read_any_result(path)
        return Sources(results)


def _free(name: str, file: Path, taken: Container[str]) -> str:
    """The name, with its file where another one has it."""
    return f"{file}: {name}" if name in taken else name
