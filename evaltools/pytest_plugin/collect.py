"""Files of gates as tests: one per limit."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from evaltools.errors import EvaltoolsError
from evaltools.gates.gate_file import Gate, GateFile, RunSource, read_gate_file
from evaltools.pytest_plugin.settings import Settings


class LimitNotKept(Exception):
    """The limit of a test is not kept, or nothing shows that it is; the message is fit for a user."""


class GateCollection:
    """Collects ``files`` as gates; registered only where there are some."""

    def __init__(self, files: frozenset[Path], settings: Settings) -> None:
        self._files: Final = files
        self._settings: Final = settings

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Take the files of gates."""
        if file_path.resolve() not in self._files:
            return None
        collector: Gates = Gates.from_parent(parent, path=file_path, settings=self._settings)
        return collector

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Have what is skipped reported at its file of gates, not in this plug-in."""
        report = yield
        if isinstance(item, Limit) and isinstance(report.longrepr, tuple):
            report.longrepr = (str(item.path), 1, report.longrepr[2])
        return report


class Gates(pytest.File):
    """A file of gates."""

    def __init__(self, *, settings: Settings, **others: Any) -> None:
        super().__init__(**others)
        self._settings: Final = settings

    def collect(self) -> Iterable[pytest.Item]:
        """One test for each limit of each gate."""
        try:
            gate_file = read_gate_file(self.path)
        except EvaltoolsError as error:
            raise self.CollectError(str(error)) from None
        used: Counter[str] = Counter()
        for gate in gate_file.gates:
            for place, criterion in enumerate(gate.criteria):
                name = f"{_label(gate)}: {criterion.text}"
                used[name] += 1
                numbered = f"{name} ({used[name]})" if used[name] > 1 else name
                item: Limit = Limit.from_parent(
                    self,
                    name=numbered,
                    gate=gate,
                    place=place,
                    gate_file=gate_file,
                    settings=self._settings,
                )
                yield item


def _may_be_about(gate: Gate, source: RunSource) -> bool:
    """Whether a gate asks for a run; of which task and model that is, its result says."""
    return not gate.run or fnmatch.fnmatchcase(source.name, gate.run)


def _label(gate: Gate) -> str:
    return "/".join(pattern for pattern in (gate.run, gate.task, gate.model, gate.configuration) if pattern)


class Limit(pytest.Item):
    """One limit, in its ``place`` among those of its gate, held against every result and configuration it names."""

    def __init__(self, *, gate: Gate, place: int, gate_file: GateFile, settings: Settings, **others: Any) -> None:
        super().__init__(**others)
        self._gate: Final = gate
        self._place: Final = place
        self._gate_file: Final = gate_file
        self._settings: Final = settings
        self.add_marker("accuracy_gate")

    def runtest(self) -> None:
        """Have the runs carried out, unless they were, and hold the limit against their results."""
        from evaltools.gates.check import hold_gates
        from evaltools.pytest_plugin.outcome import judge, properties
        from evaltools.pytest_plugin.session_runs import session_runs

        runs = session_runs(self.config)
        folder = self.path.parent
        results = {}
        failures = []
        files = []
        for source in self._gate_file.runs:
            if not _may_be_about(self._gate, source):
                continue
            try:
                results[source.name] = runs.result(source, folder)
                files.append(str(runs.file(source, folder)))
            except EvaltoolsError as error:
                failures.append(str(error))
        if failures:
            raise LimitNotKept("\n\n".join(failures))
        try:
            held = hold_gates([self._gate], results)
        except EvaltoolsError as error:
            raise LimitNotKept(str(error)) from None
        own = slice(self._place, None, len(self._gate.criteria))
        reports = [replace(report, decisions=report.decisions[own]) for report in held]
        self.user_properties += properties(reports)
        outcome = judge(reports, self._settings)
        if outcome.kind == "skip":
            pytest.skip(outcome.text)
        if outcome.kind == "xfail":
            pytest.xfail(outcome.text)
        if outcome.kind != "pass":
            raise LimitNotKept("\n".join([outcome.text, *(f"  result  {file}" for file in files)]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What a user needs to know, without a traceback."""
        if isinstance(excinfo.value, LimitNotKept):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the limit stands, and its headline, which must not end the test's id: pytest would put :: for dots."""
        return self.path, None, f"{self.path.name}: {self.name}"
