"""Decides limits: from a limit and what was measured to a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.gates.bounds import change_of, mean_of, share_of
from evaltools.gates.criteria import Criterion
from evaltools.gates.evidence import Evidence
from evaltools.metrics.between_runs import IndependentMeans, IndependentShares
from evaltools.metrics.interval import Interval, confidence_of_each
from evaltools.metrics.latency import LatencyRatio, at_confidence
from evaltools.metrics.means import FEWEST_DIFFERING, FEWEST_UNEQUAL, MeanChange, MeanOfScores
from evaltools.metrics.power import POWER, Change, examples_to_place
from evaltools.metrics.proportions import share_bound
from evaltools.parameter import did_you_mean
from evaltools.report.words.numbers import in_unit, number_in
from evaltools.result.verdict import GateVerdict

_NO_OLD: Final = (
    "there is no earlier evaluation to compare with; give --against=OLD.json, or against in the run (of benchmarks "
    "--against compares the times by itself)"
)
_NO_NUMBER: Final = "no number: a side has NaN or infinite values or another shape, or the reference is 0 everywhere"
_AT_THE_LIMIT: Final = "what was found is so close to the limit that no number of examples would decide; move the limit"
_RUNS_APART: Final = "two runs differ by so much that this shows nothing; measure where less runs, or both in one run"
_JUMPED: Final = (
    "the times jumped or drifted while they were measured, so the ratio has no interval; measure where nothing else "
    "runs and the clock is steady"
)
_MEDIANS_ONLY: Final = (
    "only the medians of both are known, no single times on the same examples, so there is no interval; leave 'at ...' "
    "out"
)
_OF_OLD_TIMES: Final = 0.95
"""The confidence of a limit on times vs old that states none."""


class Found(Struct, frozen=True):
    """What a limit was compared with: ``figure`` in the words of limits, such as ``top1 drop``, and its ``value``.

    ``value`` is None, or NaN, where there is no number. ``low`` and ``high`` are the one-sided bounds at the confidence
    of a limit that has one. ``output`` names the output that decides, ``processes`` counts those behind a latency ratio
    with bounds. ``unit`` is that of the limit, or else of the figure: a share, 0..1, is given in ``%`` or ``points``.
    ``of_medians``: a latency ratio of two medians, not of times on the same examples.

    >>> Found("top1 drop", 0.005, 0.001, 0.009).high
    0.009
    """

    figure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    output: str | None = None
    processes: int | None = None
    unit: str = ""
    of_medians: bool = False

    @property
    def number(self) -> str:
        """What was found without the name of the figure, for a cell beside the limit, which names it.

        >>> Found("top1 drop", 0.0, -0.0123, 0.0123, unit="points").number
        '0 points [-1.23, 1.23]'
        >>> Found("latency_ratio", 0.5, 0.45, 0.6, processes=1).number
        '0.5 [0.45, 0.6] of these processes'
        """
        span = "" if self.low is None else f" [{number_in(self.low, self.unit)}, {number_in(self.high, self.unit)}]"
        where = "" if self.output is None else f" in {self.output}"
        basis = {None: "", 1: " of these processes"}.get(self.processes, f" of such ({self.processes}) processes")
        return f"{in_unit(self.value, self.unit)}{span}{where}{' of medians' if self.of_medians else basis}"

    @property
    def text(self) -> str:
        """The figure with what was found.

        >>> Found("max_error", None, output="boxes").text
        'max_error no number in boxes'
        """
        return f"{self.figure} {self.number}"


class Decision(Struct, frozen=True):
    """The verdict on one limit for one configuration.

    ``found`` is what the limit was compared with, None where there is nothing; ``reason`` why it did not pass, with the
    next step, empty where ``found`` says it all. ``examples`` counts those that the figures are of. ``examples_needed``
    would decide an inconclusive one in 80 % of cases, None where no number would, or none is known.
    """

    configuration: str
    limit: str
    verdict: GateVerdict
    found: Found | None = None
    reason: str = ""
    examples_needed: int | None = None
    examples: int = 0

    @property
    def text(self) -> str:
        """The decision in one line.

        >>> Decision("xnnpack", "top1 >= 0.7", "pass", Found("top1", 0.75)).text
        'xnnpack: top1 >= 0.7: pass: top1 0.75'
        """
        found = "" if self.found is None else self.found.text
        return ": ".join(
            filter(None, (self.configuration, self.limit, self.verdict, "; ".join(filter(None, (found, self.reason)))))
        )


def decide(criterion: Criterion, evidence: Evidence, limits_together: int = 1) -> Decision:
    """Compare one limit with one configuration.

    A configuration that was not measured, or measured on something else than it asked for, keeps no limit. With a
    confidence a limit is kept where the one-sided bound is on its right side, broken where the other bound is on its
    wrong side, else inconclusive. Of ``limits_together`` each is broken only at the stricter confidence that so many
    need.

    >>> from evaltools.gates.criteria import parse_criterion
    >>> from evaltools.result.figure import Figure
    >>> decide(parse_criterion("top1 >= 0.7"), Evidence("xnnpack", figures={"top1": Figure(0.75)})).verdict
    'pass'
    """
    if evidence.not_measured:
        decision = _without_evidence(criterion, evidence, evidence.not_measured)
    elif not criterion.of_old:
        decision = _decided(criterion, evidence, limits_together)
    elif evidence.old is None:
        decision = _missing(criterion, evidence, _NO_OLD)
    elif evidence.old.not_measured:
        decision = _missing(criterion, evidence, evidence.old.not_measured)
    else:
        decision = _decided(criterion, evidence.old, limits_together)
    return replace(decision, examples=evidence.examples)


def _without_evidence(criterion: Criterion, evidence: Evidence, why: str) -> Decision:
    """What this machine cannot have is skipped where the gate allows that; else the reason says how to allow it."""
    decision = _missing(criterion, evidence, why)
    if not evidence.cannot_exist:
        return decision
    if evidence.allowed.missing:
        return replace(decision, verdict="skipped")
    return replace(decision, reason=f"{why}; allow_missing = true in the gate skips what cannot exist here")


def _decided(criterion: Criterion, evidence: Evidence, limits_together: int) -> Decision:
    if criterion.is_relative and evidence.reference_not_measured:
        return _missing(criterion, evidence, evidence.reference_not_measured)
    if evidence.is_emulated and criterion.figure.startswith("latency"):
        return _missing(criterion, evidence, "emulated: no latency; measure it on the device")
    if evidence.busy and criterion.figure.startswith("latency"):
        return _missing(criterion, evidence, evidence.busy)
    if criterion.kind in ("drop", "rise"):
        return _decide_change(criterion, evidence, limits_together)
    if criterion.kind == "ratio":
        return _decide_ratio(criterion, evidence, limits_together)
    if criterion.output is not None or any(criterion.figure in output.figures for output in evidence.outputs):
        return _decide_outputs(criterion, evidence)
    return _decide_value(criterion, evidence, limits_together)


def _decide_value(criterion: Criterion, evidence: Evidence, limits_together: int) -> Decision:
    if criterion.figure not in evidence.figures:
        return _missing(criterion, evidence, _no_such_figure(criterion, evidence))
    figure = evidence.figures[criterion.figure]
    value = figure.value
    if value is None:
        nothing = f"{criterion.figure} has no value: there is nothing in the data that it could be measured on"
        return _missing(criterion, evidence, nothing)
    found = Found(criterion.figure, value, unit=criterion.unit or criterion.metric.unit)
    if criterion.confidence is None:
        return _compared(criterion, evidence, found)
    mean, share = mean_of(figure), share_of(figure)
    if mean is not None:
        if not mean.says_enough:
            return _few_unequal(criterion, evidence, found)
        return _bounded(criterion, evidence, found, partial(_mean_bounds, mean), limits_together)
    if share is None or share.count == 0:
        return _missing(criterion, evidence, _no_interval(criterion))
    counts = (share.successes, share.count)
    of_each_side = (1, limits_together) if criterion.at_most else (limits_together, 1)
    place = partial(examples_to_place, *counts, criterion.value, criterion.confidence, of_each_side)
    return _bounded(criterion, evidence, found, partial(_share_bounds, *counts), limits_together, place)


def _no_interval(criterion: Criterion) -> str:
    return f"{criterion.figure} has no interval in this result"


def _few_unequal(criterion: Criterion, evidence: Evidence, found: Found) -> Decision:
    reason = (
        f"fewer than {FEWEST_UNEQUAL} examples are unequal and the metric states no bounds, so nothing says how others "
        "would be; state its bounds=(LOWEST, HIGHEST), or measure more"
    )
    return Decision(evidence.configuration, criterion.text, "inconclusive", found, reason)


def _mean_bounds(mean: MeanOfScores, confidence: float) -> Interval:
    return Interval(*(mean.bound(confidence, upper) for upper in (False, True)))


def _share_bounds(successes: int, count: int, confidence: float) -> Interval:
    return Interval(*(share_bound(successes, count, confidence, upper) for upper in (False, True)))


def _drop_bounds(change: Change, confidence: float) -> Interval:
    return Interval(0.0 - change.bound(confidence, upper=True), 0.0 - change.bound(confidence, upper=False))


def _no_such_figure(criterion: Criterion, evidence: Evidence) -> str:
    if not criterion.metric.is_of_own_task:
        return f"this result has no {criterion.figure} ({criterion.metric.meaning})"
    hint = did_you_mean(criterion.figure, evidence.figures)
    return f"this result has no figure {criterion.figure!r}.{hint} It has {', '.join(evidence.figures)}"


def _decide_change(criterion: Criterion, evidence: Evidence, limits_together: int) -> Decision:
    """Decide a limit on a drop, or on a rise of a mean that is better when lower."""
    if criterion.metric.is_of_own_task and criterion.figure not in evidence.figures:
        return _missing(criterion, evidence, _no_such_figure(criterion, evidence))
    figure = evidence.figures.get(criterion.figure)
    is_lower_better = figure is not None and figure.spread is not None and figure.better == "lower"
    wanted = "rise" if is_lower_better else "drop"
    if criterion.kind != wanted:
        better = "lower" if is_lower_better else "higher"
        write = f"write '{criterion.figure} {wanted} <= ...'"
        return _missing(criterion, evidence, f"{better} is better for {criterion.figure}: {write}")
    base = evidence.base.get(criterion.figure)
    change = None if figure is None else change_of(figure, base, criterion.of_old)
    if change is None:
        no_change = f"there is no change of {criterion.figure} against a reference"
        return _missing(criterion, evidence, f"{no_change}; run with a reference on the same examples")
    name = f"{criterion.figure} {wanted}{' vs old' if criterion.of_old else ''}"
    found = Found(name, 0.0 - change.change, unit=criterion.unit)
    if criterion.confidence is None:
        return _compared(criterion, evidence, found)
    if isinstance(change, MeanChange | IndependentMeans) and not change.says_enough:
        return _few_unequal(criterion, evidence, found)
    is_planned = not isinstance(change, IndependentShares | IndependentMeans)
    if isinstance(change, MeanChange):
        is_planned = change.differing >= FEWEST_DIFFERING
    decisive = partial(change.examples_to_decide, criterion.value, criterion.confidence, limits_together)
    bounds = partial(_drop_bounds, change)
    return _bounded(criterion, evidence, found, bounds, limits_together, decisive if is_planned else None)


def _decide_ratio(criterion: Criterion, evidence: Evidence, limits_together: int) -> Decision:
    """Decide a limit on a latency ratio; one to an earlier run is never decided by only the ratio."""
    if evidence.ratio is None:
        no_times = "there is no reference whose times belong to the same examples"
        return _missing(criterion, evidence, "one of the two results has no times" if criterion.of_old else no_times)
    ratio, interval = evidence.ratio.ratio, evidence.ratio.interval
    figure = f"latency_ratio{' vs old' if criterion.of_old else ''}"
    if criterion.confidence is None and not criterion.of_old:
        found = Found(figure, ratio, unit=criterion.unit, of_medians=not evidence.ratio.pairs)
        return _compared(criterion, evidence, found)
    if interval is None:
        return _missing(criterion, evidence, _no_ratio_interval(evidence.ratio))
    processes = None if criterion.of_old else evidence.ratio.processes
    found = Found(figure, ratio, processes=processes, unit=criterion.unit)
    asked = replace(criterion, confidence=criterion.confidence or _OF_OLD_TIMES)
    decision = _bounded(asked, evidence, found, partial(at_confidence, ratio, interval), limits_together)
    if criterion.of_old and decision.verdict == "inconclusive":
        return replace(decision, reason=_RUNS_APART)
    return decision


def _no_ratio_interval(ratio: LatencyRatio) -> str:
    if not ratio.pairs:
        return _MEDIANS_ONLY
    return _JUMPED if ratio.withheld == "jumped" else "so few pairs of times give no interval; measure more"


def _decide_outputs(criterion: Criterion, evidence: Evidence) -> Decision:
    """Decide a limit on outputs, by the worst of those that it names and that have the figure."""
    named = [
        Found(criterion.figure, found.number, output=output.name, unit=criterion.unit or criterion.metric.unit)
        for output in evidence.outputs
        if (found := output.figures.get(criterion.figure)) and criterion.output in (None, *output.names)
    ]
    if not named:
        there_are = ", ".join(output.name for output in evidence.outputs) or "none"
        no_output = f"no output {str(criterion.output)!r} has {criterion.figure}"
        return _missing(criterion, evidence, f"{no_output}; outputs of this result: {there_are}")
    return _compared(criterion, evidence, max(named, key=lambda found: _badness(criterion, found.value)))


def _badness(criterion: Criterion, value: float | None) -> float:
    if _is_no_number(value):
        return math.inf
    assert value is not None
    return value if criterion.at_most else -value


def _compared(criterion: Criterion, evidence: Evidence, found: Found) -> Decision:
    if _is_no_number(found.value):
        return Decision(evidence.configuration, criterion.text, "fail", found, _NO_NUMBER)
    assert found.value is not None
    verdict: GateVerdict = "pass" if _keeps(criterion, found.value) else "fail"
    return Decision(evidence.configuration, criterion.text, verdict, found)


def _is_no_number(value: float | None) -> bool:
    return value is None or math.isnan(value)


def _bounded(
    criterion: Criterion,
    evidence: Evidence,
    found: Found,
    bounds: Callable[[float], Interval],
    limits_together: int,
    how_many: Callable[[], int | None] | None = None,
) -> Decision:
    """Decide a limit with a confidence.

    ``bounds`` are the one-sided bounds by their confidence. ``how_many`` gives the number of examples that would decide
    it, None where that is not known.
    """
    assert criterion.confidence is not None
    interval = bounds(criterion.confidence)
    if math.isnan(interval.low) or math.isnan(interval.high):
        return _missing(criterion, evidence, _no_interval(criterion))
    found = replace(found, low=interval.low, high=interval.high)
    verdict = verdict_of(criterion, interval, bounds(confidence_of_each(criterion.confidence, limits_together)))
    decision = Decision(evidence.configuration, criterion.text, verdict, found)
    if verdict != "inconclusive":
        return decision
    needed = None if how_many is None else how_many()
    if how_many is not None and needed is None:
        return replace(decision, reason=_AT_THE_LIMIT)
    is_beyond = verdict_of(criterion, interval, interval) == "fail"
    beyond = f"beyond it, but not clearly enough for one of {limits_together} limits"
    if needed is not None:
        more = f"about {needed} would do in {100 * POWER:g} % of cases if they are like these"
    else:
        more = f"measure more{', or where nothing else runs' if found.figure.startswith('latency') else ''}"
    reason = f"{beyond if is_beyond else 'too few examples to decide'}; {more}"
    return replace(decision, reason=reason, examples_needed=needed)


def verdict_of(criterion: Criterion, interval: Interval, stricter: Interval) -> GateVerdict:
    """The verdict on a limit by nothing but bounds; every decision with an interval is made here.

    ``pass`` where the whole interval keeps the limit, ``fail`` where the whole ``stricter`` one breaks it, which has
    the confidence that several limits together need; else an interval decides nothing.

    >>> from evaltools.gates.criteria import parse_criterion
    >>> limit = parse_criterion("top1 drop <= 0.5 points at 95 %")
    >>> [verdict_of(limit, each, each) for each in (Interval(-0.01, 0.004), Interval(-0.1, 0.1), Interval(0.006, 0.02))]
    ['pass', 'inconclusive', 'fail']
    """
    broken_from = criterion.value if criterion.broken_from is None else criterion.broken_from
    if stricter.low > broken_from if criterion.at_most else stricter.high < broken_from:
        return "fail"
    return "pass" if _keeps(criterion, interval.high if criterion.at_most else interval.low) else "inconclusive"


def _keeps(criterion: Criterion, value: float) -> bool:
    return value <= criterion.value if criterion.at_most else value >= criterion.value


def _missing(criterion: Criterion, evidence: Evidence, reason: str) -> Decision:
    return Decision(evidence.configuration, criterion.text, "not measured", reason=reason)
