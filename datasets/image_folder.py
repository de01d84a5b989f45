"""A folder of pictures in the order of the native tools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.errors import DataError, ImageError
from evaltools.lazy_sequence import LazySequence
from evaltools.preprocess import IMAGE_EXTENSIONS, picture_header

_LOOKED_AT: Final = 64
"""So many pictures show whether a folder has some with an alpha channel."""
_WITH_ALPHA: Final = (".png",)


class ImageFolder(Struct, frozen=True):
    """Pictures in bytewise order of their names, and the names of other files that were left out."""

    folder: Path
    paths: Sequence[Path]
    skipped: tuple[str, ...]

    def remarks(self) -> list[str]:
        """What a user should know of it."""
        found = alpha_remarks(self.paths)
        if self.skipped:
            found.append(f"{len(self.skipped)} files that are not pictures were left out, such as {self.skipped[0]!r}")
        return found


def alpha_remarks(paths: Iterable[Path]) -> list[str]:
    """A remark where some of the first pictures have an alpha channel, which no evaluation takes."""
    first = list(islice(paths, _LOOKED_AT))
    found = [path.name for path in first if _has_alpha(path)]
    if not found:
        return []
    return [
        f"{len(found)} of the first {len(first)} pictures, such as {found[0]!r}, have an alpha channel, which is "
        "dropped: transparent places have the colour that the file holds there"
    ]


def _has_alpha(path: Path) -> bool:
    """Whether a picture says how transparent it is; what cannot be read is reported where it is to be evaluated."""
    if path.suffix.lower() not in _WITH_ALPHA:
        return False
    try:
        header = picture_header(path)
    except ImageError:
        return False
    return header is not None and header.has_alpha


def list_images(folder: Path, flag: str, every_file: bool = False) -> ImageFolder:
    """List a folder, not its subfolders.

    Hidden files and files without a picture's ending are left out, unless ``every_file`` (what the native tools do).
    ``flag`` names the option in messages. Raises :class:`DataError` for a folder that is missing or has no picture.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(os.fsencode(folder)) if not _is_folder(entry))
    except FileNotFoundError:
        raise DataError(f"{flag}={folder}: no such folder") from None
    except OSError as error:
        raise DataError(f"{flag}={folder} cannot be listed: {error.strerror}") from error
    chosen = [name for name in names if every_file or is_picture(os.fsdecode(name))]
    if not chosen:
        found = f"{len(names)} other files, such as {os.fsdecode(names[0])!r}" if names else "no files"
        endings = " ".join(sorted(IMAGE_EXTENSIONS))
        raise DataError(f"{flag}={folder} has no pictures ({found}); pictures end in {endings}")
    skipped = [] if len(chosen) == len(names) else [name for name in map(os.fsdecode, names) if not is_picture(name)]
    paths = LazySequence(range(len(chosen)), partial(_path, folder, list(map(os.fsdecode, chosen))))
    return ImageFolder(folder, paths, tuple(skipped))


def _path(folder: Path, names: Sequence[str], place: int) -> Path:
    return folder / names[place]


def printable_name(name: str) -> str:
    r"""The name of a picture as text, unique in its folder; bytes that are no UTF-8 are escaped.

    >>> printable_name("1.jpg"), printable_name("\udcff.jpg")
    ('1.jpg', '\\xff.jpg')
    """
    return name if name.isascii() else os.fsencode(name).decode("utf-8", errors="backslashreplace")


def _is_folder(entry: os.DirEntry[bytes]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def is_picture(name: str) -> bool:
    """Whether an evaluation takes a file of this name for a picture.

    >>> is_picture("a.JPG"), is_picture(".a.jpg"), is_picture("a.gif")
    (True, False, False)
    """
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in IMAGE_EXTENSIONS
