"""One annotation file of Pascal VOC: XML -> what it says, checked."""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree

from msgspec import Struct

from evaltools.datasets.picture_files import finite_number
from evaltools.documents import xml_root
from evaltools.errors import DataError
from evaltools.text import shortened

_LONGEST_QUOTE: Final = 40
_DEEPEST: Final = 100


class VocObject(Struct, frozen=True):
    """An object: pixels count from 1, and ``xmax`` and ``ymax`` belong to the box."""

    name: str
    xmin: float
    ymin: float
    xmax: float
    ymax: float
    is_difficult: bool


class VocAnnotation(Struct, frozen=True):
    """A file; ``file_name`` is empty and ``size`` (width, height) None where it does not say."""

    file_name: str
    size: tuple[int, int] | None
    objects: tuple[VocObject, ...]


class _DocumentTypeError(ValueError):
    pass


class _Builder(ElementTree.TreeBuilder):
    """Refuses a document type, in which entities could be declared that grow without end or read other files.

    Elements that lie in each other as deeply as no annotation's raise :class:`RecursionError`.
    """

    _depth = 0

    def doctype(self, *_: object) -> None:
        raise _DocumentTypeError

    def start(self, tag: str, attrs: dict[str, str]) -> ElementTree.Element:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise RecursionError
        return super().start(tag, attrs)

    def end(self, tag: str) -> ElementTree.Element:
        self._depth -= 1
        return super().end(tag)


_COORDINATES: Final = ("xmin", "ymin", "xmax", "ymax")


def parse_annotation(content: bytes, where: str) -> VocAnnotation:
    """Read a file's content; raises :class:`DataError`. ``where`` names the file in messages.

    >>> box = b"<bndbox><xmin>8</xmin><ymin>5</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
    >>> parse_annotation(b"<annotation><object><name>cat</name>" + box + b"</object></annotation>", "a.xml").objects
    (VocObject(name='cat', xmin=8.0, ymin=5.0, xmax=9.0, ymax=9.0, is_difficult=False),)
    """
    root = _parse(content, where)
    if root.tag != "annotation":
        raise DataError(
            f"{where} is no VOC annotation: its root is <{root.tag}>, not <annotation>. Take the file out of the folder"
        )
    objects = tuple(
        _object(element, f"{where}, object {number}") for number, element in enumerate(root.findall("object"), start=1)
    )
    return VocAnnotation(_text(root, "filename"), _size(root), objects)


def _parse(content: bytes, where: str) -> ElementTree.Element:
    try:
        return xml_root(content, _Builder())
    except _DocumentTypeError:
        raise DataError(
            f"{where} declares a document type (<!DOCTYPE ...>), which VOC annotations do not need and which is "
            "refused. Take the declaration out"
        ) from None
    except ValueError as error:
        raise DataError(f"{where} is no valid XML: {error}. Replace the file, or remove it and its picture") from error


def _text(element: ElementTree.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _size(root: ElementTree.Element) -> tuple[int, int] | None:
    """The size stated, None where it is missing or zero as some tools write it."""
    width, height = (finite_number(_text(root, f"size/{side}")) for side in ("width", "height"))
    if width is None or height is None or not (width.is_integer() and height.is_integer()) or min(width, height) < 1:
        return None
    return int(width), int(height)


def _object(element: ElementTree.Element, where: str) -> VocObject:
    name = _text(element, "name")
    if not name:
        raise DataError(f"{where} has no <name>; every object needs one. Add it, or take the object out")
    xmin, ymin, xmax, ymax = (_coordinate(element, field, f"{where} ({name})") for field in _COORDINATES)
    if xmax < xmin or ymax < ymin:
        raise DataError(
            f"{where} ({name}) has the box xmin {xmin:g}, ymin {ymin:g}, xmax {xmax:g}, ymax {ymax:g}; the maxima must "
            "not be less than the minima. Exchange them, or take the object out"
        )
    return VocObject(name, xmin, ymin, xmax, ymax, _is_difficult(element, f"{where} ({name})"))


def _coordinate(element: ElementTree.Element, field: str, where: str) -> float:
    text = _text(element, f"bndbox/{field}")
    number = finite_number(text)
    if number is None:
        got = repr(shortened(text, _LONGEST_QUOTE)) if text else "nothing"
        raise DataError(
            f"{where}: <bndbox> has {got} for <{field}>; it needs xmin, ymin, xmax and ymax as numbers of pixels. "
            "Correct it, or take the object out"
        )
    return number


def _is_difficult(element: ElementTree.Element, where: str) -> bool:
    text = _text(element, "difficult") or "0"
    if text not in ("0", "1"):
        raise DataError(f"{where}: <difficult> is {text!r}; it is 0 or 1. Correct it")
    return text == "1"
