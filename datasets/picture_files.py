"""Pictures that annotations speak of: safe names, sizes from the files' headers, numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

from evaltools.datasets.object_annotations import AnnotatedImages
from evaltools.errors import DataError, ImageError
from evaltools.preprocess import PictureHeader, picture_header

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class AnnotatedFolder(Struct, frozen=True):
    """Annotated pictures, the file of each (none at all where no folder was given), and remarks for the user."""

    data: AnnotatedImages
    pictures: tuple[Path, ...]
    remarks: tuple[str, ...] = ()


def inner_path(name: str, where: str) -> PurePosixPath:
    r"""A picture's name found in annotations, as a path that cannot leave its folder.

    ``\`` counts as ``/``. ``where`` names the file in messages. Raises :class:`DataError`.

    >>> inner_path(r"val\1.jpg", "instances.json").as_posix()
    'val/1.jpg'
    >>> inner_path("../1.jpg", "instances.json")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    evaltools.errors.DataError: instances.json names the picture '../1.jpg'; ...
    """
    text = name.replace("\\", "/")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    leaves = text.startswith("/") or ".." in parts or _DRIVE.match(text)
    if leaves or not parts or text.endswith("/") or not is_plain_text(name):
        raise DataError(
            f"{where} names the picture {name!r}; a name is that of a file, perhaps in a subfolder, such as 'a.jpg' or "
            "'val/a.jpg', without '..' and not from the root. Correct it there"
        )
    return PurePosixPath(*parts)


def is_plain_text(text: str) -> bool:
    r"""Whether a name can be written to every output: UTF-8, no zero characters, no line breaks.

    >>> is_plain_text("zoë.jpg"), is_plain_text("a\0.jpg"), is_plain_text("a\udcff.jpg")
    (True, False, False)
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\0" not in text and len(text.splitlines()) <= 1


def read_header(path: Path, flag: str) -> PictureHeader:
    """What a picture's header states; raises :class:`DataError` where there is none. ``flag`` is that of the folder."""
    try:
        header = picture_header(path)
    except ImageError as error:
        reason = str(error)
        what = f"{path} {reason}" if reason.startswith("cannot") else f"the size of {path} cannot be read: it {reason}"
        raise DataError(f"{flag}: {what}. Replace the picture, or remove it and its labels") from error
    if header is None:
        raise DataError(
            f"{flag}: {path} is a raw .rgb8 picture, which does not state its size; convert a folder of JPEG or PNG "
            "pictures"
        )
    return header


def rotation_remarks(headers: Sequence[PictureHeader], paths: Sequence[Path]) -> tuple[str, ...]:
    """A remark where pictures carry an EXIF rotation, which the native tools and evaltools ignore."""
    rotated = [path.name for header, path in zip(headers, paths, strict=True) if header.is_rotated]
    if not rotated:
        return ()
    return (
        f"{len(rotated)} pictures, such as {rotated[0]}, carry an EXIF rotation, which no evaluation here applies; "
        "boxes drawn on the turned picture do not fit. Turn the pixels themselves then, and convert again",
    )


def image_ids(names: Sequence[str]) -> list[int]:
    """Numbers for pictures: those that their names are, else 1, 2, 3, ... in order.

    >>> image_ids(["000000000139.jpg", "7.png"]), image_ids(["2007_000027.jpg", "2.jpg"])
    ([139, 7], [1, 2])
    """
    stems = [PurePosixPath(name).stem for name in names]
    if all(_NUMBER.fullmatch(stem) for stem in stems):
        numbers = [int(stem) for stem in stems]
        if len(set(numbers)) == len(numbers):
            return numbers
    return list(range(1, len(names) + 1))


def finite_number(text: str) -> float | None:
    """The number that a text is, None where it is none; ``1_0``, which Python reads, is none.

    >>> finite_number("12.5"), finite_number("1_0"), finite_number("nan")
    (12.5, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None
