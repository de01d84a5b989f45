"""What ``evaltools convert`` writes for detection: ground truth in two forms, labels, pictures; and what it says."""

from __future__ import annotations

import filecmp
import os
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.datasets.coco_instances import instances_json
from evaltools.datasets.image_folder import is_picture
from evaltools.datasets.native_ground_truth import NativeConversion, from_annotations
from evaltools.datasets.object_annotations import AnnotatedImages, ObjectAnnotation, label_lines
from evaltools.datasets.picture_files import AnnotatedFolder, is_plain_text
from evaltools.errors import DataError, OutputError, UsageError
from evaltools.report.files.output_file import write_file

_FLAG: Final = "--output_folder"
_LARGEST_CATEGORY: Final = 100_000
_LARGEST_IMAGE_ID: Final = (1 << 63) - 1
_LARGEST_SIDE: Final = (1 << 31) - 1
_FARTHEST: Final = 1e9
"""How far a box may begin or end from the corner of its picture; its area may be that of a square of this side."""


class DetectionFolder(Struct, frozen=True):
    """The files that a conversion writes, and where.

    ``inputs`` are the files and folders that must not be overwritten.
    """

    folder: Path
    images_folder: Path | None
    copy_images: bool
    inputs: tuple[Path, ...]

    @property
    def ground_truth(self) -> Path:
        """The path of the native ground truth."""
        return self.folder / "ground_truth.pb"

    @property
    def instances(self) -> Path:
        """The path of the ground truth with areas and crowd regions."""
        return self.folder / "instances.json"

    @property
    def labels(self) -> Path:
        """The path of the label file: line i names category i."""
        return self.folder / "labels.txt"

    @property
    def copies(self) -> Path:
        """The folder that pictures are copied to."""
        return self.folder / "images"

    @property
    def pictures(self) -> Path | None:
        """The folder that the pictures are in afterwards; None where it is not known."""
        return self.copies if self.copy_images else self.images_folder


def write_detection_folder(source: AnnotatedFolder, target: DetectionFolder) -> NativeConversion:
    """Check everything, then write; returns what became of the objects in the native form.

    The pictures come first and the ground truth last, so that a folder with a ground truth is complete. Raises
    :class:`DataError` and :class:`UsageError` before anything is written, :class:`OutputError` where the disk fails.
    """
    _check_data(source.data)
    _check_inputs_stay(target)
    _check_pictures_exist(source.pictures)
    to_copy = _pictures_to_copy(source, target) if target.copy_images else []
    conversion = from_annotations(source.data.images)
    contents = {
        target.labels: "".join(f"{line}\n" for line in label_lines(source.data.categories)).encode(),
        target.instances: instances_json(source.data),
        target.ground_truth: conversion.ground_truth.to_bytes(),
    }
    _make_folder(target.folder)
    if target.copy_images:
        _make_folder(target.copies)
        _copy(to_copy, target.copies)
    for path, content in contents.items():
        write_file(path, content)
    return conversion


def pictures_besides(folder: Path, names: Sequence[str]) -> list[str]:
    """The pictures of a folder that are not among ``names``, in order; empty where the folder cannot be read."""
    known = frozenset(names)
    try:
        entries = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return []
    return [name for name in entries if name not in known and is_picture(name)]


