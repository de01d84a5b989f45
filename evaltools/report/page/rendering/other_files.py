"""Files that a page is about and that lie elsewhere: pictures, made small, and traces, linked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from evaltools.report.page.rendering.thumbnails import Thumbnail, thumbnail
from evaltools.result.section import Gallery, Linked

MOST_PICTURES: Final = 50
"""On one page."""


class Pictures:
    """Makes small pictures, as many as one page may have; ``images`` is where they lie now, None: as in the results."""

    def __init__(self, images: Path | None) -> None:
        self._images = images
        self._left = MOST_PICTURES
        self._is_told = False

    def of(self, gallery: Gallery, folders: Sequence[Path]) -> list[Thumbnail]:
        """The first pictures of a gallery that the page still has room for."""
        shown = gallery.pictures[: self._left]
        self._left -= len(shown)
        return [
            thumbnail(picture, [self._images] if self._images else [folder / picture.folder for folder in folders])
            for picture in shown
        ]

    def missing(self, shown: Sequence[Thumbnail]) -> str:
        """Where pictures were looked for in vain and what to do, once on the page."""
        gone = [small.picture.folder for small in shown if not small.is_here]
        if not gone or self._is_told:
            return ""
        self._is_told = True
        where = self._images or gone[0] or "the folder of the command"
        return (
            f"Pictures are left out that were not found in {where}; evaltools report RESULT.json --images=FOLDER "
            "--output=FILE.html takes them from where they lie now."
        )


class Found(NamedTuple):
    """A file beside the page: the ``address`` of a link, empty for none, and its ``size`` in words."""

    address: str
    size: str


def linked(file: Linked, folders: Sequence[Path], page_folder: Path | None) -> Found:
    """Where a file lies, as seen from the page."""
    for path in (folder.absolute() / file.name for folder in folders):
        try:
            size = path.stat().st_size
        except (OSError, ValueError):
            continue
        if path.is_file():
            address = "" if page_folder is None else f"./{quote(Path(os.path.relpath(path, page_folder)).as_posix())}"
            return Found(address, f"{size / 1e6:.2f} MB")
    return Found("", "not found any more")
