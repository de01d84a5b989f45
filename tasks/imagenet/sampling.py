"""Classification on drawn examples: how sure an answer is, what it scores, and the figures that are known by some."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from evaltools.engine.task import Example
from evaltools.metrics.topk import TopKAccuracy
from evaltools.result.sampling import Sampling
from evaltools.tasks.imagenet.result import ImagenetPart
from evaltools.tasks.imagenet.task import TOP_K, TopKObservation
from evaltools.tasks.shared.sampled.figure import DrawnFigure

AGREEMENT: Final = "agreement"
FIGURES: Final = frozenset({*(f"top{k}" for k in range(1, TOP_K + 1)), AGREEMENT})
"""Those that can be limited where examples are drawn."""


def lead(_example: Example, answer: TopKObservation) -> float:
    """The distance of the two best raw scores; NaN where one of them is.

    >>> lead(Example(0, "a.jpg"), TopKObservation((3, 1), (0.75, 0.25), 0, 0))
    0.5
    """
    return answer.scores[0] - answer.scores[1]


def drawn_figures(top_k: int) -> Mapping[str, DrawnFigure[TopKObservation]]:
    """An answer scores 1 where it is right, or the reference's, else 0."""
    right = {f"top{k}": DrawnFigure(partial(_is_right, k), whole=True) for k in range(1, top_k + 1)}
    return {**right, AGREEMENT: DrawnFigure(_is_same, whole=True)}


def _is_right(k: int, _example: Example, _baseline: TopKObservation, other: TopKObservation) -> float:
    return float(other.rank is not None and other.rank < k)


def _is_same(_example: Example, baseline: TopKObservation, other: TopKObservation) -> float:
    return float(baseline.top1 == other.top1)


def of_all_examples(part: ImagenetPart, sampling: Sampling) -> ImagenetPart:
    """The part with the accuracies of the tests as the drawn examples suggest them for all, and no tests of flips.

    Counts of pictures stay those of the pictures that were run.
    """
    classified = dict(part.classified)
    for name, answer in sampling.answers.items():
        if name in classified and answer.figures:
            metrics, figures = classified[name].metrics, answer.figures
            accuracies = tuple(figures[f"top{k}"].value for k in range(1, len(metrics.topk.accuracies) + 1))
            topk = TopKAccuracy(metrics.topk.example_count, accuracies)
            classified[name] = replace(classified[name], metrics=replace(metrics, topk=topk), topk_intervals=[])
    return replace(part, classified=classified, comparisons=[replace(entry, topk=[]) for entry in part.comparisons])
