"""A folder of pictures with YOLO label files: ``class cx cy w h`` or ``class x1 y1 x2 y2 ...`` per object."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from evaltools.datasets.files import read_bytes
from evaltools.datasets.image_folder import list_images
from evaltools.datasets.object_annotations import AnnotatedImage, AnnotatedImages, Category, ObjectAnnotation
from evaltools.datasets.picture_files import AnnotatedFolder, finite_number, image_ids, read_header, rotation_remarks
from evaltools.errors import DataError

_IMAGES_FLAG: Final = "--images_folder"
_LABELS_FLAG: Final = "--labels_folder"
_ROUNDING: Final = 2e-6
"""How far a share of the picture may lie beyond 0..1: label files have six digits, and a side is the sum of two."""

_COCO_GAPS: Final = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
COCO_IDS: Final = tuple(number for number in range(1, 91) if number not in _COCO_GAPS)
"""COCO's category ids of its 80 classes."""


def names_in_yaml(content: Any, where: str) -> tuple[str, ...]:
    """The class names of a ``data.yaml``; raises :class:`DataError`. ``where`` names the file in messages.

    >>> names_in_yaml({"names": {0: "person", 1: "car"}}, "data.yaml")
    ('person', 'car')
    """
    names = content.get("names") if isinstance(content, dict) else None
    if isinstance(content, dict) and "kpt_shape" in content:
        raise DataError(
            f"{where} describes keypoints (kpt_shape); label lines with keypoints are not read. Cut them to their "
            "first five numbers, and take kpt_shape out"
        )
    if isinstance(names, dict) and all(type(key) is int for key in names):
        if sorted(names) != list(range(len(names))):
            raise DataError(f"{where}: the classes of names are {sorted(names)}; number them from 0 without a gap")
        names = [names[key] for key in sorted(names)]
    if not isinstance(names, list) or not names:
        raise DataError(f"{where} has no class names; it needs names: [person, car, ...] or names: {{0: person, ...}}")
    for name in names:
        if type(name) not in (str, int):
            raise DataError(f"{where}: the class name {name!r} is not a text for YAML; put it into quotes")
    count = content.get("nc")
    if count is not None and count != len(names):
        raise DataError(
            f"{where} states nc: {count}, but names has {len(names)} classes; correct nc, or give the missing names"
        )
    return tuple(map(str, names))


def labels_folder_beside(images_folder: Path) -> Path | None:
    """Where YOLO looks for labels: the last folder named ``images`` replaced by ``labels``.

    >>> labels_folder_beside(Path("data/images/val")).as_posix(), labels_folder_beside(Path("data/val"))
    ('data/labels/val', None)
    """
    parts = list(images_folder.parts)
    if "images" not in parts:
        return None
    last = len(parts) - 1 - parts[::-1].index("images")
    return Path(*parts[:last], "labels", *parts[last + 1 :])


def category_ids(class_count: int, coco_ids: bool) -> tuple[int, ...]:
    """The category of each class: class + 1, or COCO's numbers with gaps for its 80 classes.

    >>> category_ids(3, coco_ids=False), category_ids(80, coco_ids=True)[10:13]
    ((1, 2, 3), (11, 13, 14))
    """
    if not coco_ids:
        return tuple(range(1, class_count + 1))
    if class_count != len(COCO_IDS):
        raise DataError(f"--coco_ids is for the 80 classes of COCO; --names_file has {class_count}. Leave the flag out")
    return COCO_IDS


def read_yolo(
    images_folder: Path, labels_folder: Path, names: Sequence[str], coco_ids: bool = False
) -> AnnotatedFolder:
    """Read a folder; a picture whose label file is missing or empty has no objects.

    Pictures come in the order of their names. Raises :class:`DataError` naming the line that is wrong.
    """
    ids = category_ids(len(names), coco_ids)
    paths = tuple(list_images(images_folder, _IMAGES_FLAG).paths)
    label_files = _label_files(labels_folder, paths)
    headers = [read_header(path, _IMAGES_FLAG) for path in paths]
    images = []
    for number, path, header in zip(image_ids([path.name for path in paths]), paths, headers, strict=True):
        file = label_files.pop(path.stem, None)
        annotations = _read_label_file(file, header.width, header.height, ids) if file else ()
        images.append(AnnotatedImage(number, path.name, header.width, header.height, annotations))
    categories = tuple(Category(number, name) for number, name in zip(ids, names, strict=True))
    remarks = rotation_remarks(headers, paths) + _remarks(label_files, names, coco_ids)
    return AnnotatedFolder(AnnotatedImages(categories, tuple(images)), paths, remarks)


