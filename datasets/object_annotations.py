"""Pictures with annotated objects, whatever format they came in."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


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
