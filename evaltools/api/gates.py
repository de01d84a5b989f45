"""Limits held against results from Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaltools.api.files import path_of
from evaltools.api.result import Result
from evaltools.errors import LimitNotKept, UsageError
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import Decision, GateVerdict, worst_verdict
from evaltools.gates.gate_file import Gate
from evaltools.gates.hold import hold_gates
from evaltools.report.words.gates import decision_in_words
from evaltools.result_file import read_result
from evaltools.task_kind import OWN


@dataclass(frozen=True)
class GateReport:
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

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __repr__(self) -> str:
        return "\n".join(decision_in_words(each) for each in self.decisions)


def gate(result: Result | str | Path, limits: Sequence[str], configuration: str = "*") -> GateReport:
    """Hold limits such as ``"top1 drop <= 0.5 points at 95 %"`` against a result, or the file that it was saved to.

    ``configuration`` names the ones that they are about; ``*`` stands for anything. Raises
    :class:`~evaltools.errors.UsageError` for what is no limit.
    """
    found = result if isinstance(result, Result) else Result(read_result(path_of(result, "the result")))
    is_own = found.result.task == OWN
    texts: object = [limits] if isinstance(limits, str) else limits
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"limits: expected texts such as ['top1 >= 0.70'], got {limits!r}")
    criteria = tuple(parse_criterion(text, of_own_task=is_own) for text in texts)
    reports = hold_gates([Gate("", "", "", configuration, criteria)], {"result": found.result})
    return GateReport(tuple(decision for report in reports for decision in report.decisions))
