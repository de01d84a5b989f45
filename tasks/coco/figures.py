"""Computes the figures of a detection evaluation from what configurations found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from evaltools.datasets.image_folder import printable_name
from evaltools.datasets.object_annotations import AnnotatedImage
from evaltools.datasets.picture_files import image_ids
from evaltools.metrics.boxes import MIN_IOU, BoxAgreement, Detection, compare_boxes
from evaltools.metrics.coco_stats import (
    CocoEvaluator,
    DetectedObject,
    EvaluatedSet,
    TrueObject,
    evaluate_detections,
    evaluate_with_matches,
)
from evaltools.metrics.native_average_precision import (
    NativeAveragePrecision,
    Objects,
    native_average_precision,
    overlap,
)
from evaltools.metrics.native_numbers import shortest
from evaltools.tasks.coco.changes import (
    CategoryDraws,
    changes_of_categories,
    changes_of_figures,
    corrected,
    resampled_categories,
    resampled_figures,
)
from evaltools.tasks.coco.classes import CONFIDENT, ClassMapping
from evaltools.tasks.coco.objects import FoundObjects
from evaltools.tasks.coco.result import (
    AnnotatedObject,
    BoxComparison,
    DetectedPicture,
    DetectionFigures,
)
from evaltools.tasks.coco.truth import EvaluatedPictures, Truth
from evaltools.tasks.coco.warnings import findings_of
from evaltools.tasks.shared.figures import Pair

Found = Sequence[tuple[int, FoundObjects]]
"""The number of each picture that did not fail, with what was found in it."""


class OverlappingObjects:
    """Collects in ``pairs`` the class of each detection, and the category of the object that it overlaps most.

    Only overlaps with an IoU of 0.5 or more count, and only confident detections; the others are ``doubtful``.
    """

    def __init__(self, truth: Truth | None) -> None:
        self.pairs: list[tuple[int, int]] = []
        self.doubtful = 0
        self._truth = truth

    def add(self, example: int, observation: FoundObjects) -> None:
        """Add what was found in one picture."""
        if self._truth is None:
            return
        objects = self._truth.native[example]
        if not len(objects.class_ids) or not len(observation.classes):
            return
        overlaps = overlap(observation.boxes, objects.boxes)
        best = overlaps.argmax(axis=1)
        on_object = overlaps.max(axis=1) >= MIN_IOU
        sure = np.flatnonzero(on_object & (observation.scores >= CONFIDENT))
        self.doubtful += int(on_object.sum()) - len(sure)
        self.pairs += zip(observation.classes[sure].tolist(), objects.class_ids[best[sure]].tolist(), strict=True)


class BoxPairs:
    """Sums up how far the boxes of two configurations agree, over the ``pictures`` that both finished.

    ``mappings`` are those of the classes of both sides, None where a class is the same on both.
    """

    def __init__(self, mappings: tuple[ClassMapping, ...] | None = None) -> None:
        self._mappings = mappings
        self.pictures = self.identical = 0
        self.agreement = BoxAgreement.nothing()

    def add(self, _example: int, baseline: FoundObjects, other: FoundObjects) -> None:
        """Add what both found in one picture."""
        if self._mappings is not None:
            baseline, other = (
                replace(found, classes=mapping.apply(found.classes))
                for found, mapping in zip((baseline, other), self._mappings, strict=True)
            )
        self.pictures += 1
        self.identical += all(
            np.array_equal(own, theirs)
            for own, theirs in (
                (baseline.classes, other.classes),
                (baseline.boxes, other.boxes),
                (baseline.scores, other.scores),
            )
        )
        self.agreement += compare_boxes(other.as_detections(), baseline.as_detections())


def figures_of(
    name: str, pictures: Found, truth: Truth | None, mapping: ClassMapping, evaluator: CocoEvaluator, resamples: int
) -> tuple[DetectionFigures, CategoryDraws | None]:
    """The figures of a configuration over the pictures that did not fail.

    Accuracy, if there is a ground truth, and signs of trouble.

    The COCO figures and the AP of each category are also computed over ``resamples`` draws of the pictures, 0 for none.
    """
    evaluation, resampled, categories = None, {}, None
    if truth is not None and resamples:
        evaluation, matches = evaluate_with_matches(*_coco_sets(pictures, truth, mapping), evaluator)
        resampled = resampled_figures(matches, resamples)
        categories = resampled_categories(matches, resamples)
    elif truth is not None:
        evaluation = evaluate_detections(*_coco_sets(pictures, truth, mapping), evaluator)
    figures = DetectionFigures(
        configuration=name,
        pictures=len(pictures),
        detections=sum(len(found.classes) for _, found in pictures),
        nonfinite_detections=sum(found.nonfinite for _, found in pictures),
        evaluation=evaluation,
        native=None if truth is None else _native(pictures, truth, mapping),
        findings=findings_of(pictures, truth, mapping),
        resampled=resampled,
    )
    return figures, categories


def _coco_sets(pictures: Found, truth: Truth, mapping: ClassMapping) -> tuple[EvaluatedSet, list[DetectedObject]]:
    """The pictures with their objects, and what was found in them, as COCO's evaluation takes them."""
    images = [truth.images[index] for index, _ in pictures]
    detections = [
        DetectedObject(image.id, detection.category_id, detection.pixel_box(image.width, image.height), detection.score)
        for image, (_, found) in zip(images, pictures, strict=True)
        for detection in detections_of(found, mapping)
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
        for picture in (truth.native[index] for index, _ in pictures)
    ]
    found = [Objects(mapping.apply(found.classes), found.boxes, found.scores) for _, found in pictures]
    exact = native_average_precision(truths, found)
    return replace(exact, thresholds=tuple(map(shortest, exact.thresholds)), overall=shortest(exact.overall))


