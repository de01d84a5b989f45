"""Detection on drawn pictures: how sure the reference is of one, what it adds to figures, and what is known by some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from evaltools.engine.task import Example
from evaltools.errors import UsageError
from evaltools.gates.criteria import Criterion
from evaltools.metrics.boxes import compare_boxes
from evaltools.metrics.coco_stats import CocoStats, matches_of
from evaltools.metrics.native_average_precision import overlap
from evaltools.result.sampling import Sampling
from evaltools.stats.coco_recall import RECALLS, objects_found, objects_there, weights_of_objects
from evaltools.tasks.coco.classes import ClassMapping, choose_mapping
from evaltools.tasks.coco.figures import OverlappingObjects, coco_sets, evaluated_set
from evaltools.tasks.coco.result import CocoDetection
from evaltools.tasks.coco.task import FoundObjects
from evaltools.tasks.coco.truth import Truth
from evaltools.tasks.shared.options.sampling import require_decidable
from evaltools.tasks.shared.sampled.figure import DrawnFigure

Floats = np.ndarray[Any, np.dtype[np.float64]]
MATCHED_BOXES: Final = "matched_boxes"
_LOWEST, _HIGHEST, _STEP = 0.5, 0.95, 0.05
"""IoU thresholds of COCO."""
_NONE: Final = CocoStats(None, None, None, None, None, None, None, None, None, None, None, None)


def require_drawable(limit: Criterion, has_truth: bool) -> None:
    """Raise :class:`UsageError` for a limit that drawn pictures cannot decide."""
    figures = [MATCHED_BOXES, *(RECALLS if has_truth else ())]
    if limit.figure.startswith("ap"):
        raise UsageError(
            f"--limit={limit.text!r}: {limit.figure} ranks the detections of all pictures together, so that a part of "
            f"them says nothing sure of it. Limit one of {', '.join(figures)}, or leave --sample out"
        )
    require_decidable(limit, dict.fromkeys(figures, False))


def lead(truth: Truth | None, example: Example, found: FoundObjects) -> float:
    """The mean score of the boxes, times how far objects are from an IoU threshold that decides whether they are found.

    0..1 for scores of 0..1: an object half way between two thresholds counts 1, without objects nothing is near one.
    """
    sure = float(found.scores.mean()) if len(found.scores) else 1.0
    objects = None if truth is None else truth.native[example.index]
    if objects is None or not len(objects.class_ids) or not len(found.classes):
        return sure
    best = overlap(found.boxes, objects.boxes).max(axis=0).astype(np.float64)
    nearest = np.clip(np.rint(best / _STEP) * _STEP, _LOWEST, _HIGHEST)
    return sure * float(np.minimum(np.abs(best - nearest) / (_STEP / 2), 1).mean())


def drawn_figures(
    truth: Truth | None,
    stated: ClassMapping | None,
    category_ids: Sequence[int],
    examples: Sequence[Example],
    observed: Sequence[FoundObjects],
) -> Mapping[str, DrawnFigure[FoundObjects]]:
    """The share of the reference's boxes that are found again and, with a ground truth, the figures of recall.

    Those of which no picture has an object are left out. Classes are read as by what the reference found.
    """
    figures = {MATCHED_BOXES: DrawnFigure(_found_again, size=_boxes)}
    if truth is None:
        return figures
    objects = OverlappingObjects(truth)
    for example, found in zip(examples, observed, strict=True):
        objects.add(example, found)
    mapping, _ = choose_mapping(stated, category_ids, objects.pairs)
    recalls = _Recalls(truth, mapping, [example.index for example in examples])
    for place, name in enumerate(RECALLS):
        if recalls.has_objects(place):
            figures[name] = DrawnFigure(
                partial(recalls.score, place), size=partial(recalls.size, place), counts_among_others=True
            )
    return figures


def _found_again(_example: Example, reference: FoundObjects, own: FoundObjects) -> float | None:
    count = len(reference.classes)
    return compare_boxes(own.as_detections(), reference.as_detections()).matched / count if count else None


def _boxes(_example: Example, reference: FoundObjects) -> float:
    return float(len(reference.classes))


class _Recalls:
    """What each picture adds to the figures of recall over some pictures, given by their numbers."""

    def __init__(self, truth: Truth, mapping: ClassMapping, pictures: Sequence[int]) -> None:
        self._truth, self._mapping = truth, mapping
        evaluated = evaluated_set([truth.images[number] for number in pictures], truth)
        self._weights = weights_of_objects(objects_there(matches_of(evaluated, [])))
        self._places = {number: place for place, (number, _) in enumerate(sorted(evaluated.categories))}
        self._last: tuple[FoundObjects, Floats, Floats] | None = None

    def has_objects(self, figure: int) -> bool:
        """Whether any picture has an object that counts in a figure."""
        return bool(self._weights[figure].any())

    def score(self, figure: int, example: Example, _reference: FoundObjects, own: FoundObjects) -> float | None:
        """The share of what the picture can add that it adds, None where that is nothing."""
        found, there = self._parts(example, own)
        return float(found[figure] / there[figure]) if there[figure] else None

    def size(self, figure: int, example: Example, reference: FoundObjects) -> float:
        """What the picture can add."""
        return float(self._parts(example, reference)[1][figure])

    def _parts(self, example: Example, found: FoundObjects) -> tuple[Floats, Floats]:
        """What the picture adds to each figure, and what it can add, each ``(6,)``; kept until another is asked for."""
        if self._last is None or self._last[0] is not found:
            evaluated, detections = coco_sets([(example.index, found)], self._truth, self._mapping)
            there = {truth.category_id for truth in evaluated.truths}
            categories = sorted(entry for entry in evaluated.categories if entry[0] in there)
            if not categories:
                nothing = np.zeros(len(RECALLS))
                return nothing, nothing
            matches = matches_of(replace(evaluated, categories=categories), detections)
            weights = self._weights[:, [self._places[number] for number, _ in categories]]
            added = (weights * objects_found(matches)).sum(axis=1)
            possible = (weights * objects_there(matches)).sum(axis=1)
            self._last = (found, added, possible)
        return self._last[1], self._last[2]


def of_all_examples(detection: CocoDetection, sampling: Sampling) -> CocoDetection:
    """The part with the recall of the tests as the drawn pictures suggest it for all, and no other figure of theirs."""
    figures = []
    for entry in detection.figures:
        answer = sampling.answers.get(entry.configuration)
        if answer is not None:
            evaluation = entry.evaluation
            if evaluation is not None:
                known = {name: answer.figures[name].value for name in RECALLS if name in answer.figures}
                evaluation = replace(evaluation, stats=replace(_NONE, **known), categories=[])
            entry = replace(entry, evaluation=evaluation, native=None, resampled={})
        figures.append(entry)
    return replace(detection, figures=figures, comparisons=[])
