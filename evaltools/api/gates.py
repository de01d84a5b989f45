"""Limits held against results from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaltools.api.benchmarks import Benchmark
from evaltools.api.files import load, path_of
from evaltools.api.gate_report import GateReport
from evaltools.api.result import Result
from evaltools.errors import UsageError
from evaltools.gates.check import hold_gates
from evaltools.gates.criteria import Criterion, parse_criterion
from evaltools.gates.gate_file import Gate
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.metrics import METRICS
from evaltools.task_kind import OWN, kind_of, other_metrics


def gate(result: Result | str | Path, limits: Sequence[str], configuration: str = "*") -> GateReport:
    """Hold limits such as ``"top1 drop <= 0.5 points at 95 %"`` against a result, or the file that it was saved to.

    ``configuration`` names the ones that they are about; ``*`` stands for anything. Raises
    :class:`~evaltools.errors.UsageError` for what is no limit, and for figures that such a result never has.
    """
    found = result if isinstance(result, Result | Benchmark) else load(path_of(result, "the result"))
    if not isinstance(found, Result):
        raise UsageError(
            "limits are held against evaluations; this is a benchmark or a suite: compare its figures themselves"
        )
    is_own = found.result.task == OWN
    texts: object = [limits] if isinstance(limits, str) else limits
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"limits: expected texts such as ['top1 >= 0.70'], got {limits!r}")
    if not texts:
        raise UsageError("limits is empty, so nothing would be held; give such as ['top1 >= 0.70']")
    criteria = tuple(parse_criterion(text, of_own_task=is_own) for text in texts)
    _require_figures(criteria, found.result)
    reports = hold_gates([Gate("", "", "", configuration, criteria)], {"result": found.result})
    return GateReport(tuple(decision for report in reports for decision in report.decisions))


def _require_figures(criteria: Sequence[Criterion], result: EvaluationResult) -> None:
    """Refuse limits on figures that the task of a result never has; raises :class:`UsageError`."""
    kind = kind_of(result.task)
    of_task = [*(metric.name for metric in kind.metrics), *_names_of(result)]
    if not of_task:
        return
    known = dict.fromkeys([*of_task, *(metric.name for metric in METRICS), *other_metrics().usable])
    for criterion in criteria:
        if criterion.figure not in known:
            raise UsageError(
                f"{criterion.text!r}: a result of {kind.evidence.subject(result)} has no {criterion.figure}; it has "
                f"{', '.join(known)}"
            )


def _names_of(result: EvaluationResult) -> list[str]:
    """The figures of the task's part that only the result knows; none where nothing was measured."""
    return [name for entry in result.configurations for name in entry.figures]
