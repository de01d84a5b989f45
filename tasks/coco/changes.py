"""How sure changes of COCO figures are, by a paired bootstrap over pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Final

import numpy as np

from evaltools.gates.accuracy_verdict import change_verdict
from evaltools.metrics.coco_stats import CocoStats
from evaltools.result.verdict import Verdict
from evaltools.stats.coco_bootstrap import ImageMatches, coco_figures, resample_weights
from evaltools.stats.interval import Interval
from evaltools.stats.multiple import holm
from evaltools.stats.resampled import FEWEST_EXAMPLES, SEED, resampled_change
from evaltools.tasks.coco.result import BoxComparison, DetectionFigures, StatChange

_STATS: Final = tuple(field.name for field in fields(CocoStats))
_DIGITS: Final = 6
_ONE_SIDE: Final = 0.975


def resampled_figures(matches: ImageMatches, resamples: int) -> dict[str, list[float | None]]:
    """Each of the twelve figures over ``resamples`` draws of the pictures.

    None where no object of that kind was drawn.
    """
    if resamples == 0 or matches.image_count == 0:
        return {}
    values = coco_figures(matches, resample_weights(matches.image_count, resamples, SEED))
    return {
        stat: [None if np.isnan(value) else round(value, _DIGITS) for value in column.tolist()]
        for stat, column in zip(_STATS, values.T, strict=True)
    }


def changes_of_figures(baseline: DetectionFigures, other: DetectionFigures) -> list[StatChange]:
    """The figures that both have, with the 95 % interval of their change; both must be of the same pictures.

    None for too few pictures.
    """
    if baseline.evaluation is None or other.evaluation is None or baseline.pictures < FEWEST_EXAMPLES:
        return []
    changes = []
    for stat, values in baseline.resampled.items():
        before, after = getattr(baseline.evaluation.stats, stat), getattr(other.evaluation.stats, stat)
        if before is None or after is None:
            continue
        found = resampled_change(values, other.resampled.get(stat, []), after - before, baseline.pictures)
        if found is not None:
            interval = Interval(found.bound(_ONE_SIDE, upper=False), found.bound(_ONE_SIDE, upper=True))
            p_value = found.p_value()
            changes.append(StatChange(stat, found.change, interval, p_value, p_value))
    return changes


def corrected(comparisons: Sequence[BoxComparison]) -> list[BoxComparison]:
    """With Holm's p-values, for each figure apart, over all others that are held against the same baseline."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for comparison in comparisons:
        for change in comparison.changes:
            found.setdefault((comparison.baseline, change.stat), {})[comparison.other] = change.p_value
    adjusted = {family: dict(zip(values, holm(list(values.values())), strict=True)) for family, values in found.items()}
    return [
        replace(
            comparison,
            changes=[
                replace(change, p_value_holm=adjusted[comparison.baseline, change.stat][comparison.other])
                for change in comparison.changes
            ],
        )
        for comparison in comparisons
    ]


def verdicts_on_map(comparisons: Sequence[BoxComparison], margin: float) -> dict[str, list[Verdict]]:
    """The verdicts on mAP by configuration, where its change is known."""
    found: dict[str, list[Verdict]] = {}
    for comparison in comparisons:
        for change in comparison.changes:
            if change.stat == "ap":
                verdict = change_verdict("ap", change.change, change.interval, margin)
                found.setdefault(comparison.other, []).append(replace(verdict, against=comparison.baseline))
    return found
