"""A result of a detection evaluation made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from evaltools.engine.ledger import PassOutcome
from evaltools.metrics.boxes import BoxAgreement, Detection
from evaltools.metrics.coco_stats import CategoryPrecision, CocoEvaluation, CocoStats
from evaltools.metrics.latency import summarise_latency
from evaltools.metrics.native_average_precision import NativeAveragePrecision
from evaltools.result.result import Result
from evaltools.tasks.coco.conclude import concluded
from evaltools.tasks.coco.result import (
    AnnotatedObject,
    BoxComparison,
    CategoryChange,
    ClassMappingUsed,
    CocoData,
    Detected,
    DetectedPicture,
    DetectionFigures,
    GroundTruthUsed,
    OutputMap,
)
from evaltools.tasks.framework.collecting import RecordsOfRun, with_concluded
from tests.results import configuration, result

TRUTH = GroundTruthUsed("t.json", "COCO annotations", "00", 3, 9, 2, 1, 0, 0)
MAPPING = ClassMappingUsed("+1", "detected", 9, {"+1": 8, "0": 1}, None)
STATS = CocoStats(0.123456, 0.5, 0.25, 0.0, 1.0, None, 0.4, 0.6, 0.7, 0.1, 0.2, None)
NATIVE = NativeAveragePrecision((0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 1 / 3), 0.4833333, 5, 2)
AGREEMENT = BoxAgreement(8, 1, 2, 3, 7.6, 0.2, 0.0625, 0.25)
LEFT = (0.25, 0.0, 0.75, 0.5)
RIGHT = (0.25, 0.5, 0.75, 1.0)
LATENCY = summarise_latency([5, 7])


def categories(*precisions: float | None) -> list[CategoryPrecision]:
    """Named a, b, c and so on, from 1."""
    return [
        CategoryPrecision(number, "abcdefgh"[number - 1], 3, ap, ap) for number, ap in enumerate(precisions, start=1)
    ]


def figures(name: str, *precisions: float | None) -> DetectionFigures:
    """With all figures; ``precisions`` are those of the categories."""
    evaluation = CocoEvaluation("pycocotools 2", STATS, categories(*(precisions or (0.5, 0.25, None))))
    return DetectionFigures(name, 4, 10, 0, evaluation, NATIVE, [])


def picture(name: str = "one.png", **detections: list[Detection]) -> DetectedPicture:
    """A picture of 40x20 pixels with one object at the left."""
    return DetectedPicture(name, 7, 40, 20, [AnnotatedObject(1, LEFT, False)], dict(detections))


def detected(
    *names: str,
    pictures: Sequence[DetectedPicture] = (),
    truth: GroundTruthUsed | None = TRUTH,
    data: Mapping[str, Any] | None = None,
    found: Sequence[DetectionFigures] | None = None,
    boxes: BoxAgreement = AGREEMENT,
    categories: Mapping[str, list[CategoryChange]] | None = None,
) -> Detected:
    """The first one is the reference; each other one is compared with it, the third with the second too.

    ``data`` are other facts of the data, ``found`` other figures, ``categories`` changed ones by configuration.
    """
    made = [figures(name) for name in names] if found is None else list(found)
    if truth is None:
        made = [replace(entry, evaluation=None, native=None) for entry in made]
    read = CocoData(
        skipped_files=0,
        unlisted_pictures=0,
        ground_truth=truth,
        labels_sha256=None,
        normalization="native",
        resize="stretch",
        score_threshold=0.0,
        category_names=dict(enumerate("?abcdefgh")),
        output_map=OutputMap(1, 3, 0, 2, "stated"),
        class_mapping=MAPPING,
    )
    pairs = [(names[0], other) for other in names[1:]] + [(names[1], other) for other in names[2:]]
    comparisons = [
        BoxComparison(baseline, other, 4, boxes, categories=(categories or {}).get(other, []))
        for baseline, other in pairs
    ]
    return Detected(replace(read, **(data or {})), made, comparisons, list(pictures))


def detection_result(*names: str, example_count: int = 4, **changes: Any) -> Result:
    """A result of what is :func:`detected`. Nothing is decided by so few pictures."""
    entries = [configuration(name, "test" if number else "reference") for number, name in enumerate(names)]
    found = detected(*names, **changes)
    run = RecordsOfRun((), PassOutcome({}, names=[""] * example_count), pictures="d")
    given = {"ground truth": "00" if found.data.ground_truth else "none"}
    ended = concluded(found, names[0], run, given, [], keeps_examples=bool(found.pictures))
    made = replace(result(*entries, preprocessing=LATENCY), command="coco", failed=[])
    return with_concluded(replace(made, example_count=example_count), ended)
