"""A Pascal VOC folder: one XML file per picture, perhaps pictures, perhaps a list of those that belong to a split."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from msgspec import Struct

from evaltools.datasets.files import read_bytes
from evaltools.datasets.image_folder import list_images
from evaltools.datasets.object_annotations import AnnotatedImage, AnnotatedImages, Category, ObjectAnnotation
from evaltools.datasets.picture_files import (
    AnnotatedFolder,
    finite_number,
    image_ids,
    inner_path,
    read_header,
    rotation_remarks,
)
from evaltools.documents import xml_root
from evaltools.errors import DataError
from evaltools.preprocess import IMAGE_EXTENSIONS
from evaltools.text import shortened

_ANNOTATIONS_FLAG: Final = "--annotations_folder"
_IMAGES_FLAG: Final = "--images_folder"
_SET_FLAG: Final = "--image_set_file"
_LABELS_FLAG: Final = "--labels_file"
_HEADERLESS: Final = ".rgb8"
"""The ending of pictures that do not state their size."""
_NO_CLASS: Final = ("???", "background", "__background__")

VOC_CLASSES: Final = (
    "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow",
    "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip
"""The 20 classes of VOC2007 to VOC2012 in their usual order; the first is category 1."""
_LONGEST_QUOTE: Final = 40
_DEEPEST: Final = 100
_COORDINATES: Final = ("xmin", "ymin", "xmax", "ymax")


class _Entry(Struct, frozen=True):
    """An annotation file, what it says, and the name and file (None: no folder given) of its picture."""

    file: Path
    annotation: VocAnnotation
    name: str
    picture: Path | None


def read_voc(
    annotations_folder: Path,
    images_folder: Path | None = None,
    image_set_file: Path | None = None,
    labels: Sequence[str] | None = None,
) -> AnnotatedFolder:
    """Read annotations: all of the folder by name, or those of the set in its order. Raises :class:`DataError`.

    A ``difficult`` object becomes a crowd region: neither demanded nor punished. ``labels`` are the lines of a label
    file, see :func:`categories_of`.
    """
    files = _annotation_files(annotations_folder)
    if image_set_file is not None:
        known = frozenset(files)
        files = [_file_of(stem, known, annotations_folder) for stem in read_image_set(image_set_file)]
    pictures = _Pictures(images_folder)
    entries = [_read_entry(file, pictures) for file in files]
    _require_pictures(entries, images_folder)
    categories = categories_of((found.name for entry in entries for found in entry.annotation.objects), labels)
    ids = {category.name: category.id for category in categories}
    numbers = image_ids([entry.name for entry in entries])
    sizes, remarks = _sizes(entries)
    images = tuple(
        AnnotatedImage(number, entry.name, *size, tuple(_annotated(found, ids) for found in entry.annotation.objects))
        for number, entry, size in zip(numbers, entries, sizes, strict=True)
    )
    paths = tuple(entry.picture for entry in entries if entry.picture)
    return AnnotatedFolder(AnnotatedImages(categories, images), paths, remarks + _zero_remarks(images))


def read_image_set(path: Path) -> list[str]:
    """The names of a list such as ``ImageSets/Main/val.txt``; a number after a name is left alone."""
    text = read_bytes(path, _SET_FLAG, "a text file").decode("utf-8-sig", errors="replace")
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    if not names:
        raise DataError(f"{_SET_FLAG}={path} names no picture; it has one name per line, without an ending")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{_SET_FLAG}={path} names {repeated[0]!r} more than once; every name must be there once")
    return names


def categories_of(names: Iterable[str], labels: Sequence[str] | None) -> tuple[Category, ...]:
    """Categories for the names of objects, all from 1 on.

    With ``labels`` the first line is category 1, unless it is ``???``, ``background`` or ``__background__`` (in any
    case), which then is category 0. Else the 20 classes of VOC where no other name occurs, else the names in order.

    >>> categories_of(["dog", "zebra", "dog"], None)
    (Category(id=1, name='dog'), Category(id=2, name='zebra'))
    >>> categories_of(["zebra"], ["???", "dog", "???", "zebra"])
    (Category(id=1, name='dog'), Category(id=3, name='zebra'))
    """
    used = sorted(set(names))
    if labels is None:
        classes = VOC_CLASSES if set(used) <= set(VOC_CLASSES) else used
        return tuple(Category(number, name) for number, name in enumerate(classes, start=1))
    first = 0 if labels[0].lower() in _NO_CLASS else 1
    categories = tuple(Category(number, name) for number, name in enumerate(labels, start=first) if name != "???")
    repeated = [name for name, count in Counter(category.name for category in categories).items() if count > 1]
    if repeated:
        raise DataError(f"{_LABELS_FLAG} names {repeated[0]!r} twice; every class must be there once")
    missing = sorted(set(used) - {category.name for category in categories})
    if missing:
        raise DataError(
            f"{_LABELS_FLAG} lacks {len(missing)} of the {len(used)} classes of the objects, such as {missing[0]!r}. "
            "Add them, one per line, or leave the flag out"
        )
    return categories


def _annotation_files(folder: Path) -> list[Path]:
    try:
        names = sorted((entry.name for entry in os.scandir(folder)), key=os.fsencode)
    except OSError as error:
        raise DataError(
            f"{_ANNOTATIONS_FLAG}={folder} cannot be listed: {error.strerror}; give the folder of XML files"
        ) from error
    files = [folder / name for name in names if name.lower().endswith(".xml") and not name.startswith(".")]
    if not files:
        hint = f" {folder / 'Annotations'} looks like it" if "Annotations" in names else ""
        raise DataError(
            f"{_ANNOTATIONS_FLAG}={folder} has no .xml files among its {len(names)} entries; give the folder that "
            f"holds them.{hint}"
        )
    return files


def _file_of(stem: str, files: frozenset[Path], folder: Path) -> Path:
    file = folder / f"{stem}.xml"
    if file not in files:
        raise DataError(
            f"{_SET_FLAG} names {stem!r}, but {_ANNOTATIONS_FLAG}={folder} has no {stem}.xml; the list has one name "
            "per line, without an ending. Give the annotations that belong to it"
        )
    return file


class _Pictures:
    """Pictures of a folder by name and by stem; knows nothing where there is no folder."""

    def __init__(self, folder: Path | None) -> None:
        self.paths: Final = list_images(folder, _IMAGES_FLAG).paths if folder else ()
        self._by_name: Final[Mapping[str, Path]] = {path.name: path for path in self.paths}
        self._by_stem: Final[defaultdict[str, list[Path]]] = defaultdict(list)
        for path in self.paths:
            self._by_stem[path.stem].append(path)

    def find(self, name: str, stem: str) -> Path | None:
        """The picture of this name, else the one of this stem; raises where there are several."""
        if name in self._by_name:
            return self._by_name[name]
        found = self._by_stem.get(stem, [])
        if len(found) > 1:
            raise DataError(
                f"{_IMAGES_FLAG}: {found[0].name} and {found[1].name} would share the annotation file {stem}.xml, "
                "whose <filename> names neither; name the right one there, or rename one"
            )
        return found[0] if found else None


def _read_entry(file: Path, pictures: _Pictures) -> _Entry:
    where = f"{_ANNOTATIONS_FLAG}: {file}"
    annotation = parse_annotation(read_bytes(file, _ANNOTATIONS_FLAG, "an XML file", may_be_pipe=False), where)
    stated = inner_path(annotation.file_name, where).name if annotation.file_name else ""
    picture = pictures.find(stated, file.stem)
    has_ending = os.path.splitext(stated)[1].lower() in IMAGE_EXTENSIONS
    name = picture.name if picture else stated if has_ending else f"{file.stem}.jpg"
    return _Entry(file, annotation, name, picture)


def _require_pictures(entries: Sequence[_Entry], folder: Path | None) -> None:
    missing = [entry for entry in entries if folder and not entry.picture]
    if missing:
        raise DataError(
            f"{_IMAGES_FLAG}={folder} lacks {len(missing)} of {len(entries)} pictures; the first is {missing[0].name} "
            f"of {missing[0].file}. Give the folder that has them, or take their annotations out"
        )


def _sizes(entries: Sequence[_Entry]) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """Width and height of every picture, from the picture or else from its annotation; and remarks."""
    sizes, headers, paths, differing = [], [], [], []
    for entry in entries:
        stated = entry.annotation.size
        if entry.picture and not (stated and entry.picture.suffix.lower() == _HEADERLESS):
            header = read_header(entry.picture, _IMAGES_FLAG)
            headers.append(header)
            paths.append(entry.picture)
            sizes.append((header.width, header.height))
            if stated and stated != sizes[-1]:
                differing.append((entry, sizes[-1]))
        elif stated:
            sizes.append(stated)
        else:
            raise DataError(
                f"{_ANNOTATIONS_FLAG}: {entry.file} has no <size> with width and height; give {_IMAGES_FLAG}, from "
                "whose pictures it is taken"
            )
    return sizes, _size_remarks(differing) + rotation_remarks(headers, paths)


def _size_remarks(differing: Sequence[tuple[_Entry, tuple[int, int]]]) -> tuple[str, ...]:
    if not differing:
        return ()
    (first, (width, height)), stated = differing[0], differing[0][0].annotation.size
    assert stated
    return (
        f"{len(differing)} annotation files, such as {first.file.name}, state another <size> than that of their "
        f"pictures ({stated[0]}x{stated[1]}, but {first.name} has {width}x{height}), which is taken; if the pictures "
        "were resized, the boxes do not fit",
    )


def _annotated(found: VocObject, ids: Mapping[str, int]) -> ObjectAnnotation:
    width, height = found.xmax - found.xmin + 1, found.ymax - found.ymin + 1
    bbox = (found.xmin - 1, found.ymin - 1, width, height)
    return ObjectAnnotation(ids[found.name], bbox, width * height, is_crowd=found.is_difficult)


def _zero_remarks(images: Sequence[AnnotatedImage]) -> tuple[str, ...]:
    starts = [(image.file_name, min(a.bbox[:2])) for image in images for a in image.annotations]
    outside = [name for name, start in starts if start < 0]
    if not outside:
        return ()
    return (
        f"{len(outside)} boxes, such as one of {outside[0]}, begin left of or above pixel 1, the first of VOC; if this "
        "folder counts from 0, all boxes are one pixel too far up and left",
    )


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


def parse_annotation(content: bytes, where: str) -> VocAnnotation:
    """Read a file's content; raises :class:`DataError`. ``where`` names the file in messages.

    >>> box = b"<bndbox><xmin>8</xmin><ymin>5</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
    >>> parse_annotation(b"<annotation><object><name>cat</name>" + box + b"</object></annotation>", "a.xml").objects
    (VocObject(name='cat', xmin=8.0, ymin=5.0, xmax=9.0, ymax=9.0, is_difficult=False),)
    """
    root = _parse(content, where)
    if root.tag != "annotation":
        raise DataError(
            f"{where} is not a VOC annotation: its root is <{root.tag}>, not <annotation>. Take the file out of the "
            "folder"
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
        raise DataError(f"{where} is not valid XML: {error}. Replace the file, or remove it and its picture") from error


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
