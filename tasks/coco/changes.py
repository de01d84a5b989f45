"""How sure changes of COCO figures are, by a paired bootstrap over pictures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import fields, replace

from evaltools.gates.accuracy_verdict import LEVEL, change_verdict, in_words
from evaltools.metrics.coco_bootstrap import ImageMatches, category_precisions, coco_figures
from evaltools.metrics.coco_stats import CocoStats
from evaltools.metrics.interval import Interval, holm
from evaltools.metrics.means import FEWEST_DIFFERING
from evaltools.metrics.power import examples_to_judge_figure
from evaltools.metrics.resampled import FEWEST_EXAMPLES, SEED, resample_weights, resampled_change
from evaltools.metrics.words import change as change_in_words
from evaltools.result.verdict import Verdict
from evaltools.tasks.coco.result import BoxComparison, CategoryChange, DetectionFigures, StatChange

_STATS: Final = tuple(field.name for field in fields(CocoStats))
_DIGITS: Final = 6
_ONE_SIDE: Final = 0.975
_ALIKE: Final = 0.5
"""A configuration with fewer of the baseline's boxes gives other answers, whatever mAP says of so few pictures."""


class CategoryDraws(Struct, frozen=True):
    """AP of K categories over R draws of the pictures ``(R, K)``, and the pictures with an object of each ``(K,)``."""

    precisions: npt.NDArray[np.float64]
    pictures: npt.NDArray[np.int64]


def resampled(matches: ImageMatches, resamples: int) -> tuple[dict[str, list[float | None]], CategoryDraws | None]:
    """The twelve COCO figures, 0..1, and AP by category, both over the same ``resamples`` draws of the pictures.

    A figure is None in a draw without an object of that kind. Without resamples or pictures there is neither.
    """
    if resamples == 0 or matches.image_count == 0:
        return {}, None
    weights = resample_weights(matches.image_count, resamples, SEED)
    figures = {
        stat: [None if np.isnan(value) else round(value, _DIGITS) for value in column.tolist()]
        for stat, column in zip(_STATS, coco_figures(matches, weights).T, strict=True)
    }
    present = matches.truth_categories[matches.truth_counts[0] > 0]
    pictures = np.bincount(present, minlength=matches.category_count)
    return figures, CategoryDraws(category_precisions(matches, weights), pictures)


def changes_of_categories(
    baseline: DetectionFigures, other: DetectionFigures, draws: tuple[CategoryDraws | None, CategoryDraws | None]
) -> list[CategoryChange]:
    """The changes of the categories whose AP differs; both sides must have evaluated the same pictures.

    None for too few pictures.
    """
    before, after = draws
    if not (baseline.evaluation and other.evaluation and before and after) or baseline.pictures < FEWEST_EXAMPLES:
        return []
    changes = []
    pairs = zip(baseline.evaluation.categories, other.evaluation.categories, strict=True)
    for number, (own, theirs) in enumerate(pairs):
        if own.ap is None or theirs.ap is None or own.ap == theirs.ap:
            continue
        columns = [
            [None if np.isnan(value) else value for value in each.precisions[:, number].tolist()]
            for each in (before, after)
        ]
        found = resampled_change(columns[0], columns[1], theirs.ap - own.ap, baseline.pictures)
        pictures = int(before.pictures[number])
        surest = min(1.0, 2.0 ** (1 - pictures))
        p_value = max(surest, found.p_value()) if found else 1.0
        changes.append(CategoryChange(own.name, own.objects, pictures, own.ap, theirs.ap, p_value, p_value))
    return changes


