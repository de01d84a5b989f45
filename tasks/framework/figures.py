"""Means of scores, their changes against another configuration on the same examples, and what is drawn of these."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from evaltools.gates.accuracy_verdict import margin_of_mean, mean_verdict
from evaltools.metrics.interval import Interval
from evaltools.metrics.jackknife import GROUPS, MOST_ALONE, contributions
from evaltools.metrics.means import MeanChange, ScoreBounds, mean_change, mean_of_scores
from evaltools.result.figure import Figure, Spread
from evaltools.result.section import Drawing
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.definition import Mean, Pooled
from evaltools.tasks.framework.steps import ObservedScores

MOST_DRAWINGS: Final = 8
"""Of each configuration."""
Rows = Mapping[int, tuple[npt.NDArray[Any] | None, ...]]
"""What was observed of each example that a configuration finished, by its number: an array for each metric."""


class Scores(Struct, frozen=True):
    """A metric over some examples: its figure, and a number of each example, whose mean that is.

    ``rows`` is what was observed of each. ``figure_of`` makes the figure of them, if no mean does.
    """

    figure: float
    values: npt.NDArray[np.float64]
    rows: Sequence[npt.NDArray[Any]]
    figure_of: Callable[[Sequence[npt.NDArray[Any]]], float] | None = None


class ScoresSeen:
    """Collects what was observed of a configuration, by the example's number, and the first names without a metric."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[npt.NDArray[Any] | None, ...]] = {}
        self.unknown: tuple[str, ...] = ()
        self.certain: set[str] = set()

    def add(self, example: int, observation: ObservedScores[Any]) -> None:
        """Add the scores of one example."""
        self.rows[example] = observation.values
        self.unknown = self.unknown or tuple(observation.unknown)
        self.certain.update(observation.certain)


def scores_of(metric: Mean, rows: Sequence[npt.NDArray[Any]]) -> Scores | None:
    """A metric over examples, at least one; None where there is no such figure over them.

    That of a metric over all of them comes with what each example contributes, if its function gives no scores itself.
    """
    if not isinstance(metric, Pooled):
        values = np.array([float(row) for row in rows])
        return Scores(math.fsum(values) / len(values), values, rows)
    whole = np.asarray(metric.figure(rows), np.float64)
    if not np.isfinite(whole).all():
        return None
    if whole.ndim:
        return Scores(math.fsum(whole) / len(whole), whole, rows)

    def figure_of(some: Sequence[npt.NDArray[Any]]) -> float:
        return float(metric.figure(some))

    return Scores(float(whole), contributions(figure_of, rows), rows, figure_of)


class FigureTable:
    """The metrics of all configurations over any of their examples; nothing is computed twice."""

    def __init__(self, metrics: Sequence[Mean], rows: Mapping[str, Rows]) -> None:
        self.metrics: Final = tuple(metrics)
        self.rows: Final = rows
        self._known: dict[tuple[str, int, tuple[int, ...]], Scores | None] = {}

    def examples(self, configuration: str, place: int) -> list[int]:
        """The examples of a configuration with a score for the metric at that place, ascending."""
        return sorted(index for index, row in self.rows[configuration].items() if row[place] is not None)

    def scores(self, configuration: str, place: int, examples: Sequence[int]) -> Scores | None:
        """The metric at a place over some of the examples of a configuration; None where there is no such figure."""
        key = configuration, place, tuple(examples)
        if key not in self._known:
            observed = (self.rows[configuration][index][place] for index in examples)
            rows = [row for row in observed if row is not None]
            self._known[key] = scores_of(self.metrics[place], rows) if rows else None
        return self._known[key]

    def means(self, configuration: str, certain: Collection[str] = ()) -> dict[str, Figure]:
        """Each metric of one configuration; none without an example. Those that are ``certain`` have no interval."""
        found = {}
        for place, metric in enumerate(self.metrics):
            scores = self.scores(configuration, place, self.examples(configuration, place))
            if scores is not None:
                bounds = None if scores.figure_of is not None else metric.bounds
                mean = mean_of_scores(scores.figure, scores.values, bounds)
                found[metric.name] = Figure(
                    mean.mean,
                    better=metric.better,
                    interval=None if metric.name in certain else _within(mean.interval(), metric.bounds),
                    count=mean.count,
                    margin=metric.margin,
                    spread=Spread(mean.deviation, mean.unequal, mean.skewness, mean.by_two, mean.bounds),
                )
        return found

    def changes(self, baseline: str, other: str) -> dict[str, MeanChange]:
        """Each metric of one configuration against another, over the examples that both finished; none without one."""
        found = {}
        for place, metric in enumerate(self.metrics):
            common = sorted(set(self.examples(baseline, place)).intersection(self.examples(other, place)))
            before, after = (self.scores(name, place, common) for name in (baseline, other))
            if before is not None and after is not None:
                found[metric.name] = _change(before, after, metric.bounds)
        return found

    def changed_examples(self, baseline: str, other: str) -> tuple[int, int]:
        """How many of the examples that both finished have another score in any metric, and how many there are."""
        before, after = self.rows[baseline], self.rows[other]
        both = before.keys() & after.keys()
        return sum(not _are_same(before[example], after[example]) for example in both), len(both)

    def worst_example(self, baseline: str, other: str, metric: str) -> int | None:
        """The example that loses most by a metric; None where there is none that both finished."""
        place = next(place for place, each in enumerate(self.metrics) if each.name == metric)
        common = sorted(set(self.examples(baseline, place)).intersection(self.examples(other, place)))
        before, after = (self.scores(name, place, common) for name in (baseline, other))
        if before is None or after is None:
            return None
        losses = before.values - after.values
        return common[int(np.argmax(losses if self.metrics[place].better == "higher" else -losses))]

    @property
    def contributed(self) -> set[str]:
        """The metrics of which single examples have no score, but contribute to what all of them have together."""
        found = (
            (metric.name, self.scores(name, place, self.examples(name, place)))
            for name in self.rows
            for place, metric in enumerate(self.metrics)
        )
        return {metric for metric, scores in found if scores is not None and scores.figure_of is not None}

    def of_examples(self, configuration: str, count: int) -> dict[str, list[float | None]]:
        """What each of ``count`` examples adds to each metric, by its name; None where it has no score for it."""
        found = {}
        for place, metric in enumerate(self.metrics):
            examples = self.examples(configuration, place)
            scores = self.scores(configuration, place, examples)
            values = {} if scores is None else dict(zip(examples, scores.values.tolist(), strict=True))
            found[metric.name] = [values.get(example) for example in range(count)]
        return found