def _check_data(data: AnnotatedImages) -> None:
    if not data.categories:
        raise DataError(
            "the annotations have no categories, so there is nothing to detect; give a file that names them"
        )
    for category in data.categories:
        if not is_plain_text(category.name):
            raise DataError(f"the category {category.id} is named {category.name!r}; a name is one line of UTF-8 text")
        if not 0 <= category.id <= _LARGEST_CATEGORY:
            raise DataError(
                f"the category {category.name!r} has the id {category.id}; ids are lines of the label file, from 0 to "
                f"{_LARGEST_CATEGORY}. Number the categories anew"
            )
    for image in data.images:
        if not is_plain_text(image.file_name):
            raise DataError(f"the picture {image.file_name!r} has a name that is not UTF-8 text; rename it")
        if not 0 <= image.id <= _LARGEST_IMAGE_ID or max(image.width, image.height) > _LARGEST_SIDE:
            raise DataError(
                f"the picture {image.file_name} has the id {image.id} and the size {image.width}x{image.height}; ids "
                f"are from 0 to 2^63 - 1, sizes in pixels to {_LARGEST_SIDE}. Correct them in the annotations"
            )
        for annotation in image.annotations:
            _check_box(annotation, image.file_name)
    repeated = [name for name, count in Counter(image.file_name for image in data.images).items() if count > 1]
    if repeated:
        raise DataError(
            f"{len(repeated)} names of pictures are there more than once, such as {repeated[0]!r}; subfolders go into "
            "one folder, so every name must be there once. Rename them, or convert the folders one by one"
        )


def _check_box(annotation: ObjectAnnotation, picture: str) -> None:
    x, y, width, height = annotation.bbox
    sides = (x, y, width, height, x + width, y + height)
    # A comparison with NaN is false.
    if not (all(abs(side) <= _FARTHEST for side in sides) and abs(annotation.area) <= _FARTHEST**2):
        raise DataError(
            f"the picture {picture} has an object with the box x {x:g}, y {y:g}, width {width:g}, height {height:g} "
            f"and the area {annotation.area:g}; boxes are finite and lie within {_FARTHEST:g} pixels. Correct it in "
            "the annotations, or take the object out"
        )


def _check_inputs_stay(target: DetectionFolder) -> None:
    if os.path.exists(target.folder) and not os.path.isdir(target.folder):
        raise UsageError(f"{_FLAG}={target.folder} is a file; give a folder, or a name for a new one")
    for path in target.inputs:
        outputs = [target.folder] if path.is_dir() else [target.ground_truth, target.instances, target.labels]
        if any(_is_same(path, output) for output in outputs):
            raise UsageError(f"{_FLAG}={target.folder} would write over {path}, which is read; give another folder")


def _check_pictures_exist(pictures: Sequence[Path]) -> None:
    missing = [path for path in pictures if not os.path.isfile(path)]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(pictures)} pictures are missing, the first is {missing[0]}; give the "
            "--images_folder that has them, or annotations of those only that are there"
        )


def _pictures_to_copy(source: AnnotatedFolder, target: DetectionFolder) -> list[tuple[Path, Path]]:
    """The pictures that are not in place yet, each with its new path.

    Raises :class:`UsageError` where one would replace another, or where the folder holds other pictures.
    """
    names = [image.file_name for image in source.data.images]
    pairs = [(picture, target.copies / name) for picture, name in zip(source.pictures, names, strict=True)]
    for picture, copy in pairs:
        if os.path.lexists(copy) and not _is_same(picture, copy) and not _is_equal(picture, copy):
            raise UsageError(f"{_FLAG}: {copy} is there and differs from {picture}; give a new folder, or remove it")
    others = pictures_besides(target.copies, names)
    if others and not (target.images_folder and _is_same(target.copies, target.images_folder)):
        raise UsageError(
            f"{_FLAG}: {target.copies} has {len(others)} pictures that do not belong to these annotations, such as "
            f"{others[0]}; the native tool would take them for pictures without objects. Give a new folder or "
            "remove them"
        )
    return [(picture, copy) for picture, copy in pairs if not os.path.lexists(copy)]


def _is_same(first: Path, second: Path) -> bool:
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False


def _is_equal(first: Path, second: Path) -> bool:
    try:
        return filecmp.cmp(first, second, shallow=False)
    except OSError:
        return False


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{_FLAG}: {folder} cannot be made: {error.strerror}") from error


