"""The pictures of a detection evaluation, and the objects in them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.datasets.coco_instances import parse_instances
from evaltools.datasets.files import read_bytes
from evaltools.datasets.image_folder import ImageFolder, list_images
from evaltools.datasets.native_ground_truth import (
    NativeGroundTruth,
    NativePicture,
    from_annotations,
    parse_ground_truth,
    to_annotations,
)
from evaltools.datasets.object_annotations import AnnotatedImage, AnnotatedImages, Category
from evaltools.datasets.order import Order, chosen
from evaltools.datasets.yolo import COCO_IDS
from evaltools.errors import DataError, ImageError, UsageError
from evaltools.metrics.boxes import MIN_IOU
from evaltools.metrics.native_average_precision import overlap
from evaltools.preprocess import picture_header


class Truth(Struct, frozen=True):
    """The ground truth of the evaluated pictures: ``images[i]`` and ``native[i]`` are those of picture i.

    Pictures ``not_listed`` in the file, as a native run keeps them, have a number of their own and no objects.
    """

    path: Path
    kind: Literal["COCO annotations", "native proto"]
    sha256: str
    categories: tuple[Category, ...]
    images: tuple[AnnotatedImage, ...]
    native: tuple[NativePicture, ...]
    dropped_by_native: int
    missing: tuple[str, ...]
    unlisted_annotations: int = 0
    not_listed: frozenset[int] = frozenset()

    def listed_id(self, index: int) -> int | None:
        """The number of picture i in the file, None where the file does not name it."""
        return None if index in self.not_listed else self.images[index].id


def lying_on(
    boxes: npt.NDArray[np.float32], objects: NativePicture
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Whether each box overlaps an object (IoU 0.5 or more), and the category of the one that it overlaps most."""
    if not len(boxes) or not len(objects.boxes):
        return np.zeros(len(boxes), np.bool_), np.zeros(len(boxes), np.int64)
    overlaps = overlap(boxes, objects.boxes)
    return overlaps.max(axis=1) >= MIN_IOU, objects.class_ids[overlaps.argmax(axis=1)]


class EvaluatedPictures(Struct, frozen=True):
    """Pictures in the order of evaluation; ``unlisted`` are those that the ground truth does not name."""

    folder: ImageFolder
    paths: tuple[Path, ...]
    truth: Truth | None
    unlisted: tuple[str, ...]


class _Read(Struct, frozen=True):
    """The ground truth of a file, without the pictures that are not in the folder."""

    kind: Literal["COCO annotations", "native proto"]
    sha256: str
    images: AnnotatedImages
    native: NativeGroundTruth
    missing: tuple[str, ...]


def load_pictures(
    folder_path: Path,
    annotations: Path | None,
    proto: Path | None,
    labels: Sequence[str] = (),
    num_images: int = 0,
    native: bool = False,
    raw_size: tuple[int, int] = (1, 1),
    order: Order = "native",
    seed: int = 1,
) -> EvaluatedPictures:
    """List the pictures and look up their objects by file name; ``raw_size`` is width, height of ``.rgb8`` pictures.

    Pictures that the ground truth does not name are left out; with ``native`` they stay, without objects, as in the
    native tool. Raises :class:`DataError` where ground truth and folder have no picture in common.
    """
    if annotations is not None and proto is not None:
        raise UsageError("--ground_truth_annotations and --ground_truth_proto exclude each other; give one of them")
    folder = list_images(folder_path, "--ground_truth_images_path", every_file=native)
    by_name = {path.name: path for path in folder.paths}
    if annotations is not None:
        read = _read_annotations(annotations, by_name)
    elif proto is not None:
        read = _read_proto(proto, by_name, labels, raw_size)
    else:
        return EvaluatedPictures(folder, tuple(chosen(folder.paths, num_images, order, seed)), None, ())
    source = annotations or proto
    assert source is not None
    images = {Path(image.file_name).name: image for image in read.images.images}
    unlisted = tuple(name for name in by_name if name not in images)
    if not images:
        raise DataError(
            f"none of the {len(by_name)} pictures in {folder_path} (such as {folder.paths[0].name!r}) is in {source} "
            f"(such as {read.missing[0]!r}); take the annotations that belong to these pictures"
        )
    listed = folder.paths if native else [path for path in folder.paths if path.name in images]
    paths = tuple(chosen(listed, num_images, order, seed))
    truth = _truth_of(paths, source, read, images, raw_size)
    return EvaluatedPictures(folder, paths, truth, () if native else unlisted)


