"""A folder of pictures in the order of the native tools."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final, overload

from msgspec import Struct

from evaltools.errors import DataError
from evaltools.lazy_sequence import LazySequence
from evaltools.preprocess import IMAGE_EXTENSIONS


def packed_names(names: Sequence[bytes]) -> Sequence[str]:
    """The names of files as text, in a quarter of the memory: their bytes are kept, one after the other.

    >>> list(packed_names([b"1.jpg", b"2.jpg", b""]))
    ['1.jpg', '2.jpg', '']
    """
    packed, ends = b"".join(names), array("q", accumulate(map(len, names), initial=0))
    return LazySequence(range(len(ends) - 1), lambda place: os.fsdecode(packed[ends[place] : ends[place + 1]]))


class FolderPaths(Sequence[Path]):
    """Paths of files in one folder, each made of its name when it is asked for: there may be a million.

    >>> FolderPaths(Path("val"), ("1.jpg", "2.jpg"))[1]
    PosixPath('val/2.jpg')
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder: Final = folder
        self.names: Final = names

    @overload
    def __getitem__(self, place: int) -> Path: ...
    @overload
    def __getitem__(self, place: slice) -> FolderPaths: ...
    def __getitem__(self, place: int | slice) -> Path | FolderPaths:
        if isinstance(place, slice):
            return FolderPaths(self.folder, self.names[place])
        return self.folder / self.names[place]

    def __len__(self) -> int:
        return len(self.names)

    def chosen(self, places: Iterable[int]) -> FolderPaths:
        """The paths at some places."""
        return FolderPaths(self.folder, LazySequence(array("q", places), self.names.__getitem__))


class ImageFolder(Struct, frozen=True):
    """Pictures in bytewise order of their names, and the names of other files that were left out."""

    folder: Path
    paths: FolderPaths
    skipped: tuple[str, ...]


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
    return ImageFolder(folder, FolderPaths(folder, packed_names(chosen)), tuple(skipped))


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
