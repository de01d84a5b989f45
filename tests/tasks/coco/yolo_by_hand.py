"""What YOLO heads find and the mAP of it, in plain loops written from the published formulas.

Nothing of the product is used: pictures are letterboxed by slicing, boxes go to pycocotools themselves.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from tests.interpreters import make_interpreter
from tests.tiny_yolo import CLASSES, SIDE, cells

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels of the input."""
Found = tuple[float, int, Box]
"""Score, class, box."""


class Family(Struct, frozen=True):
    """How the authors of a family evaluate: where pictures lie, what becomes of pixels, what counts and what not."""

    decode: Callable[[Any, float], list[Found]]
    centred: bool
    unit: bool
    blue_first: bool
    threshold: float
    iou: float
    clipped: bool


def corners(x: float, y: float, width: float, height: float) -> Box:
    """Of a box around a centre."""
    return (x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def decode_yolov5(output: Any, threshold: float) -> list[Found]:
    """``[1, N, 5 + classes]``, boxes in shares: each class whose score times objectness is above the threshold."""
    found = []
    for row in output[0].tolist():
        for number, score in enumerate(row[5:]):
            if row[4] * score > threshold:
                found.append((row[4] * score, number, corners(*(value * SIDE for value in row[:4]))))
    return found


def decode_yolov8(output: Any, threshold: float, classes: int = CLASSES) -> list[Found]:
    """``[1, 4 + classes, N]``, boxes in shares: each class above the threshold."""
    found = []
    for row in zip(*output[0].tolist(), strict=True):
        for number, score in enumerate(row[4 : 4 + classes]):
            if score > threshold:
                found.append((score, number, corners(*(value * SIDE for value in row[:4]))))
    return found


def decode_yolox(output: Any, threshold: float) -> list[Found]:
    """``[1, N, 5 + classes]``, raw boxes: the best class of each, if it is not below the threshold."""
    found = []
    for row, (column, line, stride) in zip(output[0].tolist(), cells(), strict=True):
        score, number = max((score, -number) for number, score in enumerate(row[5:]))
        if row[4] * score >= threshold:
            centre = ((row[0] + column) * stride, (row[1] + line) * stride)
            box = corners(*centre, math.exp(row[2]) * stride, math.exp(row[3]) * stride)
            found.append((row[4] * score, -number, box))
    return found


YOLOV5 = Family(decode_yolov5, centred=True, unit=True, blue_first=False, threshold=0.001, iou=0.6, clipped=True)
YOLOV8 = Family(decode_yolov8, centred=True, unit=True, blue_first=False, threshold=0.001, iou=0.7, clipped=True)
POSE = Family(partial(decode_yolov8, classes=1), True, True, False, threshold=0.001, iou=0.7, clipped=True)
YOLOX = Family(decode_yolox, centred=False, unit=False, blue_first=True, threshold=0.01, iou=0.65, clipped=False)


def overlap(one: Box, other: Box) -> float:
    """Intersection over union."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return width * height / (sum(areas) - width * height)


def suppress(found: list[Found], iou: float, most: int = 300) -> list[Found]:
    """The best first, and of those of its class that it overlaps by more than ``iou`` none."""
    kept: list[Found] = []
    for entry in sorted(found, key=lambda entry: -entry[0]):
        if all(entry[1] != better[1] or overlap(entry[2], better[2]) <= iou for better in kept):
            kept.append(entry)
    return kept[:most]


def map_of(model: bytes, family: Family, images: Path, annotations: Path) -> float:
    """mAP as pycocotools has it; class k is the k-th category."""
    interpreter = make_interpreter("ai_edge_litert", model)
    document = json.loads(annotations.read_text())
    ids = sorted(category["id"] for category in document["categories"])
    results = []
    for image in document["images"]:
        pixels = np.asarray(Image.open(images / image["file_name"]).convert("RGB"))
        step = max(pixels.shape[:2]) // SIDE
        small = pixels[::step, ::step]
        top, left = [(SIDE - size) // 2 if family.centred else 0 for size in small.shape[:2]]
        canvas = np.full((SIDE, SIDE, 3), 114, np.uint8)
        canvas[top : top + small.shape[0], left : left + small.shape[1]] = small
        output = _run(interpreter, canvas[..., ::-1] if family.blue_first else canvas, family.unit)
        for score, number, box in suppress(family.decode(output, family.threshold), family.iou):
            x1, y1, x2, y2 = ((value - edge) * step for value, edge in zip(box, (left, top) * 2, strict=True))
            if family.clipped:
                x1, x2 = (min(max(value, 0), image["width"]) for value in (x1, x2))
                y1, y2 = (min(max(value, 0), image["height"]) for value in (y1, y2))
            box_in_picture = [x1, y1, x2 - x1, y2 - y1]
            entry = {"image_id": image["id"], "category_id": ids[number], "bbox": box_in_picture, "score": score}
            results.append(entry)
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(annotations))
        evaluation = COCOeval(truth, truth.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0])


def _run(interpreter: Any, pixels: Any, unit: bool) -> Any:
    """The real values of the output; integer inputs and outputs by their scales."""
    (given,) = interpreter.get_input_details()
    (taken,) = (each for each in interpreter.get_output_details() if len(each["shape"]) == 3)
    values = pixels.astype(np.float32) / (255 if unit else 1)
    if given["dtype"] != np.float32:
        scale, zero = given["quantization"]
        values = np.rint(values / scale + zero)
    interpreter.set_tensor(given["index"], values[None].astype(given["dtype"]))
    interpreter.invoke()
    output = interpreter.get_tensor(taken["index"]).astype(np.float64)
    scale, zero = taken["quantization"]
    return (output - zero) * scale if scale else output
