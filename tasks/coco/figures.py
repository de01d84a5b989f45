"""Computes the figures of a detection evaluation from what configurations found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.datasets.image_folder import printable_name
from evaltools.lazy_sequence import LazySequence
from evaltools.metrics.boxes import BoxAgreement, Detection, Detections, compare_boxes
from evaltools.metrics.coco_stats import (
    CocoEvaluator,
    DetectedObject,
    EvaluatedSet,
    TrueObject,
    evaluate_detections,
    evaluate_with_matches,
)
from evaltools.metrics.native_average_precision import NativeAveragePrecision, Objects, native_average_precision
from evaltools.metrics.native_numbers import shortest
from evaltools.tasks.coco.changes import CategoryDraws, changes_of_categories, changes_of_figures, resampled
from evaltools.tasks.coco.classes import ClassMapping
from evaltools.tasks.coco.objects import Found, FoundObjects
from evaltools.tasks.coco.result import AnnotatedObject, BoxComparison, DetectedPicture, DetectionFigures
from evaltools.tasks.coco.truth import EvaluatedPictures, Truth
from evaltools.tasks.coco.warnings import findings_of


class Measured(Struct, frozen=True):
    """What a configuration ``found`` in the pictures that did not fail, and the figures of it.

    ``mapping`` says which category a class is. ``draws`` has the AP of each category over draws of the pictures.
    """

    found: Found
    mapping: ClassMapping
    figures: DetectionFigures
    draws: CategoryDraws | None


def measured(
    name: str, pictures: Found, truth: Truth | None, mapping: ClassMapping, evaluator: CocoEvaluator, resamples: int
) -> Measured:
    """The figures of a configuration: accuracy, if there is a ground truth, and signs of trouble.

    The COCO figures and the AP of each category are also computed over ``resamples`` draws of the pictures, 0 for none.
    """
    of_figures: dict[str, list[float | None]] = {}
    evaluation = of_categories = None
    if truth is not None and resamples:
        evaluation, matches = evaluate_with_matches(*_coco_sets(pictures, truth, mapping), evaluator)
        of_figures, of_categories = resampled(matches, resamples)
    elif truth is not None:
        evaluation = evaluate_detections(*_coco_sets(pictures, truth, mapping), evaluator)
    figures = DetectionFigures(
        configuration=name,
        pictures=len(pictures),
        detections=sum(len(found.classes) for found in pictures.values()),
        nonfinite_detections=sum(found.nonfinite for found in pictures.values()),
        evaluation=evaluation,
        native=None if truth is None else _native(pictures, truth, mapping),
        findings=findings_of(pictures, truth, mapping),
        resampled=of_figures,
    )
    return Measured(pictures, mapping, figures, of_categories)


def _coco_sets(pictures: Found, truth: Truth, mapping: ClassMapping) -> tuple[EvaluatedSet, list[DetectedObject]]:
    """The pictures with their objects, and what was found in them, as COCO's evaluation takes them."""
    images = [truth.images[index] for index in pictures]
    detections = [
        DetectedObject(image.id, detection.category_id, detection.pixel_box(image.width, image.height), detection.score)
        for image, found in zip(images, pictures.values(), strict=True)
        for detection in _detections(found, mapping)
    ]
    evaluated = EvaluatedSet(
        image_ids=[image.id for image in images],
        categories=[(category.id, category.name) for category in truth.categories],
        truths=[
            TrueObject(image.id, annotation.category_id, annotation.bbox, annotation.area, annotation.is_crowd)
            for image in images
            for annotation in image.annotations
        ],
    )
    return evaluated, detections


def _native(pictures: Found, truth: Truth, mapping: ClassMapping) -> NativeAveragePrecision:
    truths = [
        Objects(picture.class_ids, picture.boxes, np.ones(len(picture.class_ids), np.float32))
        for picture in (truth.native[index] for index in pictures)
    ]
    found = [Objects(mapping.apply(found.classes), found.boxes, found.scores) for found in pictures.values()]
    exact = native_average_precision(truths, found)
    return replace(exact, thresholds=tuple(map(shortest, exact.thresholds)), overall=shortest(exact.overall))


def _detections(found: FoundObjects, mapping: ClassMapping) -> list[Detection]:
    """The detections in a picture, with category ids in the place of the model's classes."""
    categories = mapping.apply(found.classes).tolist()
    return [
        Detection(category, score, (top, left, bottom, right))
        for category, score, (top, left, bottom, right) in zip(
            categories, found.scores.tolist(), found.boxes.tolist(), strict=True
        )
    ]


def compared(baseline: Measured, other: Measured) -> BoxComparison:
    """How far the boxes of two configurations agree on the pictures that both finished, and how their figures differ.

    A class is the same on both sides unless their mappings differ.
    """
    agreement = BoxAgreement.nothing()
    identical = 0
    both = sorted(baseline.found.keys() & other.found.keys())
    for example in both:
        expected, found = (side.found[example] for side in (baseline, other))
        if baseline.mapping.name != other.mapping.name:
            expected, found = (
                replace(objects, classes=side.mapping.apply(objects.classes))
                for side, objects in ((baseline, expected), (other, found))
            )
        identical += all(
            np.array_equal(getattr(expected, name), getattr(found, name)) for name in ("classes", "boxes", "scores")
        )
        agreement += compare_boxes(_as_detections(found), _as_detections(expected))
    are_same = baseline.figures.pictures == other.figures.pictures == len(both)
    draws = (baseline.draws, other.draws)
    return BoxComparison(
        baseline.figures.configuration,
        other.figures.configuration,
        len(both),
        agreement,
        changes_of_figures(baseline.figures, other.figures) if are_same else [],
        changes_of_categories(baseline.figures, other.figures, draws) if are_same else [],
        identical,
    )


def _as_detections(found: FoundObjects) -> Detections:
    return Detections(*(side.astype(np.float64) for side in (found.boxes, found.classes, found.scores)))


def detected_pictures(pictures: EvaluatedPictures, every: Mapping[str, Measured]) -> Sequence[DetectedPicture]:
    """Every picture that some configuration finished, with all detections.

    Sizes and ids are those of the ground truth.
    """
    finished = sorted({index for own in every.values() for index in own.found})
    return LazySequence(finished, partial(_detected_picture, pictures, every))


def _detected_picture(pictures: EvaluatedPictures, every: Mapping[str, Measured], index: int) -> DetectedPicture:
    given = {name: own for name, own in every.items() if index in own.found}
    image = pictures.truth.images[index] if pictures.truth else None
    sized = image or next(iter(given.values())).found[index]
    objects = []
    if image is not None:
        objects = [AnnotatedObject(each.category_id, image.shares(each), each.is_crowd) for each in image.annotations]
    return DetectedPicture(
        example=printable_name(pictures.paths[index].name),
        image_id=pictures.ids[index],
        width=sized.width,
        height=sized.height,
        objects=objects,
        detections={name: _detections(own.found[index], own.mapping) for name, own in given.items()},
    )
