"""Where a picture lies on a canvas of another shape, and back."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Floats = npt.NDArray[np.float32]


class Placement(Struct, frozen=True):
    """The rectangle of a canvas (``canvas_height`` x ``canvas_width``) that the picture fills, in pixels."""

    top: int
    left: int
    height: int
    width: int
    canvas_height: int
    canvas_width: int

    def to_picture(self, boxes: Floats) -> Floats:
        """Boxes ``(N, 4)`` top, left, bottom, right in shares of the canvas -> in shares of the picture.

        >>> Placement(25, 0, 50, 100, 100, 100).to_picture(np.array([[0.25, 0, 0.75, 1]], np.float32)).tolist()
        [[0.0, 0.0, 1.0, 1.0]]
        """
        canvas = np.array([self.canvas_height, self.canvas_width] * 2, np.float64)
        corner = np.array([self.top, self.left] * 2, np.float64)
        size = np.array([self.height, self.width] * 2, np.float64)
        return ((boxes * canvas - corner) / size).astype(np.float32)


class Letterbox(Struct, frozen=True):
    """Keep the aspect ratio, and fill the rest of the canvas with the value ``fill``, 0..255.

    ``anchor`` says where the picture lies: ``center`` (YOLO) or ``top_left`` (TensorFlow Object Detection API).
    """

    anchor: Literal["center", "top_left"] = "center"
    fill: int = 114

    def place(self, height: int, width: int, canvas_height: int, canvas_width: int) -> Placement:
        """Where a picture of ``height`` x ``width`` lies; sizes are rounded to the nearest pixel, at least 1.

        >>> Letterbox().place(300, 600, 320, 320)
        Placement(top=80, left=0, height=160, width=320, canvas_height=320, canvas_width=320)
        """
        ratio = min(canvas_height / height, canvas_width / width)
        inner_height = min(max(round(height * ratio), 1), canvas_height)
        inner_width = min(max(round(width * ratio), 1), canvas_width)
        top, left = (canvas_height - inner_height) // 2, (canvas_width - inner_width) // 2
        if self.anchor == "top_left":
            top = left = 0
        return Placement(top, left, inner_height, inner_width, canvas_height, canvas_width)
