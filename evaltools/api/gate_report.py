"""What came of limits, and of a comparison with an earlier result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from evaltools.api.frames import data_frame
from evaltools.api.results_in_common import html_table
from evaltools.errors import LimitNotKept
from evaltools.gates.decide import Decision, GateVerdict, worst_verdict
from evaltools.report.words.gates import decision_in_words

if TYPE_CHECKING:
    import pandas


class GateReport(Struct, frozen=True):
    """What came of each limit for each configuration."""

    decisions: tuple[Decision, ...]

    @property
    def verdict(self) -> GateVerdict:
        """The worst one: ``pass``, ``inconclusive``, ``fail`` or ``not measured``."""
        return worst_verdict(self.decisions)

    @property
    def passed(self) -> bool:
        """Whether every limit is kept by every configuration."""
        return self.verdict == "pass"

    def require(self) -> None:
        """Raise :class:`~evaltools.errors.LimitNotKept` unless every limit is kept."""
        if not self.passed:
            raise LimitNotKept("\n".join(decision_in_words(each) for each in self.decisions if each.verdict != "pass"))

    def __bool__(self) -> bool:
        return self.passed

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What a table has in each row: the limit, what it was compared with, and the verdict."""
        return [
            {
                "configuration": each.configuration,
                "limit": each.limit,
                "verdict": each.verdict,
                "value": each.found.value if each.found else None,
                "low": each.found.low if each.found else None,
                "high": each.found.high if each.found else None,
                "examples": each.examples,
                "examples_needed": each.examples_needed,
                "reason": each.reason or None,
            }
            for each in self.decisions
        ]

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per limit and configuration; needs pandas."""
        return data_frame(self.rows)

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        return html_table(self.rows)

    def __repr__(self) -> str:
        return "\n".join(decision_in_words(each) for each in self.decisions)
