"""Which annotated pictures are taken, by the rules of ``preprocess_coco_minival.py``."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evaltools.datasets.files import numbers_by_line, read_bytes
from evaltools.datasets.object_annotations import AnnotatedImages
from evaltools.errors import DataError


class Selection(Struct, frozen=True):
    """The pictures taken, how many were left out for having no objects, and remarks for the user."""

    data: AnnotatedImages
    left_out_empty: int
    remarks: tuple[str, ...]


def read_allowlist(path: Path, flag: str) -> frozenset[int]:
    """Read picture ids, one per line; blank lines are skipped. Raises :class:`DataError`."""
    expected = "give one picture id per line"
    ids = numbers_by_line(read_bytes(path, flag, "a text file"), f"{flag}={path}", expected)
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
