"""The native tool's ``ground_truth.pb``: a binary ``ObjectDetectionGroundTruth``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError
from msgspec import Struct

from evaltools.datasets.object_annotations import AnnotatedImage, AnnotatedImages, Category, ObjectAnnotation
from evaltools.errors import DataError
from evaltools.proto import message_class


class NativePicture(Struct, frozen=True):
    """The objects of a picture: ``class_ids`` ``(N,)`` int64 and ``boxes`` ``(N, 4)`` float32.

    A box is top, left, bottom, right as shares of the picture's height and width, 0..1.
    """

    name: str
    image_id: int
    class_ids: npt.NDArray[np.int64]
    boxes: npt.NDArray[np.float32]


class NativeGroundTruth(Struct, frozen=True):
    """All pictures, in the order of the file."""

    pictures: tuple[NativePicture, ...]

    def to_bytes(self) -> bytes:
        """The content of ``ground_truth.pb``."""
        message = message_class("ObjectDetectionGroundTruth")()
        for picture in self.pictures:
            entry = message.detection_results.add(image_name=picture.name, image_id=picture.image_id)
            for class_id, box in zip(picture.class_ids.tolist(), picture.boxes.tolist(), strict=True):
                placed = entry.objects.add(class_id=class_id).bounding_box
                placed.normalized_top, placed.normalized_left, placed.normalized_bottom, placed.normalized_right = box
        data: bytes = message.SerializeToString(deterministic=True)
        return data


class NativeConversion(Struct, frozen=True):
    """A native ground truth, and how many annotations it leaves out because a side lies beyond the picture."""

    ground_truth: NativeGroundTruth
    dropped: int


def from_annotations(images: Iterable[AnnotatedImage]) -> NativeConversion:
    """What ``preprocess_coco_minival.py`` makes of annotations; pictures are named without their folder.

    An annotation is left out where a side lies beyond the picture, nothing is clipped; crowd regions become ordinary
    objects. Box [x, y, w, h] -> top y/H, left x/W, bottom (y+h)/H, right (x+w)/W, in float64, then float32.
    """
    pictures = []
    dropped = 0
    for image in images:
        inside = [annotation for annotation in image.annotations if _is_inside(annotation, image)]
        dropped += len(image.annotations) - len(inside)
        shares = [image.shares(annotation) for annotation in inside]
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite
            boxes = np.array(shares, np.float64).astype(np.float32).reshape(-1, 4)
        pictures.append(
            NativePicture(
                name=Path(image.file_name).name,
                image_id=image.id,
                class_ids=np.array([annotation.category_id for annotation in inside], np.int64),
                boxes=boxes,
            )
        )
    return NativeConversion(NativeGroundTruth(tuple(pictures)), dropped)


def _is_inside(annotation: ObjectAnnotation, image: AnnotatedImage) -> bool:
    x, y, width, height = annotation.bbox
    return max(y, y + height) <= image.height and max(x, x + width) <= image.width


def parse_ground_truth(content: bytes, where: str) -> NativeGroundTruth:
    """Read the bytes of a file, which ``where`` names in messages.

    Raises :class:`DataError` for those that are no such message, for none, and where an entry is wrong.
    """
    message = message_class("ObjectDetectionGroundTruth")()
    try:
        message.ParseFromString(content)
    except (DecodeError, UnicodeDecodeError) as error:
        raise DataError(
            f"{where} is not a binary ObjectDetectionGroundTruth ({error}). A text proto or a JSON file does not do; "
            "--ground_truth_annotations takes COCO instances JSON, and evaltools convert makes a binary proto from it"
        ) from error
    if not message.detection_results:
        raise DataError(f"{where} holds no pictures; make it again with evaltools convert coco")
    pictures = tuple(_picture(entry, number, where) for number, entry in enumerate(message.detection_results))
    seen: set[str] = set()
    for picture in pictures:
        if picture.name in seen:
            raise DataError(f"{where} names the picture {picture.name!r} twice; every name must be there once")
        seen.add(picture.name)
    return NativeGroundTruth(pictures)


def _picture(entry: Any, number: int, where: str) -> NativePicture:
    name, image_id, objects = entry.image_name, entry.image_id, entry.objects
    if not name:
        raise DataError(
            f"{where}: detection_results[{number}] has no image_name, by which pictures are found; "
            "make the file again with evaltools convert coco"
        )
    if not isinstance(name, str):
        raise DataError(
            f"{where}: detection_results[{number}] has the image_name {name!r}, which is not UTF-8 text; "
            "make the file again with evaltools convert coco"
        )
    corners = [_corners(found.bounding_box) for found in objects]
    boxes = np.array(corners, np.float32).reshape(-1, 4)
    unplaced = np.flatnonzero(~np.isfinite(boxes).all(axis=1))
    if len(unplaced):
        raise DataError(
            f"{where}: object {unplaced[0]} of the picture {name!r} has the box {list(corners[unplaced[0]])}; expected "
            "are finite top, left, bottom, right; make the file again with evaltools convert coco"
        )
    backward = np.flatnonzero((boxes[:, :2] > boxes[:, 2:]).any(axis=1))
    if len(backward):
        raise DataError(
            f"{where}: object {backward[0]} of the picture {name!r} has the box {list(corners[backward[0]])} (top, "
            "left, bottom, right), which ends before it begins; bottom must not be less than top, right not less than "
            "left. Correct it where the file was made, or make the file again with evaltools convert coco"
        )
    return NativePicture(
        name=name,
        image_id=image_id,
        class_ids=np.array([found.class_id for found in objects], np.int64),
        boxes=boxes,
    )


def _corners(box: Any) -> tuple[float, float, float, float]:
    return box.normalized_top, box.normalized_left, box.normalized_bottom, box.normalized_right


def to_annotations(
    truth: NativeGroundTruth, sizes: Mapping[str, tuple[int, int]], labels: tuple[str, ...] = ()
) -> AnnotatedImages:
    """Pictures whose ``sizes`` (width, height) are known, with boxes in pixels.

    The proto knows no crowd regions, no areas and no names: all objects count, ``area`` is that of the box, category i
    is named by line i of ``labels``. Pictures are numbered from 1 unless the file gives each its own number.
    """
    ids = [picture.image_id for picture in truth.pictures]
    if len(set(ids)) < len(ids):
        ids = list(range(1, len(ids) + 1))
    used = sorted({class_id for picture in truth.pictures for class_id in picture.class_ids.tolist()})
    return AnnotatedImages(
        categories=tuple(Category(number, _name(number, labels)) for number in used),
        images=tuple(
            _annotated(picture, image_id, *sizes[picture.name])
            for picture, image_id in zip(truth.pictures, ids, strict=True)
            if picture.name in sizes
        ),
    )


def _name(number: int, labels: tuple[str, ...]) -> str:
    return labels[number] if 0 <= number < len(labels) else f"class {number}"


def _annotated(picture: NativePicture, image_id: int, width: int, height: int) -> AnnotatedImage:
    corners = picture.boxes.astype(np.float64) * (height, width, height, width)
    annotations = []
    for class_id, (top, left, bottom, right) in zip(picture.class_ids.tolist(), corners.tolist(), strict=True):
        bbox = (left, top, right - left, bottom - top)
        annotations.append(ObjectAnnotation(class_id, bbox, area=bbox[2] * bbox[3]))
    return AnnotatedImage(image_id, picture.name, width, height, tuple(annotations))
