"""Drawn examples of a task of your own: which of its metrics they tell of all, and the figures that they tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from evaltools.engine.task import Example
from evaltools.errors import UsageError
from evaltools.gates.criteria import Criterion
from evaltools.result.sampling import Sampling
from evaltools.tasks.own.definition import Mean, Pooled, Share, Task
from evaltools.tasks.own.result import MetricMean, OwnPart
from evaltools.tasks.own.task import ObservedScores
from evaltools.tasks.shared.options.sampling import require_decidable
from evaltools.tasks.shared.sampled.figure import DrawnFigure

Score = Callable[[Example, ObservedScores, ObservedScores], float | None]


def lead(_example: Example, observed: ObservedScores) -> float:
    """Minus the uncertainty; 0, which tells nothing, where that is not known."""
    return 0.0 if observed.uncertainty is None else -observed.uncertainty


def drawn_figures(task: Task) -> Mapping[str, DrawnFigure[ObservedScores]]:
    """The metrics that are means over examples of scores whose span is known, and shares whose wholes are."""
    found = {}
    for place, metric in enumerate(task.metrics):
        lower = metric.better == "lower"
        if isinstance(metric, Share):
            found[metric.name] = DrawnFigure(_share(metric.name, place), size=_whole(place), lower_is_better=lower)
        elif metric.between is not None and not isinstance(metric, Pooled):
            low, high = metric.between
            found[metric.name] = DrawnFigure(_score(place), low, high, whole=_counts(metric), lower_is_better=lower)
    return found


def _counts(metric: Mean) -> bool:
    """Whether each score is the lowest or the highest one."""
    assert metric.between is not None
    return metric.whole and metric.between[1] - metric.between[0] == 1


def _score(place: int) -> Score:
    def score(_example: Example, _reference: ObservedScores, own: ObservedScores) -> float | None:
        value = own.values[place]
        return None if value is None else float(value)

    return score


def _whole(place: int) -> Callable[[Example, ObservedScores], float]:
    def whole(_example: Example, reference: ObservedScores) -> float:
        value = reference.values[place]
        return 0.0 if value is None else float(value[1])

    return whole


def _share(name: str, place: int) -> Score:
    """The share of an example; raises :class:`UsageError` where its whole is not that of the reference."""

    def share(example: Example, reference: ObservedScores, own: ObservedScores) -> float | None:
        base, value = reference.values[place], own.values[place]
        if base is None or value is None:
            return None
        if base[1] != value[1]:
            raise UsageError(
                f"{name}: {example.id!r} has the whole {base[1]:g} with the reference, {value[1]:g} with another, so "
                "that drawn examples say nothing of all; take pooled() in the place of share(), or leave --sample out"
            )
        return float(value[0]) / float(value[1]) if value[1] else None

    return share


def require_drawable(limit: Criterion, task: Task) -> None:
    """Raise :class:`UsageError` for a limit that drawn examples of the task cannot decide."""
    figures = drawn_figures(task)
    known = {metric.name: metric for metric in task.metrics}
    metric = known.get(limit.figure)
    if metric is not None and limit.figure not in figures:
        if isinstance(metric, Pooled):
            why = "is a figure of all examples together, of which a part of them says nothing sure"
        else:
            why = "has scores of which nothing says how large they can be; a metric of your own states that by between="
        raise UsageError(f"--limit={limit.text!r}: {limit.figure} {why}. {_there_are(figures)}")
    require_decidable(limit, {name: figure.lower_is_better for name, figure in figures.items()})


def _there_are(figures: Mapping[str, object]) -> str:
    return f"Limit one of {', '.join(figures)}, or leave --sample out" if figures else "Leave --sample out"


def of_all_examples(part: OwnPart, sampling: Sampling) -> OwnPart:
    """The part with the means of the tests as the drawn examples suggest them for all, and no comparisons.

    A test has no mean of a metric of which drawn examples tell nothing.
    """
    means: list[MetricMean] = []
    for mean in part.means:
        answer = sampling.answers.get(mean.configuration)
        if answer is None:
            means.append(mean)
        elif mean.metric in answer.figures:
            means.append(replace(mean, mean=answer.figures[mean.metric].value, interval=None))
    return replace(part, means=means, comparisons=[])
