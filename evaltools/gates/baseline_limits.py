"""Limits on what changed since a baseline.

Drops and ratios are against the baseline, all else is about the later result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from evaltools.gates.baseline import Baseline, BaselineConfiguration, resampled_values
from evaltools.gates.baseline_diff import flips_of
from evaltools.gates.check import decide_together, evidence_of
from evaltools.gates.criteria import Criterion
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import Evidence
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.stats.latency import LatencyRatio, latency_ratio
from evaltools.stats.means import mean_change
from evaltools.stats.power import Change, CountedChange
from evaltools.stats.resampled import resampled_change
from evaltools.task_kind import metric_named


class PlainChange(Struct, frozen=True):
    """A change of which only the size is known, and no bounds."""

    change: float

    def bound(self, confidence: float, upper: bool) -> float:  # noqa: ARG002
        """NaN: no bound is known."""
        return math.nan

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> None:  # noqa: ARG002
        """None: it is not known."""
        return


def hold_limits(
    limits: Sequence[Criterion], before: Baseline, now: Baseline, result: EvaluationResult
) -> tuple[Decision, ...]:
    """Check limits against every configuration that both have; the reference is checked only where there is no other.

    ``now`` is the :func:`make_baseline` of ``result``. Limits with a confidence are corrected for their number.
    """
    old = {entry.name: entry for entry in before.configurations}
    new = {entry.name: entry for entry in now.configurations}
    both = [entry for entry in result.configurations if entry.name in old and entry.name in new]
    judged = [entry for entry in both if entry.role == "test"] or both
    is_paired = before.task == now.task and before.examples_sha256 == now.examples_sha256
    held = []
    for entry in judged:
        since = _since(result, entry, old[entry.name], new[entry.name], is_paired)
        own = evidence_of(result, entry)
        held += [(criterion, own if criterion.kind == "value" else since) for criterion in limits]
    decisions = decide_together(held)
    return tuple(
        _with_interval(decision, criterion, evidence.ratio)
        for decision, (criterion, evidence) in zip(decisions, held, strict=True)
    )


def _since(
    result: EvaluationResult,
    entry: ConfigurationResult,
    old: BaselineConfiguration,
    new: BaselineConfiguration,
    is_paired: bool,
) -> Evidence:
    """The evidence on a configuration, with the baseline in the place of the reference."""
    own = evidence_of(result, entry)
    changes = {figure: _change(figure, old, new, is_paired) for figure in new.figures if figure in old.figures}
    known = {figure: change for figure, change in changes.items() if change is not None}
    return replace(own, reference_not_measured=None, changes=known, ratio=latency_since(old, new, is_paired))


def _change(figure: str, old: BaselineConfiguration, new: BaselineConfiguration, is_paired: bool) -> Change | None:
    """The change of a figure: on the same examples where both recorded them, else from the two figures alone.

    A loss is negative.
    """
    before, now = old.figures[figure], new.figures[figure]
    if before is None or now is None:
        return None
    metric, mean, earlier = metric_named(figure), new.means.get(figure), old.means.get(figure)
    sign = -1.0 if mean is not None and mean.better == "lower" else 1.0
    if is_paired and metric is not None and metric.ranked and new.ranks and len(old.ranks) == len(new.ranks):
        return CountedChange(flips_of(old.ranks, new.ranks, metric.ranked))
    if is_paired and mean and earlier and mean.scores and len(mean.scores) == len(earlier.scores):
        change = mean_change(earlier.scores, mean.scores)
        return change.reversed() if sign < 0 else change
    if is_paired and old.answered == new.answered:
        then, later = (resampled_values(entry.resampled.get(figure, [])) for entry in (old, new))
        resampled = resampled_change(then, later, now - before, new.answered)
        if resampled is not None:
            return resampled
    return PlainChange(sign * (now - before))


def latency_since(old: BaselineConfiguration, new: BaselineConfiguration, is_paired: bool) -> LatencyRatio | None:
    """The latency ratio: of the times on the same examples where both have them, else of the medians, with no pairs."""
    if is_paired and new.times_us and len(old.times_us) == len(new.times_us):
        return latency_ratio(old.times_us, new.times_us)
    before, now = (entry.figures.get("latency_ms") for entry in (old, new))
    return None if now is None or not before else LatencyRatio(0, now / before, None)


def _with_interval(decision: Decision, criterion: Criterion, ratio: LatencyRatio | None) -> Decision:
    """The decision with the interval of a ratio, which is shown even if the limit is on the ratio itself."""
    found = decision.found
    if criterion.kind != "ratio" or found is None or found.low is not None or ratio is None or ratio.interval is None:
        return decision
    shown = replace(found, low=ratio.interval.low, high=ratio.interval.high, processes=ratio.processes)
    return replace(decision, found=shown)
