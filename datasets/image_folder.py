"""A folder of pictures in the order of the native tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, overload

from evaltools.errors import DataError
from evaltools.preprocess import IMAGE_EXTENSIONS


class FolderPaths(Sequence[Path]):
    """Paths of files in one folder, of which only the names are kept, each once in memory: there may be a million.

    >>> FolderPaths(Path("val"), ("1.jpg", "2.jpg"))[1]
    PosixPath('val/2.jpg')
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder: Final = folder
        self.names: Final = tuple(map(sys.intern, names))

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
        return FolderPaths(self.folder, [self.names[place] for place in places])


@dataclass(frozen=True)
class ImageFolder:
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
        names = sorted((entry.name for entry in os.scandir(folder) if not _is_folder(entry)), key=os.fsencode)
    except FileNotFoundError:
        raise DataError(f"{flag}={folder}: no such folder") from None
    except OSError as error:
        raise DataError(f"{flag}={folder} cannot be listed: {error.strerror}") from error
    chosen = [name for name in names if every_file or is_picture(name)]
    if not chosen:
        found = f"{len(names)} other files, such as {names[0]!r}" if names else "no files"
        endings = " ".join(sorted(IMAGE_EXTENSIONS))
        raise DataError(f"{flag}={folder} has no pictures ({found}); pictures end in {endings}")
    kept = set(chosen)
    return ImageFolder(folder, FolderPaths(folder, chosen), tuple(name for name in names if name not in kept))


def printable_name(path: Path) -> str:
    """The name of a picture as text, unique in its folder; bytes that are no UTF-8 are escaped.

    >>> printable_name(Path("val/1.jpg"))
    '1.jpg'
    """
    text = os.fsencode(path.name).decode("utf-8", errors="backslashreplace")
    return path.name if text == path.name else text


def _is_folder(entry: os.DirEntry[str]) -> bool:
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
