"""What decoders read of outputs, which shapes are theirs, and which boxes stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.tasks.coco import DECODERS as NAMES
from evaltools.tasks.coco import decoders
from evaltools.tasks.coco.decoders import Boxes, Coordinates, Decoder, Head, suppressed
from evaltools.tasks.coco.yolo_heads import DECODERS
from tests.detection_set import make_detection_set
from tests.runtime.fake import open_here
from tests.tasks.coco import yolo_by_hand
from tests.tasks.coco.fakes import asked
from tests.tasks.facts import boxes_of, evaluate
from tests.tasks.observers import Silent
from tests.tiny_detectors import detector
from tests.tiny_yolo import CELLS, SIDE, Floats, cells, pixel_boxes


def fitting(shape: tuple[int, ...], height: int = 640, width: int = 640) -> list[str]:
    return [each.name for each in DECODERS.values() if each.fits(shape, height, width, 0) is not None]


@pytest.mark.parametrize(
    ("shape", "size", "names"),
    [
        ((1, 25200, 85), (640, 640), ["yolov5"]),
        ((1, 6300, 6), (320, 320), ["yolov5"]),
        ((1, 25500 * 4, 85), (1280, 1280), ["yolov5"]),
        ((1, 84, 8400), (640, 640), ["yolov8"]),
        ((1, 5, 2100), (320, 320), ["yolov8"]),
        ((1, 84, 6300), (480, 640), ["yolov8"]),
        ((1, 8400, 84), (640, 640), ["yolov8", "yolox"]),
        ((1, 3549, 85), (416, 416), ["yolov8", "yolox"]),
        ((1, 8400, 5), (640, 640), ["yolov8"]),
        ((1, 300, 6), (640, 640), ["yolo_nms"]),
        ((1, 8401, 85), (640, 640), []),
        ((2, 8400, 85), (640, 640), []),
        ((1, 8400, 4), (640, 640), []),
        ((8400, 85), (640, 640), []),
        ((1, 80, 80, 255), (640, 640), []),
        ((1, 1001), (224, 224), []),
    ],
)
def test_a_shape_tells_which_decoders_may_read_it(
    shape: tuple[int, ...], size: tuple[int, int], names: list[str]
) -> None:
    assert fitting(shape, *size) == names


def head_of(name: str, table: Floats) -> Head:
    head = DECODERS[name].fits(table.shape, SIDE, SIDE, 0)
    assert head is not None
    return head


def decoded(name: str, table: Floats, threshold: float) -> tuple[Boxes, Coordinates]:
    """By the decoder of that name, in the coordinates that it tells."""
    decoder, head = DECODERS[name], head_of(name, table)
    coordinates = decoder.coordinates(head.rows(table), head)
    return decoder.decode(head.rows(table), head, coordinates, threshold), coordinates


def assert_found(boxes: Boxes, expected: list[yolo_by_hand.Found]) -> None:
    """The same as by plain loops, in whatever order."""
    found = sorted(
        (float(score), int(number), *(corners[[1, 0, 3, 2]] * SIDE).tolist())
        for score, number, corners in zip(boxes.scores, boxes.classes, boxes.corners, strict=True)
    )
    wanted = sorted((score, number, *box) for score, number, box in expected)
    assert len(found) == len(wanted)
    np.testing.assert_allclose(np.array(found), np.array(wanted), atol=1e-4)


def scores_of(count: int, columns: int) -> Floats:
    random: Floats = np.random.default_rng(count + columns).random((count, columns), np.float32)
    return random**3


def yolov5_output() -> Floats:
    output: Floats = np.concatenate([pixel_boxes(3) / SIDE, scores_of(3 * CELLS, 4)], axis=1)[None]
    return output


def yolov8_output() -> Floats:
    table = np.concatenate([pixel_boxes(1) / SIDE, scores_of(CELLS, 3)], axis=1)
    return np.ascontiguousarray(table.T)[None]


def yolox_output() -> Floats:
    place = np.array(cells(), np.float32)
    boxes = pixel_boxes(1)
    raw = [boxes[:, :2] / place[:, 2:] - place[:, :2], np.log(boxes[:, 2:] / place[:, 2:]), scores_of(CELLS, 4)]
    output: Floats = np.concatenate(raw, axis=1)[None]
    return output


HEADS = [
    ("yolov5", yolov5_output(), yolo_by_hand.decode_yolov5, "shares"),
    ("yolov8", yolov8_output(), yolo_by_hand.decode_yolov8, "shares"),
    ("yolox", yolox_output(), yolo_by_hand.decode_yolox, "grid"),
]


@pytest.mark.parametrize("threshold", [0.001, 0.25])
@pytest.mark.parametrize(("name", "output", "by_hand", "unit"), HEADS)
def test_heads_are_decoded_as_the_formulas_say(
    name: str, output: Floats, by_hand: Callable[..., Any], unit: str, threshold: float
) -> None:
    boxes, coordinates = decoded(name, output, threshold)
    assert coordinates == unit
    assert_found(boxes, by_hand(output, threshold))


@pytest.mark.parametrize(("name", "output", "by_hand", "unit"), HEADS)
def test_pixels_are_told_from_other_units(name: str, output: Floats, by_hand: Callable[..., Any], unit: str) -> None:
    in_pixels = output.copy()
    if name == "yolox":
        in_pixels[0, :, :4] = pixel_boxes(1)
    else:
        in_pixels[(..., slice(4)) if name == "yolov5" else (slice(None), slice(4))] *= SIDE
    boxes, coordinates = decoded(name, in_pixels, 0.1)
    assert coordinates == "pixels"
    np.testing.assert_allclose(boxes.corners, decoded(name, output, 0.1)[0].corners, atol=1e-6)


def test_a_turned_output_is_the_same_head() -> None:
    turned = np.ascontiguousarray(yolov8_output().transpose(0, 2, 1))
    assert (head_of("yolov8", turned).layout, head_of("yolov8", yolov8_output()).layout) == ("rows", "columns")
    np.testing.assert_array_equal(
        decoded("yolov8", turned, 0.1)[0].corners, decoded("yolov8", yolov8_output(), 0.1)[0].corners
    )


def test_the_size_of_an_input_that_is_no_square_counts_by_its_sides() -> None:
    decoder = DECODERS["yolov8"]
    head = decoder.fits((1, 5, 6300), 480, 640, 0)
    assert head is not None
    row = np.array([[320, 120, 64, 48, 0.5]], np.float32)
    corners = decoder.decode(row, head, "pixels", 0.1).corners
    np.testing.assert_allclose(corners, [[0.2, 0.45, 0.3, 0.55]], atol=1e-6)


def test_negative_sizes_contradict_boxes_that_are_decoded() -> None:
    head = head_of("yolov8", yolov8_output())
    assert DECODERS["yolov8"].coordinates(yolox_output()[0] - 1, head) == "contradicted"


def test_a_threshold_of_zero_keeps_what_has_a_score() -> None:
    table = yolov5_output()
    table[0, 10:, 4] = 0
    assert len(decoded("yolov5", table, 0.0)[0].scores) == 30


def test_nothing_may_be_found() -> None:
    for name, table in (("yolov5", yolov5_output()), ("yolov8", yolov8_output()), ("yolox", yolox_output())):
        assert decoded(name, table, 1.5)[0].corners.shape == (0, 4)
    assert decoded("yolo_nms", np.zeros((1, 300, 6), np.float32), 0.0)[0].corners.shape == (0, 4)


def test_where_no_box_was_found_the_unit_of_boxes_is_unknown() -> None:
    empty = np.zeros((1, 300, 6), np.float32)
    assert DECODERS["yolo_nms"].coordinates(empty[0], head_of("yolo_nms", empty)) == "unknown"


def test_a_class_beyond_all_numbers_is_the_largest() -> None:
    table = np.zeros((1, 300, 6), np.float32)
    table[0, 0] = (0.1, 0.1, 0.5, 0.5, 0.9, 1e30)
    assert decoded("yolo_nms", table, 0.0)[0].classes.tolist() == [2**24]


def test_the_names_are_those_of_the_decoders() -> None:
    assert tuple(DECODERS) == NAMES


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
    monkeypatch.setattr(decoders, "MOST_CANDIDATES", 10)
    assert len(suppressed(random_boxes(2, 50, 1, tied=False), 1.0).scores) == 10


def test_boxes_without_an_area_stay() -> None:
    corners = np.zeros((3, 4), np.float32)
    assert len(suppressed(Boxes(corners, np.ones(3, np.float32), np.zeros(3, np.int64)), 0.5).scores) == 3


def six_boxes(shape: Sequence[int], height: int, width: int, _extra: int) -> Head | None:
    """Six boxes that are ready; the shape is also that of a YOLOv8 with four cells and two classes."""
    return Head("rows", 6, 4, 1, height, width) if tuple(shape) == (1, 6, 4) else None


ADDED = Decoder(
    "six_boxes",
    "[1,6,4]",
    six_boxes,
    lambda rows, head: "shares",
    lambda rows, head, coordinates, threshold: Boxes(rows, np.full(6, 0.5, np.float32), np.zeros(6, np.int64)),
    nms_iou=0.5,
    score_threshold=0.25,
)


@pytest.mark.parametrize(
    ("stated", "source", "used"),
    [
        ({}, "ground truth", (0.5, 0.25)),
        ({"decoder": "six_boxes"}, "stated", (0.5, 0.25)),
        ({"score_threshold": 0.45, "nms_iou": 0.9}, "ground truth", (0.9, 0.45)),
    ],
)
def test_a_decoder_that_is_added_is_recognised_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: dict[str, Any], source: str, used: tuple[float, float]
) -> None:
    monkeypatch.setitem(DECODERS, "six_boxes", ADDED)
    made = make_detection_set(tmp_path / "set", detector(("boxes",)), count=2)
    request = asked(made, class_offset="1")
    request = replace(request, values={**request.values, **stated})
    detection = boxes_of(evaluate(request, Silent(), open_here))
    assert detection.data.head is not None
    assert (detection.data.head.decoder, detection.data.head.source) == ("six_boxes", source)
    assert (detection.data.nms_iou, detection.data.score_threshold, detection.data.resize) == (*used, "letterbox")
    assert [figures.detections for figures in detection.figures] == [12, 12]
