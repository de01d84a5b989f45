"""Seconds that the figures of a detection evaluation take on a synthetic set of the size of COCO val2017.

``python -m benchmarks coco_metrics [--pictures=5000 --detections=100 ...]``

The set: 5000 pictures, 80 categories with the skew of COCO (7.3 objects per picture, one in a hundred a crowd region),
one detection near most objects and the others anywhere, scores on a grid of 256 as a quantised detector gives them.
Three figures: pycocotools, faster-coco-eval, and the native tool's average precision. The measure is what the
inferences take: at 15 ms each, 5000 of them are 75 s.
"""

from __future__ import annotations

import time

import numpy as np

from evaltools.metrics.coco_stats import (
    EVALUATORS,
    DetectedObject,
    EvaluatedSet,
    TrueObject,
    evaluate_detections,
)
from evaltools.metrics.native_average_precision import Objects, native_average_precision
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

PARAMETERS = (
    Parameter("pictures", "Pictures in the set.", default=5000),
    Parameter("detections", "Detections per picture; an SSD gives 10, most others 100.", default=100),
    Parameter("categories", "Categories.", default=80),
    Parameter("seed", "Seed of the set.", default=1),
)
OBJECTS_PER_PICTURE = 7.3
SIDE = 600.0


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("coco_metrics", "", "", {"flags": PARAMETERS}, arguments)
    pictures, per_picture = flags.number("pictures"), flags.number("detections")
    chance = np.random.default_rng(flags.number("seed"))
    truths, found = synthetic_set(chance, pictures, per_picture, flags.number("categories"))
    print(f"{pictures} pictures, {sum(len(t.class_ids) for t in truths)} objects, {pictures * per_picture} detections")
    evaluated = EvaluatedSet(
        image_ids=list(range(1, pictures + 1)),
        categories=[(number, f"category {number}") for number in range(1, flags.number("categories") + 1)],
        truths=[
            TrueObject(image + 1, category, pixels(box), box_area(box), is_crowd=index % 100 == 99)
            for image, truth in enumerate(truths)
            for index, (category, box) in enumerate(
                zip(truth.class_ids.tolist(), truth.boxes.tolist(), strict=True), start=image
            )
        ],
    )
    detections = [
        DetectedObject(image + 1, category, pixels(box), score)
        for image, objects in enumerate(found)
        for category, box, score in zip(
            objects.class_ids.tolist(), objects.boxes.tolist(), objects.scores.tolist(), strict=True
        )
    ]
    for evaluator in EVALUATORS:
        start = time.perf_counter()
        evaluation = evaluate_detections(evaluated, detections, evaluator)
        seconds = time.perf_counter() - start
        print(f"{evaluation.evaluator:24s} {seconds:6.2f} s   mAP {evaluation.stats.ap:.6f}")
    start = time.perf_counter()
    precision = native_average_precision(truths, found)
    print(f"{'native average precision':24s} {time.perf_counter() - start:6.2f} s   mAP {precision.overall:.6f}")
    return 0


def synthetic_set(
    chance: np.random.Generator, pictures: int, per_picture: int, categories: int
) -> tuple[list[Objects], list[Objects]]:
    """Ground truth and detections of each picture."""
    frequency = 1 / np.arange(1, categories + 1)
    frequency /= frequency.sum()
    truths, found = [], []
    for _ in range(pictures):
        count = int(chance.poisson(OBJECTS_PER_PICTURE))
        truth = Objects(
            1 + chance.choice(categories, count, p=frequency), random_boxes(chance, count), np.ones(count, np.float32)
        )
        detected = Objects(
            1 + chance.choice(categories, per_picture, p=frequency),
            random_boxes(chance, per_picture),
            np.sort(np.rint(256 * chance.beta(1, 4, per_picture)) / 256)[::-1].astype(np.float32),
        )
        near = min(count, per_picture // 2)
        detected.boxes[:near] = truth.boxes[:near] + chance.normal(0, 0.02, (near, 4)).astype(np.float32)
        detected.class_ids[:near] = truth.class_ids[:near]
        truths.append(truth)
        found.append(detected)
    return truths, found


def random_boxes(chance: np.random.Generator, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """``(count, 4)`` top, left, bottom, right in shares of the picture."""
    sizes = chance.beta(1, 4, (count, 2)) + 0.02
    corners = chance.random((count, 2)) * (1 - sizes.clip(max=1))
    return np.hstack([corners, corners + sizes]).astype(np.float32)


def pixels(box: list[float]) -> tuple[float, float, float, float]:
    """x, y, width, height."""
    top, left, bottom, right = box
    return left * SIDE, top * SIDE, (right - left) * SIDE, (bottom - top) * SIDE


def box_area(box: list[float]) -> float:
    """Square pixels."""
    _, _, width, height = pixels(box)
    return width * height
