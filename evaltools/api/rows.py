"""The result of any command in Python: a row for each configuration, with its figures by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evaltools.api.results_in_common import Entries, Entry, html_list, html_of_table
from evaltools.report.content import Sources
from evaltools.result.result import Result, Row
from evaltools.result.section import Sentence, Table
from evaltools.result.verdict import kind_in_words

if TYPE_CHECKING:
    from evaltools import Figures
else:
    Figures = object


class RowFound(Entry[Result, Row], Figures):
    """A row: its figures are attributes by the names of limits, such as ``latency_ms``, each None where there is none.

    ``latency_ms`` is the median; ``latency_ratio`` is by that of the first configuration of the model.
    """

    @property
    def title(self) -> str:
        """Its name, in a suite after those of the model and the job."""
        model, job = self._result.model_names[self.entry.model], self.entry.job
        return f"{model}, {job}, {self.name}" if job else self.name

    @property
    def judged(self) -> str:
        """The kind of its verdict."""
        return "" if self.entry.verdict is None else kind_in_words(self.entry.verdict.kind)

    @property
    def doubt(self) -> str:
        """Why its figures are not those that were asked for, or its verdict is open."""
        verdict = self.entry.verdict
        is_open = verdict is not None and verdict.kind == "not decided"
        return self.entry.fallback or self.entry.not_clean or (verdict.sentence if verdict and is_open else "")

    @property
    def facts(self) -> Mapping[str, str | None]:
        """What stands before the figures in a table."""
        runtime, verdict = self.entry.runtime, self.entry.verdict
        return {
            "model": self._result.model_names[self.entry.model],
            **({"job": self.entry.job} if self.entry.job else {}),
            "status": self.entry.status,
            "runtime": runtime.package if runtime else None,
            **({"verdict": verdict.kind} if verdict else {}),
        }

    @property
    def columns(self) -> Mapping[str, float | None]:
        """Every figure by its name, each with the ends of its interval."""
        found: dict[str, float | None] = {}
        for name, figure in self.entry.figures.items():
            found[name] = figure.value
            if figure.interval is not None:
                found |= {f"{name}_low": figure.interval.low, f"{name}_high": figure.interval.high}
        return found

    def _figures(self) -> Mapping[str, float | None]:
        if not self.is_measured or self.entry.fallback:
            return {}
        return {name: figure.value for name, figure in self.entry.figures.items()}


class Rows(Entries[Result, RowFound]):
    """What was found: ``rows["gpu"].latency_ms``; ``rows.result`` is the whole of it, typed."""

    @property
    def warnings(self) -> list[str]:
        """What needs attention before these figures are believed."""
        return [*super().warnings, *(f"{row.title}: {row.doubt}" for row in self if row.entry.job and row.doubt)]

    def _table(self) -> str:
        """The first screen: what stands on top of it, and its table."""
        first = [block for section in self.result.blocks if section.place == "first" for block in section.blocks]
        said = [block.text for block in first if isinstance(block, Sentence)]
        table = next((block for block in first if isinstance(block, Table)), None)
        return html_list(said) + (super()._table() if table is None else html_of_table(table))

    def _sources(self) -> Sources:
        return Sources(results={self.result.command: self.result})

    def _entries(self) -> Sequence[RowFound]:
        return [RowFound(self.result, row) for row in self.result.rows]