def changes_of_figures(baseline: DetectionFigures, other: DetectionFigures) -> list[StatChange]:
    """The changes of the figures that both sides have, with their 95 % intervals.

    Both sides must have evaluated the same pictures. None for too few pictures.
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
            changes.append(StatChange(stat, found.change, interval, p_value, p_value, round(found.differing, 1)))
    return changes


def corrected(comparisons: Sequence[BoxComparison]) -> list[BoxComparison]:
    """The comparisons with p-values that Holm's method corrects for everything that is compared with the same baseline.

    The corrections are separate for mAP, for the other figures and for the categories.
    """
    families: defaultdict[tuple[str, str], dict[tuple[int, str | int], float]] = defaultdict(dict)
    for number, comparison in enumerate(comparisons):
        for change in comparison.changes:
            family = "mAP" if change.stat == "ap" else "other figures"
            families[comparison.baseline, family][number, change.stat] = change.p_value
        for place, category in enumerate(comparison.categories):
            families[comparison.baseline, "categories"][number, place] = category.p_value
    adjusted: dict[tuple[int, str | int], float] = {}
    for tests in families.values():
        adjusted |= zip(tests, holm([*tests.values()]), strict=True)
    return [
        replace(
            comparison,
            changes=[replace(change, p_value_holm=adjusted[number, change.stat]) for change in comparison.changes],
            categories=[
                replace(category, p_value_holm=adjusted[number, place])
                for place, category in enumerate(comparison.categories)
            ],
        )
        for number, comparison in enumerate(comparisons)
    ]


def verdicts_on_map(
    comparisons: Sequence[BoxComparison], figures: Sequence[DetectionFigures], margin: float
) -> dict[str, list[Verdict]]:
    """The verdict on mAP of each comparison, by configuration, from the corrected p-value.

    If the change has no interval, the verdict is "not decided", with the reason. What mAP does not decide is "diverged"
    where fewer than half of the baseline's boxes have a partner.
    """
    found: dict[str, list[Verdict]] = {}
    of = {entry.configuration: entry for entry in figures}
    changes = [next((change for change in entry.changes if change.stat == "ap"), None) for entry in comparisons]
    tests = Counter(entry.baseline for entry, change in zip(comparisons, changes, strict=True) if change is not None)
    for comparison, change in zip(comparisons, changes, strict=True):
        if change is None:
            verdict = _without_interval(comparison, of.get(comparison.baseline), of.get(comparison.other), margin)
        else:
            verdict = _by_interval(comparison, change, margin, tests[comparison.baseline])
        found.setdefault(comparison.other, []).append(_by_boxes(verdict, comparison))
    return found


def _by_boxes(verdict: Verdict, comparison: BoxComparison) -> Verdict:
    """The verdict, where mAP decides or enough boxes are the baseline's."""
    share = comparison.matched_share
    if verdict.kind != "not decided" or share is None or share >= _ALIKE:
        return verdict
    texts = [f"{100 * share:.0f} % of the boxes match"]
    if verdict.change is not None:
        texts.append(change_in_words(verdict.change, verdict.low, verdict.high, is_share=True))
    text = f"diverged: {', '.join(texts)}"
    return replace(verdict, kind="diverged", texts=[text], examples_needed=None, fewest_examples=None)


def is_clear(change: StatChange | CategoryChange) -> bool:
    """Whether a change is more than chance explains, beside all others that are compared with the same baseline."""
    return change.p_value_holm <= LEVEL


def _by_interval(comparison: BoxComparison, change: StatChange, margin: float, tests: int) -> Verdict:
    """The verdict from the interval of the change.

    How many pictures would decide is left open where fewer than 10 pictures make the change: they say nothing about
    others.
    """
    verdict = change_verdict("ap", change.change, change.interval, margin, is_clear(change))
    needed = None
    if verdict.kind == "not decided" and change.differing >= FEWEST_DIFFERING:
        needed = examples_to_judge_figure(
            change.change, change.interval, margin, comparison.example_count, LEVEL / tests
        )
    verdict = replace(verdict, against=comparison.baseline, p_value=change.p_value_holm, examples_needed=needed)
    is_unchanged = change.change == change.differing == 0
    return in_words(verdict, comparison.example_count, comparison.identical, is_unchanged)


def _without_interval(
    comparison: BoxComparison, baseline: DetectionFigures | None, other: DetectionFigures | None, margin: float
) -> Verdict:
    """The verdict "not decided", with the change of mAP where both sides have one."""
    before, after = (entry.evaluation.stats.ap if entry and entry.evaluation else None for entry in (baseline, other))
    change = None if before is None or after is None else after - before
    why, fewest = _why_no_interval(comparison, baseline, other)
    verdict = Verdict("not decided", "ap", comparison.baseline, change=change, margin=margin, fewest_examples=fewest)
    return in_words(verdict, comparison.example_count, comparison.identical, why=why)


def _why_no_interval(
    comparison: BoxComparison, baseline: DetectionFigures | None, other: DetectionFigures | None
) -> tuple[str, int | None]:
    """Why, and how many pictures would be the fewest, where that is the reason."""
    both = [entry for entry in (baseline, other) if entry is not None]
    if any(entry.evaluation is None for entry in both):
        return "without a ground truth there is no mAP", None
    if any(entry.pictures != comparison.example_count for entry in both):
        return "the two did not finish the same pictures", None
    if comparison.example_count < FEWEST_EXAMPLES:
        few = f"{comparison.example_count} pictures, {FEWEST_EXAMPLES} are the fewest for an interval"
        return few, FEWEST_EXAMPLES
    if not all(entry.resampled for entry in both):
        return "--bootstrap_resamples=0 leaves no interval", None
    return "mAP has no interval on these pictures", None
