"""The twelve figures of COCO detection, from pycocotools or from faster-coco-eval.

Both get the same annotations, numbered from 1: with an annotation numbered 0, as some tools write it, pycocotools takes
every match of it for none.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import fields

from evaltools.errors import UsageError
from evaltools.extensions import package_version
from evaltools.metrics.coco_bootstrap import AREAS, IOU_THRESHOLDS, ImageMatches

CocoEvaluator = Literal["pycocotools", "faster-coco-eval"]
EVALUATORS: Final[tuple[CocoEvaluator, ...]] = ("pycocotools", "faster-coco-eval")
_BITS = (1 << np.arange(IOU_THRESHOLDS)).astype(np.uint16)
ImageEvaluation = Mapping[str, Any]


class TrueObject(Struct, frozen=True):
    """A ground truth: ``bbox`` as x, y, width, height in pixels."""

    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    area: float
    is_crowd: bool


class DetectedObject(Struct, frozen=True):
    """A detection: ``bbox`` as x, y, width, height in pixels."""

    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    score: float


class CocoStats(Struct, frozen=True):
    """The twelve figures of ``COCOeval.summarize`` in its order, 0..1; None where nothing of that kind exists (its -1).

    ``ap`` is the mean over the IoU thresholds 0.5, 0.55 .. 0.95, ``ap50`` and ``ap75`` those at one, ``ar_1`` the
    recall with at most one detection per picture and class. Small is an area below 32 x 32 pixels, large one above
    96 x 96.
    """

    ap: float | None
    ap50: float | None
    ap75: float | None
    ap_small: float | None
    ap_medium: float | None
    ap_large: float | None
    ar_1: float | None
    ar_10: float | None
    ar_100: float | None
    ar_small: float | None
    ar_medium: float | None
    ar_large: float | None


class CategoryPrecision(Struct, frozen=True):
    """AP of one category (IoU 0.5 to 0.95, all sizes, 100 detections per picture), None without an object of it."""

    category_id: int
    name: str
    objects: int
    ap: float | None
    ap50: float | None


class CocoEvaluation(Struct, frozen=True):
    """The figures of one evaluation; ``evaluator`` is the name and version of the package that computed them."""

    evaluator: str
    stats: CocoStats
    categories: list[CategoryPrecision]


class EvaluatedSet(Struct, frozen=True):
    """The pictures and categories that are evaluated; ``truths`` are only the objects of these."""

    image_ids: Sequence[int]
    categories: Sequence[tuple[int, str]]
    truths: Sequence[TrueObject]


def evaluate_detections(
    evaluated: EvaluatedSet, detections: Sequence[DetectedObject], evaluator: CocoEvaluator = "pycocotools"
) -> CocoEvaluation:
    """Run COCOeval for boxes with its default parameters; no detections at all give zeros.

    Detections of pictures or categories that are not evaluated do not count, nor those whose score or box is not
    finite. Raises :class:`UsageError` where the package is not installed.

    >>> truth = TrueObject(1, 7, (10.0, 10.0, 50.0, 50.0), 2500.0, False)
    >>> found = DetectedObject(1, 7, (10.0, 10.0, 50.0, 30.0), 0.9)
    >>> stats = evaluate_detections(EvaluatedSet([1], [(7, "cup")], [truth]), [found]).stats
    >>> round(stats.ap50, 3), round(stats.ap, 3), stats.ap_large
    (1.0, 0.3, None)
    """
    evaluation, _ = _evaluate(evaluated, detections, _load(evaluator))
    return evaluation


def evaluate_with_matches(
    evaluated: EvaluatedSet, detections: Sequence[DetectedObject], evaluator: CocoEvaluator = "pycocotools"
) -> tuple[CocoEvaluation, ImageMatches]:
    """The figures of :func:`evaluate_detections`, and the matches in each image.

    Images stand in the order of ``sorted(set(evaluated.image_ids))``. The matches are always those of pycocotools:
    faster-coco-eval keeps its own inside its C++ part. So with faster-coco-eval the matching is done twice, once by
    each.

    >>> truth = TrueObject(1, 7, (10.0, 10.0, 50.0, 50.0), 2500.0, False)
    >>> found = DetectedObject(1, 7, (10.0, 10.0, 50.0, 30.0), 0.9)
    >>> _, matches = evaluate_with_matches(EvaluatedSet([1], [(7, "cup")], [truth]), [found])
    >>> f"{matches.matched[0, 0]:010b}", matches.truth_counts.ravel().tolist()
    ('0000000111', [1, 0, 1, 0])
    """
    package = _load(evaluator)
    evaluation, run = _evaluate(evaluated, detections, package)
    if evaluator != "pycocotools":
        run = _matched(evaluated, detections, _load("pycocotools"))
    return evaluation, image_matches(run)


def _evaluate(
    evaluated: EvaluatedSet, detections: Sequence[DetectedObject], package: _EvaluatorPackage
) -> tuple[CocoEvaluation, Any]:
    """The figures, and the ``COCOeval`` that computed them."""
    run = _matched(evaluated, detections, package)
    with contextlib.redirect_stdout(io.StringIO()):
        run.accumulate()
        run.summarize()
    values = [None if value < 0 else float(value) for value in run.stats[: len(fields(CocoStats))]]
    return CocoEvaluation(package.version, CocoStats(*values), _by_category(run, evaluated, _numbers(evaluated))), run


def _matched(evaluated: EvaluatedSet, detections: Sequence[DetectedObject], package: _EvaluatorPackage) -> Any:
    """A ``COCOeval`` after ``evaluate()``."""
    numbers = _numbers(evaluated)
    truth_set = _filled(package.COCO, numbers, _truths(evaluated.truths, numbers))
    found_set = _filled(package.COCO, numbers, _detections(_finite(detections), numbers))
    with contextlib.redirect_stdout(io.StringIO()):
        run = package.COCOeval(truth_set, found_set, "bbox")
        run.evaluate()
    return run


class _Numbers(Struct, frozen=True):
    """Pictures and categories by their ids, numbered from 1 in order, as faster-coco-eval keeps ids in float64."""

    images: Mapping[int, int]
    categories: Mapping[int, int]


def _numbers(evaluated: EvaluatedSet) -> _Numbers:
    return _Numbers(
        images=_from_one(evaluated.image_ids), categories=_from_one([number for number, _ in evaluated.categories])
    )


def _from_one(ids: Sequence[int]) -> dict[int, int]:
    return {identifier: number for number, identifier in enumerate(sorted(set(ids)), start=1)}


def _finite(detections: Sequence[DetectedObject]) -> list[DetectedObject]:
    numbers = np.array([(found.score, *found.bbox) for found in detections], np.float64).reshape(-1, 5)
    return [detections[place] for place in np.flatnonzero(np.isfinite(numbers).all(axis=1)).tolist()]


def require_evaluator(evaluator: CocoEvaluator) -> None:
    """Raise :class:`UsageError` where the package is not installed, before any long work."""
    _load(evaluator)


class _EvaluatorPackage(Struct, frozen=True):
    version: str
    COCO: Any
    COCOeval: Any


def _load(evaluator: CocoEvaluator) -> _EvaluatorPackage:
    if evaluator == "pycocotools":
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        return _EvaluatorPackage(f"pycocotools {package_version('pycocotools')}", COCO, COCOeval)
    try:
        import faster_coco_eval as faster
    except ImportError as error:
        raise UsageError(
            f"--coco_evaluator=faster-coco-eval is not installed here ({error}); "
            "pip install 'evaltools[fast]', or leave the flag out for pycocotools, which gives the same figures"
        ) from error
    version = package_version("faster-coco-eval")
    return _EvaluatorPackage(f"faster-coco-eval {version}", faster.COCO, faster.COCOeval_faster)


def _filled(make: Any, numbers: _Numbers, annotations: list[dict[str, Any]]) -> Any:
    """A COCO object; built directly, as loading fails on an empty list."""
    with contextlib.redirect_stdout(io.StringIO()):
        filled = make()
        filled.dataset = {
            "images": [{"id": number} for number in numbers.images.values()],
            "categories": [{"id": number, "name": str(number)} for number in numbers.categories.values()],
            "annotations": annotations,
        }
        filled.createIndex()
    return filled


def _truths(truths: Sequence[TrueObject], numbers: _Numbers) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "image_id": numbers.images[truth.image_id],
            "category_id": numbers.categories[truth.category_id],
            "bbox": list(truth.bbox),
            "area": truth.area,
            "iscrowd": int(truth.is_crowd),
        }
        for number, truth in enumerate(truths, start=1)
    ]


def _detections(detections: Sequence[DetectedObject], numbers: _Numbers) -> list[dict[str, Any]]:
    counted = [
        found for found in detections if found.image_id in numbers.images and found.category_id in numbers.categories
    ]
    return [
        {
            "id": number,
            "image_id": numbers.images[found.image_id],
            "category_id": numbers.categories[found.category_id],
            "bbox": list(found.bbox),
            "area": found.bbox[2] * found.bbox[3],
            "iscrowd": 0,
            "score": found.score,
        }
        for number, found in enumerate(counted, start=1)
    ]


def _by_category(run: Any, evaluated: EvaluatedSet, numbers: _Numbers) -> list[CategoryPrecision]:
    """AP of each category; the evaluators' columns are those of the numbers, in order."""
    precision: npt.NDArray[np.float64] = run.eval["precision"][:, :, :, 0, -1]
    names = dict(evaluated.categories)
    counts = dict.fromkeys(names, 0)
    for truth in evaluated.truths:
        counts[truth.category_id] += not truth.is_crowd
    return [
        CategoryPrecision(
            category_id=number,
            name=name,
            objects=counts[number],
            ap=_mean_precision(precision[:, :, numbers.categories[number] - 1]),
            ap50=_mean_precision(precision[0, :, numbers.categories[number] - 1]),
        )
        for number, name in sorted(names.items())
    ]


def _mean_precision(values: npt.NDArray[np.float64]) -> float | None:
    known = values[values > -1]
    return float(known.mean()) if known.size else None


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
