"""Compares a result with a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from evaltools.gates.accuracy_verdict import accuracy_verdict, change_verdict
from evaltools.gates.baseline import Baseline, BaselineConfiguration, resampled_values
from evaltools.gates.mean_verdict import mean_verdict, unpaired_mean_verdict
from evaltools.metrics.metric import Metric, metric_of_own_task
from evaltools.result.evidence import ScoreMean
from evaltools.result.verdict import Reason, Verdict, VerdictKind
from evaltools.stats.interval import Interval
from evaltools.stats.means import mean_change
from evaltools.stats.proportions import PairedCounts
from evaltools.stats.resampled import resampled_change
from evaltools.task_kind import all_metrics

TOLERANCE_OF_ERRORS: Final = 0.1
"""Errors of outputs may grow by this share; on the same machine they are the same numbers again."""
_LEVEL: Final = 0.05
_NO_RANK: Final = "-"
_ONE_SIDE: Final = 0.975
NO_NUMBER: Final = "no_number"
"""The reason where a figure is no number any more."""
UNTESTED: Final = "untested"
"""The reason where a share fell by more than the margin, and nothing tests that."""
FISHER: Final = "fisher"
"""The reason where two shares are of other examples, so that Fisher's exact test compares them."""
HeldTo = Literal["chance", "margin", "tenth", "same", "shown"]
"""What a figure may become worse by: what ``chance`` explains, the ``margin``, a ``tenth`` of it, nothing (``same``).

What is only ``shown`` may be anything.
"""


class FigureChange(Struct, frozen=True):
    """One figure of one configuration, in the baseline and now.

    ``output`` names the output that it is of, if any. ``verdict`` is None where nothing judges the change by itself.
    ``regressed``: it became worse, beyond what chance explains where a statistic tells; or it is no number any more
    (``now`` is null). ``held_to`` says what it may become worse by.
    """

    configuration: str
    figure: str
    output: str
    before: float
    now: float | None
    verdict: Verdict | None
    regressed: bool
    held_to: HeldTo = "shown"


class BaselineComparison(Struct, frozen=True):
    """Everything that differs between a baseline and now.

    ``paired``: both are of the same examples. ``setup`` says in words what was set up in another way, ``missing`` names
    configurations of the baseline that were not measured now, ``new`` figures that the baseline does not have.
    ``margin`` is the change of accuracy, 0..1, that counts as none.
    """

    paired: bool
    setup: list[str]
    changes: list[FigureChange]
    missing: list[str]
    new: list[str]
    margin: float

    @property
    def regressions(self) -> list[FigureChange]:
        """The figures that became worse."""
        return [change for change in self.changes if change.regressed]


def compare_with_baseline(before: Baseline, now: Baseline, margin: float) -> BaselineComparison:
    """Compare the figures of the configurations that both have.

    ``margin`` is the change of accuracy, 0..1, that counts as none.
    """
    paired = before.task == now.task and before.examples_sha256 == now.examples_sha256
    current = {entry.name: entry for entry in now.configurations}
    pairs = [(entry, current[entry.name]) for entry in before.configurations if entry.name in current]
    conditions = _Conditions(paired, now.example_count, margin, all_metrics())
    return BaselineComparison(
        paired=paired,
        setup=_setup(before, now, pairs),
        changes=[change for pair in pairs for change in _changes(*pair, conditions)],
        missing=[entry.name for entry in before.configurations if entry.name not in current],
        new=list(dict.fromkeys(name for old, new in pairs for name in new.figures if name not in old.figures)),
        margin=margin,
    )


class _Conditions(Struct, frozen=True):
    """How two baselines may be compared; ``examples`` is the number of those that both have."""

    paired: bool
    examples: int
    margin: float
    metrics: Mapping[str, Metric]


def _setup(
    before: Baseline, now: Baseline, pairs: Sequence[tuple[BaselineConfiguration, BaselineConfiguration]]
) -> list[str]:
    found = []
    if before.model_sha256 != now.model_sha256:
        found.append(f"another model file: {before.model} then, {now.model} now, with other content")
    elif before.model != now.model:
        found.append(f"the model is called {now.model} now, {before.model} then; it is the same")
    if before.example_count != now.example_count:
        found.append(f"{before.example_count} examples then, {now.example_count} now")
    elif before.examples_sha256 != now.examples_sha256:
        found.append("other examples, or only one of the two was made with --record_examples")
    for name in [*before.setup, *(name for name in now.setup if name not in before.setup)] if before.setup else []:
        then, later = (each.setup.get(name, "not given") for each in (before, now))
        if then != later:
            found.append(f"{name}: {then} then, {later} now")
    for old, new in pairs:
        if old.runtime != new.runtime:
            found.append(f"{old.name}: {old.runtime} then, {new.runtime} now")
        if old.flags != new.flags:
            found.append(f"{old.name}: {' '.join(old.flags) or 'no flags'} then, {' '.join(new.flags) or 'none'} now")
    return found