def _label_files(folder: Path, paths: Sequence[Path]) -> dict[str, Path]:
    """Label files by stem; raises where they do not belong to these pictures."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.lower().endswith(".txt"))
    except OSError as error:
        raise DataError(f"{_LABELS_FLAG}={folder} cannot be listed: {error.strerror}; give the label folder") from error
    files: dict[str, Path] = {}
    for file in (folder / name for name in names if not name.startswith(".")):
        if file.stem in files:
            raise DataError(
                f"{_LABELS_FLAG}={folder}: {files[file.stem].name} and {file.name} are label files of the same "
                "picture; remove one"
            )
        files[file.stem] = file
    pictures: dict[str, Path] = {}
    for path in paths:
        if path.stem in pictures:
            other = pictures[path.stem].name
            raise DataError(
                f"{_IMAGES_FLAG}: {other} and {path.name} would share the label file {path.stem}.txt; rename one"
            )
        pictures[path.stem] = path
    if not files.keys() & pictures.keys():
        raise DataError(
            f"{_LABELS_FLAG}={folder} has label files for none of the {len(paths)} pictures; {len(names)} .txt files. "
            f"That of {paths[0].name} is named {paths[0].stem}.txt. Give the folder that belongs to the pictures"
        )
    return files


def _remarks(left: dict[str, Path], names: Sequence[str], coco_ids: bool) -> tuple[str, ...]:
    remarks = []
    orphans = [file.name for stem, file in left.items() if stem != "classes"]
    if orphans:
        remarks.append(f"{len(orphans)} label files, such as {orphans[0]}, have no picture and are left out")
    if not coco_ids and len(names) == len(COCO_IDS) and (names[0], names[-1]) == ("person", "toothbrush"):
        remarks.append(
            "the 80 classes look like those of COCO; for a model with COCO's ids (1..90) add --coco_ids=true"
        )
    return tuple(remarks)


def _read_label_file(path: Path, width: int, height: int, ids: Sequence[int]) -> tuple[ObjectAnnotation, ...]:
    text = read_bytes(path, _LABELS_FLAG, "a text file", may_be_pipe=False).decode("utf-8-sig", errors="replace")
    return tuple(
        parse_line(line, width, height, ids, f"{path}, line {number}")
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip()
    )


def parse_line(line: str, width: int, height: int, ids: Sequence[int], where: str) -> ObjectAnnotation:
    """One object from its line; ``ids`` are the categories of the classes. Raises :class:`DataError`.

    >>> parse_line("1 0.5 0.5 0.25 0.5", 80, 40, (1, 2), "a.txt, line 1")
    ObjectAnnotation(category_id=2, bbox=(30.0, 10.0, 20.0, 20.0), area=400.0, is_crowd=False)
    >>> parse_line("0 0 0 0.5 0 0 0.5", 80, 40, (1, 2), "a.txt, line 1").area
    400.0
    """
    fields = line.split()
    if len(fields) != 5 and (len(fields) < 7 or len(fields) % 2 == 0):
        hint = "; a sixth number is a prediction's score" if len(fields) == 6 else ""
        raise DataError(
            f"{where}: {len(fields)} numbers in {_shortened(line)!r}; a line is 'class cx cy w h', or 'class x1 y1 x2 "
            f"y2 x3 y3 ...' with three points or more{hint}"
        )
    category = ids[_class_index(fields[0], len(ids), where)]
    shares = [_share(text, where) for text in fields[1:]]
    if len(shares) == 4:
        (left, box_width), (top, box_height) = _span(shares[0], shares[2], width), _span(shares[1], shares[3], height)
        return ObjectAnnotation(category, (left, top, box_width, box_height), box_width * box_height)
    xs, ys = [share * width for share in shares[::2]], [share * height for share in shares[1::2]]
    bbox = (min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))
    return ObjectAnnotation(category, bbox, _polygon_area(xs, ys))


def _class_index(text: str, class_count: int, where: str) -> int:
    number = finite_number(text)
    if number is None or not number.is_integer() or not 0 <= number < class_count:
        raise DataError(
            f"{where}: class {_shortened(text)!r}; classes go from 0 to {class_count - 1}, one per name of "
            "--names_file. Give the names that belong to these labels, or correct the line"
        )
    return int(number)


def _share(text: str, where: str) -> float:
    number = finite_number(text)
    if number is None or not -_ROUNDING <= number <= 1 + _ROUNDING:
        raise DataError(
            f"{where}: {_shortened(text)!r}; numbers are shares of the picture's width and height, 0..1. Divide pixels "
            "by the picture's width or height"
        )
    return min(max(number, 0.0), 1.0)


def _span(centre: float, length: float, size: int) -> tuple[float, float]:
    """Start and length in pixels of a side; what sticks out of the picture by rounding is cut off."""
    start, extent = (centre - length / 2) * size, length * size
    slack = _ROUNDING * size
    if -slack <= start < 0:
        start, extent = 0.0, extent + start
    if size < start + extent <= size + slack:
        extent = size - start
    return start, extent


def _polygon_area(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Gauss's area formula; the outline closes itself."""
    following = [*range(1, len(xs)), 0]
    return abs(math.fsum(xs[i] * ys[j] - xs[j] * ys[i] for i, j in enumerate(following))) / 2


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