def _are_same(before: Sequence[npt.NDArray[Any] | None], after: Sequence[npt.NDArray[Any] | None]) -> bool:
    pairs = zip(before, after, strict=True)
    return all(one is two if one is None or two is None else np.array_equal(one, two) for one, two in pairs)


def _within(interval: Interval | None, bounds: ScoreBounds | None) -> Interval | None:
    """The interval as far as it lies within the bounds of a metric."""
    if interval is None or bounds is None:
        return interval
    low, high = (min(max(end, bounds[0]), bounds[1]) for end in (interval.low, interval.high))
    return Interval(low, high, interval.confidence)


def _change(before: Scores, after: Scores, bounds: ScoreBounds | None) -> MeanChange:
    """The change of a figure, in which as many examples differ as would each change it by itself.

    What examples contribute to a figure of all of them is not within its bounds, so that these guarantee nothing.
    """
    if before.figure_of is None:
        return mean_change(before.values, after.values, bounds)
    change = mean_change(before.values, after.values)
    others = [
        place for place, pair in enumerate(zip(before.rows, after.rows, strict=True)) if not np.array_equal(*pair)
    ]
    differing = _changing_by_themselves(before, after, others)
    return replace(change, change=after.figure - before.figure, differing=differing, flips=None, before=before.figure)


def _changing_by_themselves(before: Scores, after: Scores, places: Sequence[int]) -> int:
    """How many of the examples at these places change the figure by themselves; all where only all together do.

    Of many examples 200 are tried, evenly among these: their share is taken for that of all, at least one.
    """
    assert before.figure_of is not None
    are_many = len(before.rows) > MOST_ALONE and len(places) > GROUPS
    tried = [places[step * len(places) // GROUPS] for step in range(GROUPS)] if are_many else places
    rows = list(before.rows)
    one_by_one = [before.figure_of([*rows[:place], after.rows[place], *rows[place + 1 :]]) for place in tried]
    changing = sum(figure != before.figure for figure in one_by_one)
    if not changing:
        return 0 if after.figure == before.figure else 1 if are_many else len(places)
    return round(changing * len(places) / len(tried))


def verdicts_on(
    changes: Mapping[str, MeanChange],
    metrics: Sequence[Mean],
    against: str,
    margin: float | None,
    allowed: Mapping[str, float],
) -> list[Verdict]:
    """The verdicts on the changes from one configuration to another, in the order of the metrics.

    ``margin`` is that of metrics without one of their own, None where it was not stated. ``allowed`` are changes by
    metric that count as none, too.
    """
    found = []
    for metric in metrics:
        if metric.name in changes:
            change = changes[metric.name]
            stated = margin if metric.margin is None else metric.margin
            own_margin = margin_of_mean(change.before, metric.bounds) if stated is None else stated
            own_margin = max(own_margin, allowed.get(metric.name, 0.0))
            found.append(mean_verdict(metric.name, change, metric.better, own_margin, against))
    return found


class DrawnExample(Struct, frozen=True):
    """An example of which a configuration gives something else than the reference, as its task draws it."""

    example: str
    drawing: Drawing


class WorstDrawings:
    """Collects the drawings of the examples that a configuration changes most; those of others are let go."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._kept: list[tuple[float, int, DrawnExample]] = []

    def add(self, example: int, observation: ObservedScores[Any]) -> None:
        """Add what was observed of one example."""
        drawing = observation.drawing
        if drawing is not None:
            entry = (drawing.changed, -example, DrawnExample(self._names[example], drawing))
            heapq.heappush(self._kept, entry)
            if len(self._kept) > MOST_DRAWINGS:
                heapq.heappop(self._kept)

    @property
    def found(self) -> list[DrawnExample]:
        """Those kept, the most changed first, else in the order of the examples."""
        return [entry for _, _, entry in sorted(self._kept, reverse=True)]
