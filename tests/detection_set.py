"""A small folder of annotated pictures in which a tiny detector's every answer, and so each figure, is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from PIL import Image

from evaltools.proto import message_class
from tests.command import one_test
from tests.tiny_detectors import CELLS, CLASSES, postprocess_detector

WIDTH, HEIGHT, SIDE = 24, 16, 8
"""Of a picture and of its cells in pixels."""
NAMES = ("red", "green", "blue")
RED_IOU = 0.775
COCO_MAP = (0.6 + 1) / 2
"""Red objects are found up to the threshold 0.75, six of ten; green ones at all; blue ones are not annotated."""
NATIVE_MAP = (0.6 + 1 + 0) / 3
FIRST_ID = 11


class DetectionSet(Struct, frozen=True):
    """Files of an evaluation."""

    folder: Path

    @property
    def model(self) -> Path:
        """The detector."""
        return self.folder / "model.tflite"

    @property
    def images(self) -> Path:
        """The folder of the pictures, ``000011.png`` and so on."""
        return self.folder / "images"

    @property
    def annotations(self) -> Path:
        """COCO instances."""
        return self.folder / "instances.json"

    @property
    def proto(self) -> Path:
        """The same objects for the native tool."""
        return self.folder / "ground_truth.pb"

    @property
    def labels(self) -> Path:
        """Line i names category i."""
        return self.folder / "labels.txt"

    def flags(self, *more: str) -> list[str]:
        """The command line that evaluates it with its annotations."""
        return self.bare_flags(f"--ground_truth_annotations={self.annotations}", *more)

    def bare_flags(self, *more: str) -> list[str]:
        """The same without a ground truth."""
        return ["coco", f"--model_file={self.model}", f"--ground_truth_images_path={self.images}", *one_test(*more)]

    def document(self) -> dict[str, Any]:
        """The content of the annotations."""
        document: dict[str, Any] = json.loads(self.annotations.read_text())
        return document


def make_detection_set(folder: Path, model: bytes | None = None, count: int = 5) -> DetectionSet:
    """``count`` pictures whose six cells are all coloured, the first ones brightest, no two in a picture alike.

    Red cells are annotated with 0.775 of their height, green ones exactly, blue ones not at all.
    """
    made = DetectionSet(folder)
    made.images.mkdir(parents=True)
    made.model.write_bytes(model or postprocess_detector())
    for index in range(count):
        draw_cells(made.images / picture_name(index), {cell: colour(index, cell) for cell in range(CELLS)})
    document = coco_document(count)
    made.annotations.write_text(json.dumps(document))
    made.proto.write_bytes(native_truth(document))
    made.labels.write_text("???\nred\ngreen\nblue\n")
    return made


def picture_name(index: int) -> str:
    """Pictures are numbered from 11, as their ids are."""
    return f"{FIRST_ID + index:06d}.png"


def colour(index: int, cell: int) -> tuple[int, int]:
    """Class and brightness of a cell."""
    return (index + cell) % CLASSES, 250 - 10 * cell - index


def score_of(brightness: int) -> float:
    """What the detector says to a cell of that brightness."""
    return (brightness - 127.5) / 127.5


def draw_cells(path: Path, cells: Mapping[int, tuple[int, int]], side: int = SIDE) -> None:
    """A black picture of 3x2 cells, some of them with a class and its brightness."""
    save(path, pixels_of(cells, side))


def pixels_of(cells: Mapping[int, tuple[int, int]], side: int = SIDE) -> npt.NDArray[np.uint8]:
    """Those of such a picture."""
    pixels = np.zeros((2 * side, 3 * side, 3), np.uint8)
    for cell, (channel, brightness) in cells.items():
        row, column = divmod(cell, 3)
        pixels[row * side : (row + 1) * side, column * side : (column + 1) * side, channel] = brightness
    return pixels


def save(path: Path, pixels: npt.NDArray[np.uint8]) -> None:
    """As PNG, or raw with the ending ``.rgb8``."""
    if path.suffix == ".rgb8":
        path.write_bytes(pixels.tobytes())
    else:
        Image.fromarray(pixels).save(path)


def coco_document(count: int) -> dict[str, Any]:
    """Instances: categories 1, 2, 3 for the classes 0, 1, 2."""
    annotations: list[dict[str, Any]] = []
    for index in range(count):
        for cell in range(CELLS):
            channel, _ = colour(index, cell)
            if NAMES[channel] != "blue":
                row, column = divmod(cell, 3)
                box = [column * SIDE, row * SIDE, SIDE, SIDE * (RED_IOU if channel == 0 else 1)]
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": FIRST_ID + index,
                        "category_id": channel + 1,
                        "bbox": box,
                        "area": box[2] * box[3],
                        "iscrowd": 0,
                    }
                )
    return {
        "images": [
            {"id": FIRST_ID + index, "file_name": picture_name(index), "width": WIDTH, "height": HEIGHT}
            for index in range(count)
        ],
        "annotations": annotations,
        "categories": [{"id": number + 1, "name": name} for number, name in enumerate(NAMES)],
    }


def native_truth(document: Mapping[str, Any]) -> bytes:
    """The objects of a document as the native tool's ``ground_truth.pb``, field by field."""
    truth = message_class("ObjectDetectionGroundTruth")()
    for image in document["images"]:
        entry = truth.detection_results.add()
        entry.image_id, entry.image_name = image["id"], image["file_name"]
        for annotation in document["annotations"]:
            if annotation["image_id"] == image["id"]:
                x, y, width, height = annotation["bbox"]
                found = entry.objects.add()
                found.class_id = annotation["category_id"]
                found.bounding_box.normalized_top = y / image["height"]
                found.bounding_box.normalized_bottom = (y + height) / image["height"]
                found.bounding_box.normalized_left = x / image["width"]
                found.bounding_box.normalized_right = (x + width) / image["width"]
    return bytes(truth.SerializeToString())