def _copy(pictures: Sequence[tuple[Path, Path]], folder: Path) -> None:
    """Copy a picture with its times and permissions.

    The copy is renamed into place at the end, so that it is never half a file.
    """
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".copying.") as scratch:
            for picture, copy in pictures:
                draft = Path(scratch) / "draft"
                shutil.copy2(picture, draft)
                draft.replace(copy)
    except OSError as error:
        raise OutputError(f"{_FLAG}: the pictures cannot be copied to {folder}: {error}") from error


def detection_summary(source: AnnotatedFolder, target: DetectionFolder, conversion: NativeConversion) -> str:
    """The lines to print on stderr."""
    remarks = [*source.remarks, *_data_remarks(source.data), *_picture_remarks(source, target)]
    lines = [
        *_counts(source.data, target, conversion),
        *(f"note: {remark}" for remark in remarks),
        "next:",
        f"  evaltools coco --model_file=... --ground_truth_images_path={quoted(target.pictures)} "
        f"--ground_truth_annotations={quoted(target.instances)} --model_output_labels={quoted(target.labels)}",
    ]
    return "\n".join(lines)


def quoted(path: Path | None) -> str:
    """A path quoted for a shell; ``...`` for None."""
    return shlex.quote(str(path)) if path else "..."


def _counts(data: AnnotatedImages, target: DetectionFolder, conversion: NativeConversion) -> list[str]:
    annotations = [annotation for image in data.images for annotation in image.annotations]
    empty = sum(not image.annotations for image in data.images)
    crowds = sum(annotation.is_crowd for annotation in annotations)
    used = len({annotation.category_id for annotation in annotations})
    left_out = f"; {conversion.dropped} left out, a side lies beyond the picture" if conversion.dropped else ""
    regions = f", {crowds} of them crowd regions (ordinary objects in {target.ground_truth.name})" if crowds else ""
    lines = [
        f"{len(data.images)} pictures, {empty} of them without objects; {len(annotations)} objects in {used} of "
        f"{len(data.categories)} categories",
        f"  {target.ground_truth}: {len(annotations) - conversion.dropped} objects, for the native tool{left_out}",
        f"  {target.instances}: {len(annotations)} objects{regions}",
        f"  {target.labels}: {len(label_lines(data.categories))} lines, line i (from 0) names category i",
    ]
    return [*lines, f"  {target.copies}: {len(data.images)} pictures"] if target.copy_images else lines


def _data_remarks(data: AnnotatedImages) -> list[str]:
    annotations = [annotation for image in data.images for annotation in image.annotations]
    remarks = []
    if data.unlisted_annotations:
        remarks.append(
            f"{data.unlisted_annotations} annotations are of pictures that the file does not list, and are left out"
        )
    flat = sum(min(annotation.bbox[2:]) <= 0 for annotation in annotations)
    if flat:
        remarks.append(f"{flat} objects have a box without area, which no detection matches")
    if any(annotation.category_id == 0 for annotation in annotations):
        remarks.append(
            "there are objects of category 0; the native tool adds 1 to a model's classes, so it never finds one. "
            "Number the categories from 1 where that matters"
        )
    return remarks


def _picture_remarks(source: AnnotatedFolder, target: DetectionFolder) -> list[str]:
    names = [image.file_name for image in source.data.images]
    remarks = []
    unread = [name for name in names if not is_picture(name)]
    if unread:
        remarks.append(f"{len(unread)} pictures, such as {unread[0]}, are of a kind that no evaluation here reads")
    if target.pictures is None:
        return remarks
    elsewhere = [path for path in source.pictures if path.parent != target.pictures]
    if elsewhere and not target.copy_images:
        remarks.append(
            f"{len(elsewhere)} pictures, such as {elsewhere[0]}, lie in subfolders, where an evaluation does not look; "
            "--copy_images=true puts all into one folder"
        )
    others = pictures_besides(target.pictures, names)
    if others:
        remarks.append(
            f"{target.pictures} has {len(others)} more pictures, such as {others[0]}, without an entry in the ground "
            "truth; evaltools coco leaves them out, the native tool takes them for pictures without objects"
        )
    return remarks
