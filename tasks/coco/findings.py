"""Finds signs that the outputs of a detector are read in a wrong way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.metrics.boxes import MIN_IOU
from evaltools.metrics.native_average_precision import overlap
from evaltools.tasks.coco.classes import ClassMapping
from evaltools.tasks.coco.task import FoundObjects
from evaltools.tasks.coco.truth import Truth

_FEWEST_DETECTIONS: Final = 20
_FAR_BEYOND: Final = 0.5
_FEWEST_SWAPPED: Final = 10
Pictures = Sequence[tuple[int, FoundObjects]]


def findings_of(pictures: Pictures, truth: Truth | None, mapping: ClassMapping) -> list[str]:
    """One sentence per finding, empty where all is well; ``pictures`` are numbers of pictures and what was found."""
    if not pictures:
        return []
    found = _counts(pictures)
    if any(len(objects.classes) for _, objects in pictures):
        boxes = np.concatenate([objects.boxes for _, objects in pictures])
        found += _scores(np.concatenate([objects.scores for _, objects in pictures]))
        found += _boxes(boxes)
        found += _classes(np.concatenate([objects.classes for _, objects in pictures]), truth, mapping)
        found += _swapped_sides(pictures, truth)
    else:
        found.append(f"nothing was found in {len(pictures)} pictures")
    return found


def _counts(pictures: Pictures) -> list[str]:
    found = []
    nonfinite = sum(objects.nonfinite for _, objects in pictures)
    if nonfinite:
        found.append(f"{nonfinite} detections have a NaN or infinite score, class or box; they count nowhere")
    too_many = [objects for _, objects in pictures if objects.stated > objects.rows]
    if too_many:
        largest = max(objects.stated for objects in too_many)
        found.append(
            f"the count is larger than the outputs in {len(too_many)} pictures (up to {largest:g}, with room for "
            f"{too_many[0].rows}); it was cut"
        )
    odd = [objects.stated for _, objects in pictures if not objects.stated >= 0 or objects.stated % 1]
    if odd:
        found.append(f"the count is no whole number from 0 on in {len(odd)} pictures, such as {odd[0]:g}")
    fractional = sum(objects.fractional for _, objects in pictures)
    if fractional:
        found.append(f"{fractional} classes are no whole numbers: is another output meant (--output_map)?")
    return found


def _scores(scores: npt.NDArray[np.float32]) -> list[str]:
    low, high = float(scores.min()), float(scores.max())
    found = []
    if low < 0 or high > 1:
        found.append(f"scores go from {low:g} to {high:g}, not 0..1: are they logits, or is another output meant?")
    if low == high and len(scores) >= _FEWEST_DETECTIONS:
        found.append(f"all {len(scores)} detections have the same score, {low:g}")
    return found


def _boxes(boxes: npt.NDArray[np.float32]) -> list[str]:
    top, left, bottom, right = boxes.T
    found = []
    far = int(((boxes < -_FAR_BEYOND) | (boxes > 1 + _FAR_BEYOND)).any(axis=1).sum())
    if far:
        furthest = float(boxes.ravel()[np.abs(boxes).argmax()])
        found.append(
            f"{far} of {len(boxes)} boxes reach more than half a picture beyond it (a side at {furthest:g}, where 0..1 "
            "is the picture): are they in pixels?"
        )
    inverted = int(((bottom < top) | (right < left)).sum())
    if inverted:
        found.append(f"{inverted} of {len(boxes)} boxes end before they begin; expected are top, left, bottom, right")
    outside = int(((bottom <= 0) | (top >= 1) | (right <= 0) | (left >= 1)).sum())
    if outside > inverted:
        found.append(f"{outside} of {len(boxes)} boxes lie outside the picture")
    return found


def _classes(classes: npt.NDArray[np.int64], truth: Truth | None, mapping: ClassMapping) -> list[str]:
    if truth is None:
        return []
    found = []
    if len(set(classes.tolist())) == 1 and len(classes) >= _FEWEST_DETECTIONS and len(truth.categories) > 1:
        found.append(f"all {len(classes)} detections are of class {classes[0]}")
    known = [category.id for category in truth.categories]
    unknown = classes[~np.isin(mapping.apply(classes), known)]
    if len(unknown):
        found.append(
            f"{len(unknown)} of {len(classes)} detections are of classes that the ground truth does not know, such as "
            f"class {unknown[0]} (category {int(mapping.apply(unknown[:1])[0])}); COCO does not count them, the native "
            "tool counts such a class as 0"
        )
    return found


def _swapped_sides(pictures: Pictures, truth: Truth | None) -> list[str]:
    """Whether far more boxes lie on objects if read as left, top, right, bottom."""
    if truth is None:
        return []
    as_is = swapped = 0
    for index, found in pictures:
        objects = truth.native[index].boxes
        if len(objects) and len(found.boxes):
            as_is += int((overlap(found.boxes, objects).max(axis=1) >= MIN_IOU).sum())
            swapped += int((overlap(found.boxes[:, [1, 0, 3, 2]], objects).max(axis=1) >= MIN_IOU).sum())
    if swapped < _FEWEST_SWAPPED or swapped < 2 * as_is:
        return []
    return [
        f"{swapped} boxes lie on an object if read as left, top, right, bottom, {as_is} as they are: the model gives "
        "the sides in another order"
    ]
