"""Small pictures for the page."""

from __future__ import annotations

import io
from typing import Final

from PIL import Image

from evaltools.result.small_pictures import Panel

_SIDE: Final = 128


def panel(name: str, image: Image.Image, is_over: bool = False) -> Panel:
    """An image as a panel, as large as it is."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return Panel(name, buffer.getvalue(), is_over)


def small_size(width: int, height: int, side: int = _SIDE) -> tuple[int, int]:
    """Width and height in the same proportion, neither above ``side``; a smaller picture keeps its own.

    >>> small_size(512, 256), small_size(20, 10)
    ((128, 64), (20, 10))
    """
    scale = min(1.0, side / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))
