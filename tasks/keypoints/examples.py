"""People in pictures: annotations of COCO, and the part of a picture that becomes the model's input."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from PIL import Image

from evaltools.datasets.files import read_bytes
from evaltools.datasets.image_folder import printable_name
from evaltools.datasets.order import Order
from evaltools.documents import json_as
from evaltools.errors import DataError, TaskError
from evaltools.preprocess import decode_image
from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Example
from evaltools.tasks.framework.pictures import pairs, picture_transform
from evaltools.tasks.framework.tensors import TaskTensor

KEYPOINTS: Final = 17
BLACK: Final = 0
_PADDED: Final = 1.25
"""How much larger than its box a person's part of the picture is, as pose models are trained."""
Box = tuple[float, float, float, float]
"""Left, top, width and height, in pixels."""


class Person(msgspec.Struct, frozen=True):
    """One annotated person; ``keypoints`` are x, y and visibility (0: not annotated) of each."""

    image_id: int
    bbox: Box
    keypoints: tuple[float, ...]
    area: float
    iscrowd: int = 0

    @property
    def is_annotated(self) -> bool:
        """Whether any keypoint is."""
        return any(self.keypoints[2::3])


class _Image(msgspec.Struct):
    id: int
    file_name: str


class _Document(msgspec.Struct):
    images: list[_Image]
    annotations: list[Person]


class Seen(Struct, frozen=True):
    """What becomes an input: a picture, or the box of a person in it."""

    picture: Path
    box: Box | None = None


class Truth(Struct, frozen=True):
    """The people that an input shows, and what it shows of them."""

    seen: Seen
    people: tuple[Person, ...]


def listed(
    images: Path, annotations: Path | None, boxes: bool, num_images: int, order: Order = "native", seed: int = 1
) -> list[Example]:
    """An example for each picture, or for each annotated person in it; raises :class:`DataError`."""
    pictures = pairs(images, None, num_images, order, seed)
    if annotations is None:
        if boxes:
            raise DataError("--people=boxes takes the boxes of --annotations; give these, or leave it out")
        return [dataclasses.replace(example, input=Seen(example.input)) for example in pictures]
    people = _people(annotations)
    missing = [example.id for example in pictures if example.id not in people]
    if missing:
        raise DataError(
            f"--annotations={annotations} lists no picture {missing[0]!r}; take the file of --images={images}"
        )
    found = []
    for example in pictures:
        own = people[example.id]
        for name, seen, shown in _parts(example, own) if boxes else [(example.id, Seen(example.input), own)]:
            found.append(Example(name, seen, Truth(seen, shown)))
    return found


def _parts(example: Example, people: Sequence[Person]) -> list[tuple[str, Seen, tuple[Person, ...]]]:
    """Name, box and truth of each person who is not in a crowd and has annotated keypoints."""
    whole = [person for person in people if person.is_annotated and not person.iscrowd]
    return [
        (f"{example.id} person {number}", Seen(example.input, person.bbox), (person,))
        for number, person in enumerate(whole, 1)
    ]


def _people(annotations: Path) -> dict[str, tuple[Person, ...]]:
    """The people in each picture, by its name."""
    where = f"--annotations={annotations}"
    try:
        document = json_as(read_bytes(annotations, "--annotations", "a COCO person keypoints file"), _Document)
    except ValueError as error:
        raise DataError(f"{where} is not a file of COCO person keypoints: {error}") from error
    by_image: dict[int, list[Person]] = {image.id: [] for image in document.images}
    for person in document.annotations:
        if len(person.keypoints) != 3 * KEYPOINTS:
            raise DataError(
                f"{where} has a person with {len(person.keypoints) // 3} keypoints; COCO's have {KEYPOINTS}"
            )
        if person.image_id in by_image:
            by_image[person.image_id].append(person)
    return {printable_name(Path(image.file_name).name): tuple(by_image[image.id]) for image in document.images}


def model_input(seen: Seen, tensors: Sequence[TaskTensor], normalization: str, fill: int = BLACK) -> tuple[Array, ...]:
    """The part of a picture at the input's aspect ratio, of this grey where it is beyond the border."""
    if len(tensors) != 1:
        raise TaskError(f"the model has {len(tensors)} inputs; expected is one, a picture [1,height,width,3]")
    tensor = replace(tensors[0], dtype=np.dtype("uint8")) if tensors[0].dtype == np.int32 else tensors[0]
    transform = picture_transform(tensor, normalization)
    image = Image.fromarray(decode_image(seen.picture))
    left, top, width, height = region(seen, image.size, transform.width / transform.height)
    extent = (left, top, left + width, top + height)
    size = (transform.width, transform.height)
    part = image.transform(
        size, Image.Transform.EXTENT, extent, Image.Resampling.BILINEAR, fillcolor=(fill, fill, fill)
    )
    return (transform(np.asarray(part), already_sized=True),)


def region(seen: Seen, size: tuple[int, int], aspect: float) -> Box:
    """What the input shows of a picture of ``size`` (width, height), in its pixels; ``aspect`` is width by height.

    >>> region(Seen(Path("a.jpg")), (40, 20), 1.0), region(Seen(Path("a.jpg"), (10, 0, 8, 16)), (40, 20), 1.0)
    ((0.0, -10.0, 40.0, 40.0), (4.0, -2.0, 20.0, 20.0))
    """
    left, top, width, height = seen.box or (0.0, 0.0, float(size[0]), float(size[1]))
    scale = 1.0 if seen.box is None else _PADDED
    shown = (max(width, height * aspect) * scale, max(height, width / aspect) * scale)
    return (left + (width - shown[0]) / 2, top + (height - shown[1]) / 2, *shown)
