"""Files that a page is about and that lie elsewhere: pictures, made small, and traces, linked."""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from PIL import Image

from evaltools.errors import ImageError
from evaltools.preprocess.decode import preview
from evaltools.report.words.numbers import megabytes
from evaltools.result.section import Frame, Gallery, Linked, Panel, Picture

MOST_PICTURES: Final = 96
"""On one page."""
_SIDE: Final = 320
_QUALITY: Final = 72
_LARGEST_PANEL: Final = 256
"""In pixels on a side."""


class Pictures:
    """Makes small pictures, as many as one page may have; ``images`` is where they lie now, None: as in the results."""

    def __init__(self, images: Path | None) -> None:
        self._images = images
        self._left = MOST_PICTURES
        self._is_told = False
        self._galleries = 0
        self._ids: set[str] = set()

    def of(self, gallery: Gallery, folders: Sequence[Path]) -> list[Thumbnail]:
        """The first pictures of a gallery that the page still has room for."""
        shown = gallery.pictures[: self._left]
        self._left -= len(shown)
        self._galleries += 1
        found = []
        for picture in shown:
            known = f"example={picture.name}"
            place = known if known not in self._ids else f"{known}&in={self._galleries}"
            self._ids.add(place)
            where = [self._images] if self._images else [folder / picture.folder for folder in folders]
            found.append(thumbnail(picture, where)._replace(id=place))
        return found

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
            return Found(address, f"{megabytes(size)} MB")
    return Found("", "not found any more")


class Placed(NamedTuple):
    """A box in hundredths of its picture's width and height."""

    frame: Frame
    x: float
    y: float
    width: float
    height: float


class Drawn(NamedTuple):
    """A panel as a data address, with its size in pixels."""

    panel: Panel
    address: str
    width: int
    height: int


class Thumbnail(NamedTuple):
    """A small JPEG as a data address with its size in pixels; ``missing`` says why a file that is there has none.

    ``panels`` stand beside it or over it, those that can be shown. ``id`` is its place on the page, by which the
    address of the page leads to it.
    """

    picture: Picture
    address: str
    width: int
    height: int
    missing: str
    frames: list[Placed]
    panels: list[Drawn]
    is_here: bool = True
    id: str = ""

    @property
    def link(self) -> str:
        """What stands behind the page's address for this example."""
        return f"#{quote(self.id, safe='=&/')}"

    @property
    def over(self) -> list[Drawn]:
        """The panels that are laid over the picture."""
        return [drawn for drawn in self.panels if drawn.panel.is_over]

    @property
    def beside(self) -> list[Drawn]:
        """The others."""
        return [drawn for drawn in self.panels if not drawn.panel.is_over]

    @property
    def text(self) -> str:
        """What there is to see, for those who do not see it."""
        picture = self.picture
        labels = (placed.frame.label for placed in self.frames)
        return "; ".join([f"{picture.name}: {picture.effect}", *picture.lines, *labels])


def thumbnail(picture: Picture, folders: Sequence[Path]) -> Thumbnail:
    """Make a picture small, that of the first of the ``folders`` that has it."""
    frames = [placed for frame in picture.frames if (placed := _placed(frame)) is not None]
    panels = [drawn for panel in picture.panels if (drawn := _drawn(panel)) is not None]
    width, height = next(((drawn.width, drawn.height) for drawn in panels), (4, 3))
    file = next((folder / picture.name for folder in folders if _is_file_in(folder, picture.name)), None)
    if file is None:
        return Thumbnail(picture, "", width, height, "", frames, panels, is_here=False)
    try:
        small = preview(file, _SIDE)
    except ImageError:
        return Thumbnail(picture, "", width, height, "the file is not a picture that can be read", frames, panels)
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    address = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return Thumbnail(picture, address, small.width, small.height, "", frames, panels)


def _drawn(panel: Panel) -> Drawn | None:
    """A panel, None for one that is not a small PNG."""
    try:
        with Image.open(io.BytesIO(panel.png), formats=["PNG"]) as opened:
            width, height = opened.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    if max(width, height) > _LARGEST_PANEL or len(panel.png) > _LARGEST_PANEL**2:
        return None
    return Drawn(panel, f"data:image/png;base64,{base64.b64encode(panel.png).decode()}", width, height)


def _is_file_in(folder: Path, name: str) -> bool:
    """Whether it is a file, named from that folder on: a result may come from a stranger, and name any picture."""
    try:
        path = Path(name)
        return not path.is_absolute() and ".." not in path.parts and (folder / path).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _placed(frame: Frame) -> Placed | None:
    """Where a box lies, None for one that is empty, outside, or no number."""
    if not all(map(math.isfinite, frame.box)):
        return None
    top, left, bottom, right = (min(max(100 * share, 0.0), 100.0) for share in frame.box)
    if bottom <= top or right <= left:
        return None
    return Placed(frame, round(left, 2), round(top, 2), round(right - left, 2), round(bottom - top, 2))