def _changes(old: BaselineConfiguration, new: BaselineConfiguration, conditions: _Conditions) -> list[FigureChange]:
    found = []
    for figure, before in old.figures.items():
        metric = conditions.metrics.get(figure)
        if metric is None and figure in old.means:
            metric = metric_of_own_task(figure)
        if before is not None:
            now, verdict = new.figures.get(figure), None
            if metric is not None and now is not None:
                verdict = _verdict(metric, before, now, old, new, conditions)
            change = FigureChange(old.name, figure, "", before, now, verdict, regressed=False)
            found.append(_judged(change, metric, conditions.margin))
    for output, figures in old.outputs.items():
        for figure, before in figures.items():
            if before is not None:
                now = new.outputs.get(output, {}).get(figure)
                change = FigureChange(old.name, figure, output, before, now, None, regressed=False)
                found.append(_judged(change, conditions.metrics.get(figure), conditions.margin))
    return found


def _judged(change: FigureChange, metric: Metric | None, margin: float) -> FigureChange:
    """The change of a figure, with whether it became worse and what it is held to.

    A figure without a metric is only shown.
    """
    before, now = change.before, change.now
    if now is None:
        gone = Verdict("worse", change.figure, reasons=[Reason(NO_NUMBER)])
        return replace(change, verdict=gone, regressed=True, held_to="same")
    if change.verdict is not None:
        return replace(change, regressed=change.verdict.kind == "worse", held_to="chance")
    if before == now and metric is not None and (metric.ranked is not None or metric.is_of_own_task):
        return replace(change, held_to="chance")
    if metric is None or metric.better is None or metric.against_baseline == "shown":
        return change
    is_higher_better = metric.better == "higher"
    if metric.against_baseline == "share":
        is_worse = now < before - margin if is_higher_better else now > before + margin
        verdict = Verdict("worse", change.figure, reasons=[Reason(UNTESTED)]) if is_worse else None
        return replace(change, verdict=verdict, regressed=is_worse, held_to="margin")
    tolerance = TOLERANCE_OF_ERRORS if change.output else 0.0
    is_worse = now < before * (1 - tolerance) if is_higher_better else now > before * (1 + tolerance)
    return replace(change, regressed=is_worse, held_to="tenth" if change.output else "same")


def _verdict(
    metric: Metric,
    before: float,
    now: float,
    old: BaselineConfiguration,
    new: BaselineConfiguration,
    conditions: _Conditions,
) -> Verdict | None:
    """The verdict on a figure that differs; None where it does not differ, or nothing can test it."""
    figure = metric.name
    if metric.ranked is not None:
        if conditions.paired and old.ranks and len(old.ranks) == len(new.ranks):
            flips = flips_of(old.ranks, new.ranks, metric.ranked)
            return accuracy_verdict(figure, flips, conditions.margin) if flips.lost + flips.gained else None
        return _unpaired(figure, before, now, (old.answered, new.answered))
    means = old.means.get(figure), new.means.get(figure)
    if means[0] is not None and means[1] is not None:
        return None if before == now else _of_means(figure, means[0], means[1], conditions)
    if conditions.paired and before != now:
        then, later = (resampled_values(entry.resampled.get(figure, [])) for entry in (old, new))
        if old.answered == new.answered or 0 in (old.answered, new.answered):
            found = resampled_change(then, later, now - before, new.answered or conditions.examples)
            bounds = [found.bound(_ONE_SIDE, upper) for upper in (False, True)] if found else [math.nan]
            if not math.isnan(bounds[0]):
                return change_verdict(figure, now - before, Interval(*bounds), conditions.margin)
    return None


def _of_means(figure: str, before: ScoreMean, now: ScoreMean, conditions: _Conditions) -> Verdict | None:
    """The verdict on a mean.

    It is on the same examples where both recorded all scores, else from both means and deviations.
    """
    if conditions.paired and before.scores and len(before.scores) == len(now.scores):
        margin = conditions.margin if now.margin is None else now.margin
        return mean_verdict(figure, mean_change(before.scores, now.scores), now.better, margin)
    then, later = ((each.mean, each.deviation, each.count) for each in (before, now))
    return unpaired_mean_verdict(figure, then, later, now.better)


def _unpaired(figure: str, before: float, now: float, answered: tuple[int, int]) -> Verdict | None:
    """The verdict on two shares of different examples, by Fisher's exact test."""
    if before == now or not all(answered) or not all(0 <= share <= 1 for share in (before, now)):
        return None
    from scipy import stats

    hits = [round(share * count) for share, count in zip((before, now), answered, strict=True)]
    table = [[hit, count - hit] for hit, count in zip(hits, answered, strict=True)]
    p_value = float(stats.fisher_exact(table).pvalue)
    kind: VerdictKind = "not decided" if p_value > _LEVEL else "worse" if now < before else "better"
    return Verdict(kind, figure, change=now - before, p_value=p_value, reasons=[Reason(FISHER)])


def flips_of(before: str, now: str, k: int) -> PairedCounts:
    """Lost and gained examples of Top-``k``, from the ranks of a baseline.

    >>> flips_of("0-10", "01-0", 1), flips_of("0-10", "01-0", 2)
    (PairedCounts(count=4, lost=0, gained=0), PairedCounts(count=4, lost=1, gained=1))
    """
    right = [tuple(rank != _NO_RANK and int(rank) < k for rank in pair) for pair in zip(before, now, strict=True)]
    return PairedCounts(len(right), right.count((True, False)), right.count((False, True)))