def _read_annotations(path: Path, by_name: Mapping[str, Path]) -> _Read:
    content = read_bytes(path, "--ground_truth_annotations", "a COCO instances JSON file")
    data = parse_instances(content, f"--ground_truth_annotations={path}")
    if not data.images:
        raise DataError(f"--ground_truth_annotations={path} lists no pictures; there is nothing to evaluate")
    names = [Path(image.file_name).name for image in data.images]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(
            f"--ground_truth_annotations={path} has several pictures named {repeated[0]!r}; pictures are found in one "
            "folder by their names, so each name must be there once"
        )
    present = tuple(image for image, name in zip(data.images, names, strict=True) if name in by_name)
    return _Read(
        kind="COCO annotations",
        sha256=hashlib.sha256(content).hexdigest(),
        images=AnnotatedImages(data.categories, present, data.unlisted_annotations),
        native=from_annotations(present).ground_truth,
        missing=tuple(name for name in names if name not in by_name),
    )


def _read_proto(path: Path, by_name: Mapping[str, Path], labels: Sequence[str], raw_size: tuple[int, int]) -> _Read:
    content = read_bytes(path, "--ground_truth_proto", "a binary ground_truth.pb")
    native = parse_ground_truth(content, f"--ground_truth_proto={path}")
    present = [picture for picture in native.pictures if picture.name in by_name]
    sizes = {picture.name: picture_size(by_name[picture.name], raw_size) for picture in present}
    return _Read(
        kind="native proto",
        sha256=hashlib.sha256(content).hexdigest(),
        images=to_annotations(native, sizes, tuple(labels)),
        native=NativeGroundTruth(tuple(present)),
        missing=tuple(picture.name for picture in native.pictures if picture.name not in by_name),
    )


def picture_size(path: Path, raw_size: tuple[int, int]) -> tuple[int, int]:
    """Width and height of a picture in pixels; ``raw_size`` for files without a header.

    So for those that cannot be read, which fail later, as an example.
    """
    try:
        header = picture_header(path)
    except ImageError:
        return raw_size
    return (header.width, header.height) if header else raw_size


def _truth_of(
    paths: Sequence[Path],
    source: Path,
    read: _Read,
    images: Mapping[str, AnnotatedImage],
    raw_size: tuple[int, int],
) -> Truth:
    native = {picture.name: picture for picture in read.native.pictures}
    next_id = max(image.id for image in images.values()) + 1
    chosen = []
    for path in paths:
        if path.name in images:
            chosen.append(images[path.name])
        else:
            chosen.append(AnnotatedImage(next_id, path.name, *picture_size(path, raw_size), ()))
            next_id += 1
    chosen_native = tuple(
        native.get(path.name) or from_annotations([image]).ground_truth.pictures[0]
        for path, image in zip(paths, chosen, strict=True)
    )
    return Truth(
        path=source,
        kind=read.kind,
        sha256=read.sha256,
        categories=read.images.categories,
        images=tuple(chosen),
        native=chosen_native,
        dropped_by_native=sum(len(image.annotations) for image in chosen)
        - sum(len(picture.class_ids) for picture in chosen_native),
        missing=read.missing,
        unlisted_annotations=read.images.unlisted_annotations,
        not_listed=frozenset(index for index, path in enumerate(paths) if path.name not in images),
    )


def dense_category_ids(truth: Truth | None, classes: Collection[int] = ()) -> tuple[int, ...]:
    """The ids of all categories, for classes that count them one by one.

    A native proto holds only those that occur; where all of them are COCO's, COCO's 80 are meant. So they are where a
    raw head has 80 ``classes``: annotations of a few pictures may list fewer.
    """
    ids = tuple(sorted(category.id for category in truth.categories)) if truth else ()
    if truth is None or not set(ids) <= set(COCO_IDS):
        return ids
    return COCO_IDS if truth.kind == "native proto" or len(COCO_IDS) in classes else ids
