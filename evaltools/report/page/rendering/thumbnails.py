"""Small pictures inside a page."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from PIL import Image, ImageOps

from evaltools.result.section import Frame, Picture
from evaltools.result.small_pictures import Panel

_SIDE: Final = 240
_QUALITY: Final = 72
_LARGEST_PANEL: Final = 256
"""In pixels on a side."""
_MOST_PIXELS: Final = 90_000_000
"""A picture that claims more is not opened."""


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

    ``panels`` stand beside it or over it, those that can be shown.
    """

    picture: Picture
    address: str
    width: int
    height: int
    missing: str
    frames: list[Placed]
    panels: list[Drawn]
    is_here: bool = True

    @property
    def over(self) -> list[Drawn]:
        """The panels that are laid over the picture."""
        return [drawn for drawn in self.panels if drawn.panel.is_over]

    @property
    def beside(self) -> list[Drawn]:
        """The others."""
        return [drawn for drawn in self.panels if not drawn.panel.is_over]

    @property
    def told(self) -> str:
        """What there is to see, for those who do not see it."""
        picture = self.picture
        labels = (placed.frame.label for placed in self.frames)
        return "; ".join([f"{picture.name}: {picture.effect}", *picture.lines, *labels])


def thumbnail(picture: Picture, folders: Sequence[Path]) -> Thumbnail:
    """Make a picture small, that of the first of the ``folders`` that has it."""
    frames = [placed for frame in picture.frames if (placed := _placed(frame)) is not None]
    panels = [drawn for panel in picture.panels if (drawn := _drawn(panel)) is not None]
    width, height = next(((drawn.width, drawn.height) for drawn in panels), (4, 3))
    file = next((folder / picture.name for folder in folders if _is_file(folder / picture.name)), None)
    if file is None:
        return Thumbnail(picture, "", width, height, "", frames, panels, is_here=False)
    try:
        with Image.open(file) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                return Thumbnail(picture, "", width, height, "the picture is too large to be shown", frames, panels)
            opened.draft("RGB", (2 * _SIDE, 2 * _SIDE))
            small = ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return Thumbnail(picture, "", width, height, "the file is no picture that can be read", frames, panels)
    small.thumbnail((_SIDE, _SIDE))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    address = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return Thumbnail(picture, address, small.width, small.height, "", frames, panels)


def _drawn(panel: Panel) -> Drawn | None:
    """A panel, None for one that is no small PNG."""
    try:
        with Image.open(io.BytesIO(panel.png), formats=["PNG"]) as opened:
            width, height = opened.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    if max(width, height) > _LARGEST_PANEL or len(panel.png) > _LARGEST_PANEL**2:
        return None
    return Drawn(panel, f"data:image/png;base64,{base64.b64encode(panel.png).decode()}", width, height)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
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
