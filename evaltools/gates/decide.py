"""From a limit and what was measured to a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from evaltools.gates.criteria import Criterion
from evaltools.gates.evidence import Evidence
from evaltools.parameter import did_you_mean
from evaltools.stats.changes import Change
from evaltools.stats.interval import Interval
from evaltools.stats.latency_ratio import at_confidence
from evaltools.stats.means import mean_bound
from evaltools.stats.multiple import confidence_of_each
from evaltools.stats.power import POWER, examples_to_place
from evaltools.stats.proportions import share_bound

GateVerdict = Literal["pass", "fail", "inconclusive", "not measured"]
GATE_VERDICTS: Final[tuple[GateVerdict, ...]] = ("pass", "inconclusive", "fail", "not measured")
"""From best to worst."""
_AT_THE_LIMIT: Final = "what was found is so close to the limit that no number of examples would tell; move the limit"
_MEASURE_MORE: Final = "measure more"
_ALL_EQUAL: Final = "all scores are equal, or there is only one, so nothing tells how others would be; measure more"
_DAMAGED: Final = "no number: a side has NaN or infinite values or another shape, or the reference is 0 everywhere"


@dataclass(frozen=True)
class Decision:
    """The verdict on one limit for one configuration.

    ``found`` is what the limit was held against, in words; ``reason`` says what is missing, and the next step.
    ``examples_needed`` would decide an inconclusive one in 80 % of cases, null where no number would, or none is known.
    ``cannot_exist``: no Python runtime can create what was asked for, or its package is not installed here.
    """

    configuration: str
    limit: str
    verdict: GateVerdict
    found: str
    reason: str = ""
    examples_needed: int | None = None
    cannot_exist: bool = False


def decide(criterion: Criterion, evidence: Evidence, tests: int = 1) -> Decision:
    """Hold one limit against one configuration.

    A configuration that was not measured, or measured on something else than it asked for, keeps no limit. With a
    confidence a limit is kept where the one-sided bound is on its right side, broken where the other bound is on its
    wrong side, else inconclusive. Where it is one of so many ``tests``, it is broken with a confidence that allows for
    that.

    >>> from evaltools.gates.criteria import parse_criterion
    >>> decide(parse_criterion("top1 >= 0.7"), Evidence("xnnpack", figures={"top1": 0.75})).verdict
    'pass'
    """
    if evidence.not_measured is not None:
        return Decision(
            evidence.configuration,
            criterion.text,
            "not measured",
            "",
            evidence.not_measured,
            cannot_exist=evidence.cannot_exist,
        )
    if criterion.is_relative and evidence.reference_not_measured is not None:
        return _missing(criterion, evidence, evidence.reference_not_measured)
    if criterion.kind in ("drop", "rise"):
        return _decide_change(criterion, evidence, tests)
    if criterion.kind == "ratio":
        return _decide_ratio(criterion, evidence, tests)
    if criterion.output is not None or any(criterion.figure in values for _, values in evidence.outputs):
        return _decide_outputs(criterion, evidence)
    return _decide_value(criterion, evidence, tests)


def _decide_value(criterion: Criterion, evidence: Evidence, tests: int) -> Decision:
    if criterion.figure not in evidence.figures:
        return _missing(criterion, evidence, _no_such_figure(criterion, evidence))
    value = evidence.figures[criterion.figure]
    if value is None:
        reason = f"{criterion.figure} has no value: there is nothing in the data that it could be measured on"
        return _missing(criterion, evidence, reason)
    share = evidence.shares.get(criterion.figure)
    if criterion.confidence is None:
        return _compared(criterion, evidence, value, f"{criterion.figure} {_number(value)}")
    found = f"{criterion.figure} {_number(value)}"
    mean = evidence.means.get(criterion.figure)
    if mean is not None:
        counted = (mean.mean, mean.deviation, mean.count)
        if mean_bound(*counted, criterion.confidence, upper=True) is None:
            return Decision(evidence.configuration, criterion.text, "inconclusive", found, _ALL_EQUAL)
        return _bounded(criterion, evidence, found, partial(_mean_bounds, *counted), tests)
    if share is None or share.count == 0:
        return _missing(criterion, evidence, f"{criterion.figure} has no interval in this result")
    counts = (share.successes, share.count)
    of_each_side = (1, tests) if criterion.at_most else (tests, 1)
    place = partial(examples_to_place, *counts, criterion.value, criterion.confidence, of_each_side)
    return _bounded(criterion, evidence, found, partial(_share_bounds, *counts), tests, place)


def _mean_bounds(mean: float, deviation: float, count: int, confidence: float) -> Interval:
    low, high = (mean_bound(mean, deviation, count, confidence, upper) for upper in (False, True))
    return Interval(math.nan if low is None else low, math.nan if high is None else high)


def _share_bounds(successes: int, count: int, confidence: float) -> Interval:
    return Interval(*(share_bound(successes, count, confidence, upper) for upper in (False, True)))


def _drop_bounds(change: Change, confidence: float) -> Interval:
    return Interval(0.0 - change.bound(confidence, upper=True), 0.0 - change.bound(confidence, upper=False))


def _no_such_figure(criterion: Criterion, evidence: Evidence) -> str:
    if not criterion.metric.is_of_own_task:
        return f"this result has no {criterion.figure} ({criterion.metric.meaning})"
    hint = did_you_mean(criterion.figure, evidence.figures)
    return f"this result has no figure {criterion.figure!r}.{hint} It has {', '.join(evidence.figures)}"


def _decide_change(criterion: Criterion, evidence: Evidence, tests: int) -> Decision:
    """A drop, or of a mean that is better when lower a rise."""
    if criterion.metric.is_of_own_task and criterion.figure not in evidence.figures:
        return _missing(criterion, evidence, _no_such_figure(criterion, evidence))
    mean = evidence.means.get(criterion.figure)
    wanted = "rise" if mean is not None and mean.better == "lower" else "drop"
    if criterion.kind != wanted:
        worse = "lower" if wanted == "rise" else "higher"
        reason = f"{worse} is better for {criterion.figure}: write '{criterion.figure} {wanted} <= ...'"
        return _missing(criterion, evidence, reason)
    change = evidence.changes.get(criterion.figure)
    if change is None:
        reason = (
            f"there is no change of {criterion.figure} against a reference; run with a reference on the same examples"
        )
        return _missing(criterion, evidence, reason)
    drop = 0.0 - change.change
    if criterion.confidence is None:
        return _compared(criterion, evidence, drop, f"{criterion.figure} {wanted} {_number(drop)}")
    found = f"{criterion.figure} {wanted} {_number(drop)}"
    decisive = partial(change.examples_to_decide, criterion.value, criterion.confidence, tests)
    return _bounded(criterion, evidence, found, partial(_drop_bounds, change), tests, decisive)


def _decide_ratio(criterion: Criterion, evidence: Evidence, tests: int) -> Decision:
    if evidence.ratio is None:
        return _missing(criterion, evidence, "there is no reference whose times belong to the same examples")
    ratio, interval = evidence.ratio.ratio, evidence.ratio.interval
    if criterion.confidence is None:
        return _compared(criterion, evidence, ratio, f"latency ratio {_number(ratio)}")
    if interval is None:
        return _missing(
            criterion,
            evidence,
            "so few examples, or times that resemble their neighbours so much, give no interval; measure more",
        )
    which = "these" if evidence.ratio.processes == 1 else f"such ({evidence.ratio.processes})"
    found = f"latency ratio of {which} processes {_number(ratio)}"
    bounds = partial(at_confidence, ratio, interval)
    return _bounded(criterion, evidence, found, bounds, tests, advice=f"{_MEASURE_MORE}, or where nothing else runs")


def _decide_outputs(criterion: Criterion, evidence: Evidence) -> Decision:
    """The worst of the outputs that the limit is about and that have such a figure."""
    named = [
        (names[0], values[criterion.figure])
        for names, values in evidence.outputs
        if criterion.figure in values and (criterion.output is None or criterion.output in names)
    ]
    if not named:
        known = ", ".join(names[0] for names, _ in evidence.outputs) or "none"
        reason = f"no output {criterion.output!r} has {criterion.figure}; outputs of this result: {known}"
        return _missing(criterion, evidence, reason)
    name, value = max(named, key=lambda entry: _badness(criterion, entry[1]))
    return _compared(criterion, evidence, value, f"{criterion.figure} {_number(value)} in {name}")


def _badness(criterion: Criterion, value: float | None) -> float:
    if _is_no_number(value):
        return math.inf
    assert value is not None
    return value if criterion.at_most else -value


def _compared(criterion: Criterion, evidence: Evidence, value: float | None, found: str) -> Decision:
    if _is_no_number(value):
        return Decision(evidence.configuration, criterion.text, "fail", found, _DAMAGED)
    assert value is not None
    kept = value <= criterion.value if criterion.at_most else value >= criterion.value
    return Decision(evidence.configuration, criterion.text, "pass" if kept else "fail", found)


def _is_no_number(value: float | None) -> bool:
    return value is None or math.isnan(value)


def _bounded(
    criterion: Criterion,
    evidence: Evidence,
    figure: str,
    bounds: Callable[[float], Interval],
    tests: int,
    how_many: Callable[[], int | None] | None = None,
    advice: str = _MEASURE_MORE,
) -> Decision:
    """``bounds`` are one-sided ones by their confidence; ``how_many`` examples would do, ``advice`` if nobody knows."""
    assert criterion.confidence is not None
    interval = bounds(criterion.confidence)
    if math.isnan(interval.low) or math.isnan(interval.high):
        return _missing(criterion, evidence, f"{criterion.figure} has no interval in this result")
    found = f"{figure} [{_number(interval.low)}, {_number(interval.high)}]"
    decision = partial(Decision, evidence.configuration, criterion.text, found=found)
    if interval.high <= criterion.value if criterion.at_most else interval.low >= criterion.value:
        return decision(verdict="pass")
    is_beyond = _is_broken(criterion, interval)
    if is_beyond and _is_broken(criterion, bounds(confidence_of_each(criterion.confidence, tests))):
        return decision(verdict="fail")
    start = f"beyond it, but not clearly enough for one of {tests} limits" if is_beyond else "too few examples to tell"
    if how_many is None:
        return decision(verdict="inconclusive", reason=f"{start}; {advice}")
    needed = how_many()
    if needed is None:
        return decision(verdict="inconclusive", reason=_AT_THE_LIMIT)
    reason = f"{start}; about {needed} would do in {100 * POWER:g} % of cases if they are like these"
    return decision(verdict="inconclusive", reason=reason, examples_needed=needed)


def _is_broken(criterion: Criterion, interval: Interval) -> bool:
    return interval.low > criterion.value if criterion.at_most else interval.high < criterion.value


def _missing(criterion: Criterion, evidence: Evidence, reason: str) -> Decision:
    return Decision(evidence.configuration, criterion.text, "not measured", "", reason)


def _number(value: float | None) -> str:
    return "no number" if value is None else f"{value:.4g}"


def worst_verdict(decisions: Sequence[Decision]) -> GateVerdict:
    """The worst verdict; ``not measured`` for none at all, because nothing was shown."""
    return max((decision.verdict for decision in decisions), key=GATE_VERDICTS.index, default="not measured")
