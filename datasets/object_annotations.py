"""Pictures with annotated objects, whatever format they came in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evaltools.datasets.files import numbers_by_line, read_bytes
from evaltools.errors import DataError
from evaltools.file_content import TEXT_BYTES


class Category(Struct, frozen=True):
    """A kind of object; ``id`` is any number from 0 on, in COCO 1..90 with gaps."""

    id: int
    name: str


class ObjectAnnotation(Struct, frozen=True):
    """One object of a picture.

    ``bbox`` is x, y, width, height in pixels from the upper left corner. ``area`` is that of the object in square
    pixels, from its outline where there is one, so it may be less than that of the box. ``is_crowd`` marks a region
    with many objects that nobody counted: COCO neither demands nor punishes detections there.
    """

    category_id: int
    bbox: tuple[float, float, float, float]
    area: float
    is_crowd: bool = False


class AnnotatedImage(Struct, frozen=True):
    """A picture, its size in pixels, and its objects in the order of the file; perhaps none."""

    id: int
    file_name: str
    width: int
    height: int
    annotations: tuple[ObjectAnnotation, ...]

    def shares(self, annotation: ObjectAnnotation) -> tuple[float, float, float, float]:
        """Top, left, bottom, right of an object as shares of this picture's height and width, in float64.

        >>> found = ObjectAnnotation(1, (50.0, 25.0, 100.0, 50.0), 5000.0)
        >>> AnnotatedImage(7, "a.jpg", 200, 100, (found,)).shares(found)
        (0.25, 0.25, 0.75, 0.75)
        """
        x, y, width, height = annotation.bbox
        return y / self.height, x / self.width, (y + height) / self.height, (x + width) / self.width


class AnnotatedImages(Struct, frozen=True):
    """Annotated pictures, in the order of the file, and the categories of their objects.

    ``unlisted_annotations`` are of pictures that the file does not list, and were left out.
    """

    categories: tuple[Category, ...]
    images: tuple[AnnotatedImage, ...]
    unlisted_annotations: int = 0


def label_lines(categories: Sequence[Category]) -> list[str]:
    """One line per class of the native tool: line i names category i, ``???`` where there is none.

    >>> label_lines([Category(1, "person"), Category(3, "car")])
    ['???', 'person', '???', 'car']
    """
    names = {category.id: category.name for category in categories}
    return [names.get(number, "???") for number in range(max(names, default=-1) + 1)]


class Selection(Struct, frozen=True):
    """The pictures taken, how many were left out for having no objects, and remarks for the user."""

    data: AnnotatedImages
    left_out_empty: int
    remarks: tuple[str, ...]


def read_allowlist(path: Path, flag: str) -> frozenset[int]:
    """Read picture ids, one per line; blank lines are skipped. Raises :class:`DataError`."""
    expected = "give one picture id per line"
    ids = numbers_by_line(read_bytes(path, flag, "a text file", most_bytes=TEXT_BYTES), f"{flag}={path}", expected)
    if not ids:
        raise DataError(f"{flag}={path} names no picture; {expected}, or leave the flag out for all")
    return frozenset(ids.values())


def select_images(
    data: AnnotatedImages, allowlist: frozenset[int] | None = None, num_images: int = 0, keep_empty: bool = False
) -> Selection:
    """Take pictures: on the list if there is one, with objects unless ``keep_empty``, the first by ascending id.

    ``num_images`` 0 takes all; below 0 and beyond what there is, too, with a remark. The order of the file stays.
    """
    listed = [image for image in data.images if allowlist is None or image.id in allowlist]
    kept = [image for image in listed if keep_empty or image.annotations]
    remarks = _list_remarks(data, allowlist) + _number_remarks(num_images, len(kept))
    first = sorted(image.id for image in kept)[: num_images if num_images > 0 else None]
    chosen = frozenset(first)
    images = tuple(image for image in kept if image.id in chosen)
    return Selection(replace(data, images=images), len(listed) - len(kept), remarks)


def _list_remarks(data: AnnotatedImages, allowlist: frozenset[int] | None) -> tuple[str, ...]:
    unknown = sorted((allowlist or frozenset()) - {image.id for image in data.images})
    if not unknown:
        return ()
    return (f"{len(unknown)} ids of the allowlist, such as {unknown[0]}, are not among the pictures of the file",)


def _number_remarks(num_images: int, available: int) -> tuple[str, ...]:
    if num_images < 0:
        return (f"--num_images={num_images} is negative; all {available} pictures are taken",)
    if num_images > available:
        return (f"--num_images={num_images} is more than there are; all {available} pictures are taken",)
    return ()
