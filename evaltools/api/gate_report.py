"""What came of limits, and of a comparison with an earlier result."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from evaltools.errors import LimitNotKept
from evaltools.gates.decide import Decision, GateVerdict, worst_verdict
from evaltools.report.words.gates import decision_in_words


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

    def __repr__(self) -> str:
        return "\n".join(decision_in_words(each) for each in self.decisions)
