"""The result of any command in Python: a row for each configuration, with its figures by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evaltools.api.results_in_common import Entries, Entry
from evaltools.report.content import Sources
from evaltools.result.result import Result, Row

if TYPE_CHECKING:
    from evaltools import Figures
else:
    Figures = object


class RowFound(Entry[Result, Row], Figures):
    """A row: its figures are attributes by the names of limits, such as ``latency_ms``, each None where there is none.

    ``latency_ms`` is the median; ``latency_ratio`` is by that of the first configuration of the model.
    """

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

    def _sources(self) -> Sources:
        return Sources(results={self.result.command: self.result})

    def _entries(self) -> Sequence[RowFound]:
        return [RowFound(self.result, row) for row in self.result.rows]