def detections_of(found: FoundObjects, mapping: ClassMapping) -> list[Detection]:
    """The detections in a picture, with category ids in the place of the model's classes."""
    categories = mapping.apply(found.classes).tolist()
    return [
        Detection(category, score, (top, left, bottom, right))
        for category, score, (top, left, bottom, right) in zip(
            categories, found.scores.tolist(), found.boxes.tolist(), strict=True
        )
    ]


def compare_configurations(
    boxes: Mapping[Pair, BoxPairs],
    figures: Sequence[DetectionFigures],
    categories: Mapping[str, CategoryDraws | None],
) -> list[BoxComparison]:
    """The comparison of each pair of configurations; ``categories`` has the AP over draws by configuration."""
    by_name = {entry.configuration: entry for entry in figures}
    return corrected(
        [
            _comparison(by_name[baseline], by_name[other], seen, (categories.get(baseline), categories.get(other)))
            for (baseline, other), seen in boxes.items()
        ]
    )


def _comparison(
    baseline: DetectionFigures,
    other: DetectionFigures,
    boxes: BoxPairs,
    draws: tuple[CategoryDraws | None, CategoryDraws | None],
) -> BoxComparison:
    are_same = baseline.pictures == other.pictures == boxes.pictures
    changes = changes_of_figures(baseline, other) if are_same else []
    return BoxComparison(
        baseline.configuration,
        other.configuration,
        boxes.pictures,
        boxes.agreement,
        changes,
        changes_of_categories(baseline, other, draws) if are_same else [],
        boxes.identical,
    )


def detected_pictures(
    pictures: EvaluatedPictures, measured: Mapping[str, Found], mappings: Mapping[str, ClassMapping]
) -> list[DetectedPicture]:
    """Every picture that some configuration finished, with all detections.

    Sizes and ids are those of the ground truth; ``mappings`` say by configuration which category a class is.
    """
    by_index: dict[int, dict[str, FoundObjects]] = {}
    for name, found_in in measured.items():
        for index, found in found_in:
            by_index.setdefault(index, {})[name] = found
    truth = pictures.truth
    ids: Sequence[int | None] = image_ids([path.name for path in pictures.paths])
    if truth is not None:
        ids = [truth.listed_id(index) for index in range(len(truth.images))]
    return [
        DetectedPicture(
            example=printable_name(pictures.paths[index].name),
            image_id=ids[index],
            width=_size(pictures.truth, index, given)[0],
            height=_size(pictures.truth, index, given)[1],
            objects=_annotated_objects(pictures.truth.images[index]) if pictures.truth else [],
            detections={name: detections_of(found, mappings[name]) for name, found in given.items()},
        )
        for index, given in sorted(by_index.items())
    ]


def _annotated_objects(image: AnnotatedImage) -> list[AnnotatedObject]:
    return [
        AnnotatedObject(annotation.category_id, image.shares(annotation), annotation.is_crowd)
        for annotation in image.annotations
    ]


def _size(truth: Truth | None, index: int, given: Mapping[str, FoundObjects]) -> tuple[int, int]:
    if truth is not None:
        return truth.images[index].width, truth.images[index].height
    found = next(iter(given.values()))
    return found.width, found.height
