"""The pictures of a detection evaluation, and the objects in them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from evaltools.datasets.coco_instances import parse_instances
from evaltools.datasets.files import read_bytes
from evaltools.datasets.image_folder import ImageFolder, list_images
from evaltools.datasets.native_ground_truth import (
    NativePicture,
    from_annotations,
    parse_ground_truth,
    to_annotations,
)
from evaltools.datasets.object_annotations import AnnotatedImage, AnnotatedImages, Category
from evaltools.datasets.order import Order, chosen
from evaltools.datasets.picture_files import image_ids
from evaltools.datasets.yolo import COCO_IDS
from evaltools.errors import DataError, ImageError, UsageError
from evaltools.metrics.boxes import MIN_IOU
from evaltools.metrics.native_average_precision import overlap
from evaltools.preprocess import picture_header
from evaltools.tasks.coco.result import GroundTruthUsed


class Truth(Struct, frozen=True):
    """The ground truth of the evaluated pictures: ``images[i]`` and ``native[i]`` are those of picture i.

    ``used`` is what a result says of it. ``missing`` pictures are in the file, but not in the folder.

    Pictures that the file does not list, as a native run keeps them, have a number of their own and no objects.
    """

    used: GroundTruthUsed
    categories: tuple[Category, ...]
    images: tuple[AnnotatedImage, ...]
    native: tuple[NativePicture, ...]
    missing: tuple[str, ...]
    unlisted_annotations: int = 0

    def of(self, ids: Collection[int]) -> Truth:
        """The same with the objects of these categories alone."""
        images = [
            replace(image, annotations=tuple(each for each in image.annotations if each.category_id in ids))
            for image in self.images
        ]
        native = []
        for picture in self.native:
            are_of = np.isin(picture.class_ids, [*ids])
            native.append(replace(picture, class_ids=picture.class_ids[are_of], boxes=picture.boxes[are_of]))
        categories = tuple(category for category in self.categories if category.id in ids)
        return replace(self, categories=categories, images=tuple(images), native=tuple(native))


def lying_on(
    boxes: npt.NDArray[np.float32], objects: NativePicture
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Whether each box overlaps an object (IoU 0.5 or more), and the category of the one that it overlaps most."""
    if not len(boxes) or not len(objects.boxes):
        return np.zeros(len(boxes), np.bool_), np.zeros(len(boxes), np.int64)
    overlaps = overlap(boxes, objects.boxes)
    return overlaps.max(axis=1) >= MIN_IOU, objects.class_ids[overlaps.argmax(axis=1)]


class EvaluatedPictures(Struct, frozen=True):
    """Pictures in the order of evaluation; ``unlisted`` are those that the ground truth does not name.

    ``ids`` are their numbers, None for one that the ground truth does not name.
    """

    folder: ImageFolder
    paths: tuple[Path, ...]
    ids: tuple[int | None, ...]
    truth: Truth | None
    unlisted: tuple[str, ...]


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
    source = annotations or proto
    if source is None:
        paths = tuple(chosen(folder.paths, num_images, order, seed))
        return EvaluatedPictures(folder, paths, tuple(image_ids([path.name for path in paths])), None, ())
    in_proto: dict[str, NativePicture] = {}
    if annotations is not None:
        content = read_bytes(annotations, "--ground_truth_annotations", "a COCO instances JSON file")
        data = parse_instances(content, f"--ground_truth_annotations={annotations}")
        names = _unique_names(data, f"--ground_truth_annotations={annotations}")
    else:
        content = read_bytes(source, "--ground_truth_proto", "a binary ground_truth.pb")
        native_truth = parse_ground_truth(content, f"--ground_truth_proto={source}")
        in_proto = {picture.name: picture for picture in native_truth.pictures}
        names = list(in_proto)
        sizes = {name: picture_size(by_name[name], raw_size) for name in names if name in by_name}
        data = to_annotations(native_truth, sizes, tuple(labels))
    images = {Path(image.file_name).name: image for image in data.images}
    images = {name: image for name, image in images.items() if name in by_name}
    missing = tuple(name for name in names if name not in by_name)
    if not images:
        raise DataError(
            f"none of the {len(by_name)} pictures in {folder_path} (such as {folder.paths[0].name!r}) is in {source} "
            f"(such as {missing[0]!r}); take the annotations that belong to these pictures"
        )
    paths = tuple(chosen([path for path in folder.paths if native or path.name in images], num_images, order, seed))
    ids = tuple(images[path.name].id if path.name in images else None for path in paths)
    unlisted = tuple(name for name in by_name if name not in images)
    next_id = max(image.id for image in images.values()) + 1
    for number, path in enumerate((path for path in paths if path.name not in images), next_id):
        images[path.name] = AnnotatedImage(number, path.name, *picture_size(path, raw_size), ())
    evaluated = tuple(images[path.name] for path in paths)
    converted = from_annotations(evaluated)
    objects = [each for image in evaluated for each in image.annotations]
    used = GroundTruthUsed(
        file=str(source),
        kind="native proto" if proto else "COCO annotations",
        sha256=hashlib.sha256(content).hexdigest(),
        categories=len(data.categories),
        objects=len(objects),
        crowd_regions=sum(each.is_crowd for each in objects),
        pictures_without_objects=sum(not image.annotations for image in evaluated),
        dropped_by_native=0 if proto else converted.dropped,
        missing_pictures=len(missing),
    )
    truth = Truth(
        used=used,
        categories=data.categories,
        images=evaluated,
        native=tuple(in_proto.get(each.name, each) for each in converted.ground_truth.pictures),
        missing=missing,
        unlisted_annotations=data.unlisted_annotations,
    )
    return EvaluatedPictures(folder, paths, ids, truth, () if native else unlisted)


def _unique_names(data: AnnotatedImages, where: str) -> list[str]:
    """The names of the pictures, without their folders; raises :class:`DataError` for none, and for one twice."""
    names = [Path(image.file_name).name for image in data.images]
    if not names:
        raise DataError(f"{where} lists no pictures; there is nothing to evaluate")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(
            f"{where} has several pictures named {repeated[0]!r}; pictures are found in one "
            "folder by their names, so each name must be there once"
        )
    return names


def picture_size(path: Path, raw_size: tuple[int, int]) -> tuple[int, int]:
    """Width and height of a picture in pixels; ``raw_size`` for files without a header.

    So for those that cannot be read, which fail later, as an example.
    """
    try:
        header = picture_header(path)
    except ImageError:
        return raw_size
    return (header.width, header.height) if header else raw_size


def dense_category_ids(truth: Truth | None, classes: Collection[int] = ()) -> tuple[int, ...]:
    """The ids of all categories, for classes that count them one by one.

    A native proto holds only those that occur; where all of them are COCO's, COCO's 80 are meant. So they are where a
    raw head has 80 ``classes``: annotations of a few pictures may list fewer.
    """
    ids = tuple(sorted(category.id for category in truth.categories)) if truth else ()
    if truth is None or not set(ids) <= set(COCO_IDS):
        return ids
    return COCO_IDS if truth.used.kind == "native proto" or len(COCO_IDS) in classes else ids
