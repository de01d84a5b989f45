"""What a comparison with a baseline concludes, in the words of limits."""

from __future__ import annotations

from evaltools.gates.baseline_diff import (
    FISHER,
    NO_NUMBER,
    TOLERANCE_OF_ERRORS,
    UNTESTED,
    BaselineComparison,
    FigureChange,
    HeldTo,
)
from evaltools.gates.decide import Decision, Found, GateVerdict
from evaltools.gates.mean_verdict import WELCH
from evaltools.report.words.gates import in_unit, unit_of
from evaltools.report.words.verdicts import change_in_words, in_points, score_change_in_words
from evaltools.result.verdict import Reason
from evaltools.task_kind import metric_named
from evaltools.text import printable


def baseline_decisions(compared: BaselineComparison) -> tuple[Decision, ...]:
    """The comparison with a baseline as decisions on limits: one on each figure that is judged.

    The limit is the baseline's figure with what it may be worse by, in the figure's unit. A configuration that is
    missing now gets one decision, "not measured". Figures that are only shown have no limit, and get no decision.
    """
    found = [_decision(change, compared.margin) for change in compared.changes if change.held_to != "shown"]
    gone = Reason.of_text("it was not measured now")
    found += [Decision(name, "measured again", "not measured", reason=gone) for name in compared.missing]
    return tuple(found)


def baseline_change_in_words(change: FigureChange) -> str:
    """The verdict on a figure that a baseline has, empty where there is none."""
    verdict = change.verdict
    if verdict is None:
        return ""
    kinds = [reason.kind for reason in verdict.reasons]
    if NO_NUMBER in kinds:
        return "WORSE: there is no number any more"
    if UNTESTED in kinds:
        return "WORSE: a drop beyond --margin, and nothing to test it by"
    if FISHER in kinds:
        word = "WORSE" if verdict.kind == "worse" else verdict.kind
        return (
            f"{word}: {in_points(verdict.change)} points, p {verdict.p_value:.2g} "
            "(Fisher's exact test: answers are not paired)"
        )
    if WELCH in kinds:
        return f"{score_change_in_words(verdict)}, p {verdict.p_value:.2g} (Welch's t test: scores are not paired)"
    metric = metric_named(change.figure)
    if metric is None or metric.is_of_own_task:
        return score_change_in_words(verdict)
    tested = "" if verdict.p_value is None else f", McNemar p {verdict.p_value:.2g}"
    return f"{change_in_words(verdict)}{tested}"


def _decision(change: FigureChange, margin: float) -> Decision:
    unit = unit_of(change.figure)
    verdict: GateVerdict = "fail" if change.regressed else "pass"
    said = baseline_change_in_words(change) if change.regressed else ""
    measured = Found(change.figure, change.now, output=change.output or None, unit=unit)
    limit = f"{figure_name(change)} no worse than {in_unit(change.before, unit)}{_allowance(change.held_to, margin)}"
    return Decision(change.configuration, limit, verdict, measured, Reason.of_text(said) if said else None)


def _allowance(held_to: HeldTo, margin: float) -> str:
    """What a figure may be worse by, to be put behind its limit; empty for nothing. ``margin`` is a share, 0..1."""
    allowed = {
        "chance": ", beyond chance",
        "margin": f" by more than {100 * margin:g} points",
        "tenth": f" by more than {100 * TOLERANCE_OF_ERRORS:g} %",
    }
    return allowed.get(held_to, "")


def figure_name(change: FigureChange) -> str:
    """The name of a figure, with the output that it is of, if any: ``max_error[scores]``."""
    return f"{change.figure}[{printable(change.output)}]" if change.output else change.figure
