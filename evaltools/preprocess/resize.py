"""Central crop and the bilinear resize of TensorFlow 1, bit for bit as the native tools compute them.

Both differ from what image libraries do: rounding is half away from zero, and the resize samples at ``i * scale``
(no half-pixel centres, no antialiasing) in float32 with a fixed order of operations.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]


class CropBox(NamedTuple):
    """A rectangle of an image in pixels; rows ``top:top + height``, columns ``left:left + width``."""

    top: int
    left: int
    height: int
    width: int


def central_crop_box(height: int, width: int, fraction: float) -> CropBox:
    """The square that the native classification tool cuts from the middle.

    The fraction is applied to both sides first, then the smaller side is taken. Source: image_preprocessing_stage,
    ``Crop``; the product is float32 and every rounding is half away from zero.

    >>> central_crop_box(375, 500, 0.875)
    CropBox(top=24, left=86, height=328, width=328)
    """
    cropped_height = _round_half_away(float(np.float32(fraction) * np.float32(height)))
    cropped_width = _round_half_away(float(np.float32(fraction) * np.float32(width)))
    side = min(cropped_height, cropped_width)
    top = _round_half_away((height - side) / 2.0)
    left = _round_half_away((width - side) / 2.0)
    return CropBox(top, left, side, side)


def _round_half_away(value: float) -> int:
    """Round a value >= 0 as C ``round`` does; Python's ``round`` goes to the even neighbour.

    >>> _round_half_away(2.5), round(2.5)
    (3, 2)
    """
    return int(value + 0.5)


def legacy_bilinear(image: npt.NDArray[np.uint8], height: int, width: int) -> Float32Array:
    """Resize ``(H, W, C)`` to ``(height, width, C)`` float32; values stay in 0..255.

    Formula (TFLite reference ``ResizeBilinear`` with ``align_corners=false``, ``half_pixel_centers=false``), all in
    float32: ``p = i * (in / out)``, ``lo = floor(p)``, ``hi = min(lo + 1, in - 1)``, ``d = p - lo`` and
    ``a[y0,x0](1-dy)(1-dx) + a[y1,x0]dy(1-dx) + a[y0,x1](1-dy)dx + a[y1,x1]dy dx``, products and sums from left to
    right. The factor of the rows is applied to whole rows first, which keeps that order and halves the work.

    >>> legacy_bilinear(np.array([[[0], [100]]], np.uint8), 1, 4)[0, :, 0].tolist()
    [0.0, 50.0, 100.0, 100.0]
    """
    rows = _axis_plan(image.shape[0], height)
    columns = _axis_plan(image.shape[1], width)
    upper = image[rows.low] * rows.low_weight[:, None, None]
    lower = image[rows.high] * rows.high_weight[:, None, None]
    left = columns.low_weight[None, :, None]
    right = columns.high_weight[None, :, None]

    resized: Float32Array = np.take(upper, columns.low, axis=1)
    resized *= left
    term = np.take(lower, columns.low, axis=1)
    term *= left
    resized += term
    np.take(upper, columns.high, axis=1, out=term, mode="clip")
    term *= right
    resized += term
    np.take(lower, columns.high, axis=1, out=term, mode="clip")
    term *= right
    resized += term
    return resized


class _AxisPlan(NamedTuple):
    """For each output position: the two source positions and their weights."""

    low: npt.NDArray[np.intp]
    high: npt.NDArray[np.intp]
    low_weight: Float32Array
    high_weight: Float32Array


@lru_cache(maxsize=256)
def _axis_plan(size_in: int, size_out: int) -> _AxisPlan:
    scale = np.float32(size_in) / np.float32(size_out)
    position = np.arange(size_out, dtype=np.float32) * scale
    low = np.maximum(np.floor(position), 0).astype(np.intp)
    high = np.minimum(np.ceil(position), size_in - 1).astype(np.intp)
    high_weight = position - low.astype(np.float32)
    return _AxisPlan(low, high, np.float32(1) - high_weight, high_weight)
