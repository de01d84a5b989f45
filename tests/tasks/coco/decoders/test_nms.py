"""Suppression gives what greedy loops give."""

from __future__ import annotations

import numpy as np
import pytest

from evaltools.tasks.coco.decoders import nms
from evaltools.tasks.coco.decoders.kind import Boxes
from evaltools.tasks.coco.decoders.nms import suppressed
from tests.tasks.coco import yolo_by_hand


def random_boxes(seed: int, count: int, classes: int, tied: bool) -> Boxes:
    random = np.random.default_rng(seed)
    start = random.random((count, 2))
    corners = np.concatenate([start, start + random.random((count, 2)) * 0.4], axis=1).astype(np.float32)
    scores = random.integers(1, 6, count) / 8 if tied else random.random(count)
    return Boxes(corners, scores.astype(np.float32), random.integers(0, classes, count))


@pytest.mark.parametrize("iou", [0.0, 0.3, 0.65, 1.0])
@pytest.mark.parametrize("tied", [False, True])
def test_the_same_boxes_stay_as_in_plain_loops(iou: float, tied: bool) -> None:
    for seed in range(25):
        boxes = random_boxes(seed, count=[0, 1, 40, 300][seed % 4], classes=1 + seed % 3, tied=tied)
        found = [
            (float(score), int(number), (left, top, right, bottom))
            for score, number, (top, left, bottom, right) in zip(
                boxes.scores, boxes.classes, boxes.corners.astype(np.float64).tolist(), strict=True
            )
        ]
        kept = suppressed(boxes, iou, most=300)
        expected = yolo_by_hand.suppress(found, iou)
        assert kept.scores.tolist() == [score for score, _, _ in expected], seed
        assert kept.classes.tolist() == [number for _, number, _ in expected], seed
        np.testing.assert_array_equal(kept.corners[:, 0], [box[1] for _, _, box in expected])


def test_no_more_than_the_best_stay() -> None:
    boxes = random_boxes(1, 500, 80, tied=False)
    kept = suppressed(boxes, 1.0, most=37)
    assert kept.scores.tolist() == sorted(boxes.scores.tolist(), reverse=True)[:37]


def test_no_more_than_the_best_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nms, "MOST_CANDIDATES", 10)
    assert len(suppressed(random_boxes(2, 50, 1, tied=False), 1.0).scores) == 10


def test_boxes_without_an_area_stay() -> None:
    corners = np.zeros((3, 4), np.float32)
    assert len(suppressed(Boxes(corners, np.ones(3, np.float32), np.zeros(3, np.int64)), 0.5).scores) == 3
