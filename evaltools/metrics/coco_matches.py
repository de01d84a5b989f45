"""The matches of a pycocotools evaluation, image by image, as arrays from which figures can be computed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evaltools.stats.coco_bootstrap import AREAS, IOU_THRESHOLDS, ImageMatches

_BITS = (1 << np.arange(IOU_THRESHOLDS)).astype(np.uint16)

ImageEvaluation = Mapping[str, Any]


def image_matches(run: Any) -> ImageMatches:
    """Matches of a pycocotools ``COCOeval`` for boxes with its default parameters, after ``evaluate()``.

    Images and categories stand in the order of their ids. The matches of ground truths with the id 0 are lost, as
    they are in COCOeval.
    """
    images, categories = len(run.params.imgIds), len(run.params.catIds)
    evaluations: Sequence[ImageEvaluation | None] = run.evalImgs
    parts = []
    for category in range(categories):
        start = category * len(AREAS) * images
        by_area = [evaluations[start + area * images : start + (area + 1) * images] for area in range(len(AREAS))]
        parts.append(_of_category(category, by_area))
    return _joined(images, categories, parts)


def _of_category(category: int, by_area: Sequence[Sequence[ImageEvaluation | None]]) -> ImageMatches:
    """The matches of one category. An image without detection and ground truth has no evaluation, in any area range."""
    known = [image for image, evaluation in enumerate(by_area[0]) if evaluation is not None]
    found = [[evaluation for evaluation in evaluations if evaluation is not None] for evaluations in by_area]
    numbers = np.array(known, np.int32)
    sizes = np.array([len(evaluation["dtScores"]) for evaluation in found[0]], np.int64)
    starts = np.cumsum(sizes) - sizes
    total = int(sizes.sum())
    return ImageMatches(
        image_count=len(by_area[0]),
        category_count=1,
        images=np.repeat(numbers, sizes),
        categories=np.full(total, category, np.int32),
        ranks=(np.arange(total) - np.repeat(starts, sizes)).astype(np.uint8),
        scores=np.array([score for evaluation in found[0] for score in evaluation["dtScores"]], np.float64),
        matched=np.stack([_bits([evaluation["dtMatches"] for evaluation in each]) for each in found]),
        ignored=np.stack([_bits([evaluation["dtIgnore"] for evaluation in each]) for each in found]),
        truth_images=numbers,
        truth_categories=np.full(len(known), category, np.int32),
        truth_counts=np.array(
            [[np.count_nonzero(evaluation["gtIgnore"] == 0) for evaluation in each] for each in found], np.int32
        ),
    )


def _bits(flags: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.uint16]:
    """One number for each column of an array ``(10, D)``; bit t is set where row t is not 0."""
    joined = np.concatenate([np.zeros((IOU_THRESHOLDS, 0)), *flags], axis=1) != 0
    numbers: npt.NDArray[np.uint16] = _BITS @ joined
    return numbers


def _joined(images: int, categories: int, parts: Sequence[ImageMatches]) -> ImageMatches:
    def flat(name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
        return np.concatenate([np.zeros(0, kind), *(getattr(part, name) for part in parts)])

    def by_area(name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
        return np.concatenate([np.zeros((len(AREAS), 0), kind), *(getattr(part, name) for part in parts)], axis=1)

    return ImageMatches(
        image_count=images,
        category_count=categories,
        images=flat("images", np.int32),
        categories=flat("categories", np.int32),
        ranks=flat("ranks", np.uint8),
        scores=flat("scores", np.float64),
        matched=by_area("matched", np.uint16),
        ignored=by_area("ignored", np.uint16),
        truth_images=flat("truth_images", np.int32),
        truth_categories=flat("truth_categories", np.int32),
        truth_counts=by_area("truth_counts", np.int32),
    )
