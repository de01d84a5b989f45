"""Small pictures inside a page."""

from __future__ import annotations

import base64
import io
import math
from pathlib import Path
from typing import Final, NamedTuple

from PIL import Image, ImageOps

from evaltools.result.section import Frame, Picture

MOST_PICTURES: Final = 50
"""On one page."""
_SIDE: Final = 240
_QUALITY: Final = 72
_MOST_PIXELS: Final = 90_000_000
"""A picture that claims more is not opened."""


class Placed(NamedTuple):
    """A box in hundredths of its picture's width and height."""

    frame: Frame
    x: float
    y: float
    width: float
    height: float


class Thumbnail(NamedTuple):
    """A small JPEG as a data address with its size in pixels; ``missing`` says why there is none."""

    picture: Picture
    address: str
    width: int
    height: int
    missing: str
    frames: list[Placed]

    @property
    def told(self) -> str:
        """What there is to see, for those who do not see it."""
        picture = self.picture
        labels = (placed.frame.label for placed in self.frames)
        return "; ".join([f"{picture.name}: {picture.effect}", *picture.lines, *labels])


def thumbnail(picture: Picture, images: Path | None) -> Thumbnail:
    """Make a picture small. ``images`` is the folder where it lies now, None for that in the result."""
    frames = [placed for frame in picture.frames if (placed := _placed(frame)) is not None]
    try:
        file = (images if images is not None else Path(picture.folder)) / picture.name
        with Image.open(file) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                return Thumbnail(picture, "", 4, 3, "the picture is too large to be shown", frames)
            opened.draft("RGB", (2 * _SIDE, 2 * _SIDE))
            small = ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return Thumbnail(picture, "", 4, 3, "the picture is not here; --images=FOLDER says where it is", frames)
    small.thumbnail((_SIDE, _SIDE))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    address = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return Thumbnail(picture, address, small.width, small.height, "", frames)


def _placed(frame: Frame) -> Placed | None:
    """Where a box lies, None for one that is empty, outside, or no number."""
    if not all(map(math.isfinite, frame.box)):
        return None
    top, left, bottom, right = (min(max(100 * share, 0.0), 100.0) for share in frame.box)
    if bottom <= top or right <= left:
        return None
    return Placed(frame, round(left, 2), round(top, 2), round(right - left, 2), round(bottom - top, 2))
