"""Limits compared with results from Python, and what came of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from evaltools.api.files import load, path_of
from evaltools.api.frames import data_frame
from evaltools.api.options import errors_in_python
from evaltools.api.result import Result, html_table
from evaltools.errors import LimitNotKept, UsageError
from evaltools.gates.check import NO_BASELINE, earlier_parts, hold_all
from evaltools.gates.compare import compare_results
from evaltools.gates.criteria import Criterion, parse_criterion
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import Baseline, parts_of
from evaltools.gates.gate_file import Gate
from evaltools.known_tasks import OWN, other_metrics, task_command
from evaltools.result.metrics import METRICS, of_task
from evaltools.result.result import Result as Whole
from evaltools.result.verdict import GateVerdict, worst_verdict

if TYPE_CHECKING:
    import pandas


class GateReport(Struct, frozen=True):
    """What came of each limit for each configuration."""

    decisions: tuple[Decision, ...]

    @property
    def verdict(self) -> GateVerdict:
        """The worst one: ``pass``, ``inconclusive``, ``fail`` or ``not measured``."""
        return worst_verdict(each.verdict for each in self.decisions)

    @property
    def passed(self) -> bool:
        """Whether every limit is kept by every configuration."""
        return self.verdict == "pass"

    def require(self) -> None:
        """Raise :class:`~evaltools.errors.LimitNotKept` unless every limit is kept."""
        if not self.passed:
            raise LimitNotKept("\n".join(each.text for each in self.decisions if each.verdict != "pass"))

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
        return "\n".join(each.text for each in self.decisions)


@errors_in_python({})
def gate(
    result: Result | str | Path,
    limits: Sequence[str] = (),
    configuration: str = "*",
    *,
    against: Result | str | Path | None = None,
    allow_other_examples: bool = False,
) -> GateReport:
    """Hold limits such as ``"top1 drop <= 0.5 points at 95 %"`` against a result, or the file that it was saved to.

    ``configuration`` names the ones that they are about; ``*`` stands for anything. ``against`` is an earlier result:
    nothing may have become worse, and limits may be ``vs old``; of other examples it may be where that is allowed.
    Raises :class:`~evaltools.errors.UsageError` for what is not a limit, and for figures that such a result never has.
    """
    found, old = _result_of(result), None if against is None else _result_of(against)
    texts: object = [limits] if isinstance(limits, str) else limits
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"limits: expected texts such as ['top1 >= 70 %'], got {limits!r}")
    if not texts and old is None:
        raise UsageError("limits is empty, so nothing would be held; give such as ['top1 >= 70 %'], or against=")
    criteria = tuple(parse_criterion(text, "yes" if found.command == OWN else "no") for text in texts)
    if found.is_of_examples:
        _require_figures(criteria, found)
    before = None if old is None else Baseline("the earlier result", old, allow_other_examples)
    earlier = NO_BASELINE if before is None else earlier_parts("result", before)
    gates = [Gate("", "", "", configuration, criteria)] if criteria else []
    reports = hold_all(gates, parts_of("result", found), earlier)
    if before is not None:
        reports += compare_results("result", found, before)
    return GateReport(tuple(decision for report in reports for decision in report.decisions))


def _result_of(given: Result | str | Path) -> Whole:
    found = given if isinstance(given, Result) else load(path_of(given, "the result"))
    return found.result


def _require_figures(criteria: Sequence[Criterion], result: Whole) -> None:
    """Refuse limits on figures that the task of a result never has; raises :class:`UsageError`."""
    own = [
        *(metric.name for metric in task_command(result.command).metrics),
        *(name for row in result.rows for name in of_task(row)),
    ]
    if not own:
        return
    known = dict.fromkeys([*own, *(metric.name for metric in METRICS), *other_metrics().usable])
    for criterion in criteria:
        if criterion.figure not in known:
            raise UsageError(
                f"{criterion.text!r}: a result of {result.about} has no {criterion.figure}; it has {', '.join(known)}"
            )
