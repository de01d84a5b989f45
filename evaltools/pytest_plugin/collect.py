"""Files of gates as tests: one per run, configuration and limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from msgspec.structs import replace

from evaltools.errors import EvaltoolsError
from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision
from evaltools.gates.gate_file import Gate, RunSource, read_gate_file
from evaltools.pytest_plugin.session_runs import session_runs
from evaltools.pytest_plugin.settings import read_settings


class LimitNotKept(Exception):
    """The limit of a test is not kept, or nothing shows that it is; the message is fit for a user."""


class GateCollection:
    """Collects ``files`` as gates; registered only where there are some."""

    def __init__(self, files: frozenset[Path]) -> None:
        self._files: Final = files

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Take the files of gates."""
        return Gates.from_parent(parent, path=file_path) if file_path.resolve() in self._files else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Have what is skipped reported at its file of gates, not in this plug-in."""
        report = yield
        if isinstance(item, Limit) and isinstance(report.longrepr, tuple):
            report.longrepr = (str(item.path), 1, report.longrepr[2])
        return report


class Gates(pytest.File):
    """A file of gates."""

    def collect(self) -> Iterable[pytest.Item]:
        """One test for each limit, in each run and configuration that it is about."""
        try:
            gate_file = read_gate_file(self.path)
        except EvaltoolsError as error:
            raise self.CollectError(str(error)) from None
        used: Counter[str] = Counter()
        for gate in gate_file.gates:
            for place in self._places(gate, gate_file.runs):
                for number, criterion in enumerate(gate.criteria):
                    name = f"{place.run}/{place.configuration}: {criterion.text}"
                    used[name] += 1
                    numbered = f"{name} ({used[name]})" if used[name] > 1 else name
                    yield Limit.from_parent(self, name=numbered, gate=gate, place=place, number=number)
        for source in gate_file.runs:
            if source.old is not None:
                place = Place((source,), source.name, "*")
                yield Limit.from_parent(self, name=f"{source.name}: no worse than {source.old.name}", place=place)

    def _places(self, gate: Gate, sources: Sequence[RunSource]) -> list[Place]:
        """What a gate is about, as far as that is known; else what it names itself."""
        about = [source for source in sources if gate.may_be_about(source)]
        places = session_runs(self.config).places
        found = [Place((source,), *names) for source in about for names in places(gate, source, self.path.parent)]
        return found or [Place(about, gate.run or "*", gate.configuration)]


class Place(NamedTuple):
    """A run, or a part of one, with its configuration; ``sources`` are the runs that have to be carried out for it."""

    sources: Sequence[RunSource]
    run: str
    configuration: str


class Limit(pytest.Item):
    """One limit, by its ``number`` among those of its gate, in one place; without a gate, that nothing became worse."""

    def __init__(self, *, place: Place, gate: Gate | None = None, number: int = 0, **others: Any) -> None:
        super().__init__(**others)
        self._gate: Final = gate
        self._place: Final = place
        self._number: Final = number
        self.add_marker("accuracy_gate")

    def runtest(self) -> None:
        """Have the run carried out, unless it was, and compare the limit with its result."""
        from evaltools.pytest_plugin.outcome import judge, properties

        runs, folder = session_runs(self.config), self.path.parent
        try:
            parts = {name: part for source in self._place.sources for name, part in runs.parts(source, folder).items()}
            own = {name: part for name, part in parts.items() if name == self._place.run} or parts
            if self._gate is None:
                reports = [each for source in self._place.sources for each in runs.no_worse(source, folder)]
            else:
                held = runs.held(self._gate, own, self._place.sources)
                reports = [replace(report, decisions=self._own(self._gate, report)) for report in held]
        except EvaltoolsError as error:
            raise LimitNotKept(str(error)) from None
        self.user_properties += properties(reports, own)
        outcome = judge(reports, read_settings(self.config))
        if outcome.kind == "skip":
            pytest.skip(outcome.text)
        if outcome.kind == "xfail":
            pytest.xfail(outcome.text)
        if outcome.kind != "pass":
            files = (f"  result  {runs.file(source, folder)}" for source in self._place.sources)
            raise LimitNotKept("\n".join([outcome.text, *files]))

    def _own(self, gate: Gate, report: GateDecisions) -> tuple[Decision, ...]:
        """The decisions on this limit; those of all configurations where this one is none of the result."""
        of_limit = report.decisions[self._number :: len(gate.criteria)]
        return tuple(each for each in of_limit if each.configuration == self._place.configuration) or of_limit

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What a user needs to know, without a traceback."""
        if isinstance(excinfo.value, LimitNotKept):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the limit stands, and its headline, which must not end the test's id: pytest would put :: for dots."""
        return self.path, None, f"{self.path.name}: {self.name}"
