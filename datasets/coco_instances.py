"""COCO ``instances_*.json``."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec

from evaltools.datasets.files import read_bytes
from evaltools.datasets.object_annotations import AnnotatedImage, AnnotatedImages, Category, ObjectAnnotation
from evaltools.documents import json_as
from evaltools.errors import DataError


class _Image(msgspec.Struct):
    id: int
    file_name: str
    width: float
    height: float


class _Annotation(msgspec.Struct):
    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    area: float | None = None
    iscrowd: int | bool | None = 0
    id: int | float | str | None = None


class _Category(msgspec.Struct):
    id: Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
    name: str


class _Instances(msgspec.Struct):
    """The parts of the file that matter here; the others are left alone."""

    images: list[_Image]
    annotations: list[_Annotation]
    categories: list[_Category]


def read_instances(path: Path, flag: str) -> AnnotatedImages:
    """Read and check a file; raises :class:`DataError` naming the entry that is wrong.

    Annotations of pictures that the file does not list, as cut-down files have them, are counted and left out. One
    without ``area`` has that of its box.
    """
    return parse_instances(read_bytes(path, flag, "a COCO instances JSON file"), f"{flag}={path}")


def parse_instances(content: bytes, where: str) -> AnnotatedImages:
    """The same from the bytes of the file; ``where`` names it in messages."""
    try:
        instances = json_as(content.removeprefix(b"\xef\xbb\xbf"), _Instances)
    except ValueError as error:
        raise DataError(
            f"{where} is not a COCO instances file: {error}. Expected is a JSON object with images (id, file_name, "
            "width, "
            "height), annotations (image_id, category_id, bbox as [x,y,width,height]) and categories (id, name); "
            "evaltools convert makes one from a YOLO folder"
        ) from error
    _check(instances, where)
    listed = {entry.id for entry in instances.images}
    annotations = defaultdict(list)
    for entry in instances.annotations:
        area = entry.bbox[2] * entry.bbox[3] if entry.area is None else entry.area
        annotations[entry.image_id].append(
            ObjectAnnotation(entry.category_id, entry.bbox, area, is_crowd=bool(entry.iscrowd))
        )
    return AnnotatedImages(
        categories=tuple(Category(entry.id, entry.name) for entry in instances.categories),
        images=tuple(
            AnnotatedImage(entry.id, entry.file_name, int(entry.width), int(entry.height), tuple(annotations[entry.id]))
            for entry in instances.images
        ),
        unlisted_annotations=sum(entry.image_id not in listed for entry in instances.annotations),
    )


def _check(instances: _Instances, where: str) -> None:
    _require_unique(instances.images, "images", where)
    _require_unique(instances.categories, "categories", where)
    _require_unique((each for each in instances.annotations if each.id is not None), "annotations", where)
    for number, image in enumerate(instances.images):
        if not all(size >= 1 and size.is_integer() for size in (image.width, image.height)):
            raise DataError(
                f"{where}: images[{number}] ({image.file_name}) states the size {image.width:g}x{image.height:g}; "
                "sizes are whole pixels from 1 on"
            )
    listed = {image.id for image in instances.images}
    categories = {category.id for category in instances.categories}
    for number, annotation in enumerate(instances.annotations):
        if annotation.image_id not in listed:
            continue
        if annotation.category_id not in categories:
            raise DataError(
                f"{where}: annotations[{number}] has the category_id {annotation.category_id}, which is not among the "
                f"{len(categories)} categories of the file; add it there, or take the annotation out"
            )
        if not all(map(math.isfinite, annotation.bbox)) or min(annotation.bbox[2:]) < 0:
            raise DataError(
                f"{where}: annotations[{number}] has the bbox {list(annotation.bbox)}; expected is "
                "[x,y,width,height] in pixels, width and height not negative"
            )
        if annotation.area is not None and annotation.area < 0:
            raise DataError(
                f"{where}: annotations[{number}] has the area {annotation.area:g}; expected are square pixels, not "
                "negative; leave it out to have that of the bbox"
            )


def _require_unique(entries: Iterable[_Image | _Category | _Annotation], what: str, where: str) -> None:
    repeated = [number for number, count in Counter(entry.id for entry in entries).items() if count > 1]
    if repeated:
        raise DataError(f"{where}: {what} has the id {repeated[0]} more than once; every id must be there once")


def instances_json(data: AnnotatedImages) -> bytes:
    """Annotated pictures as a COCO instances file; annotations are numbered from 1."""
    annotations = [
        {
            "id": number,
            "image_id": image.id,
            "category_id": annotation.category_id,
            "bbox": annotation.bbox,
            "area": annotation.area,
            "iscrowd": int(annotation.is_crowd),
        }
        for number, (image, annotation) in enumerate(
            ((image, annotation) for image in data.images for annotation in image.annotations), start=1
        )
    ]
    document: dict[str, Any] = {
        "images": [
            {"id": image.id, "file_name": image.file_name, "width": image.width, "height": image.height}
            for image in data.images
        ],
        "annotations": annotations,
        "categories": data.categories,
    }
    return msgspec.json.encode(document) + b"\n"
