"""Central crop and the bilinear resize of TensorFlow 1, bit for bit as the native tools compute them.

Both differ from what image libraries do: rounding is half away from zero, and the resize samples at ``i * scale``
(no half-pixel centres, no antialiasing) in float32 with a fixed order of operations.
"""

from __future__ import annotations

import importlib
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

_MODEL: Final = Path(__file__).with_name("resize_bilinear.tflite")
SIZE_IN_MODEL: Final = (16_909_060, 84_281_096)
"""Height and width that stand in the file for those of the output."""
_UNKNOWN: Final = (0, 0)
Float32Array = npt.NDArray[np.float32]
_ROWS_PER_BLOCK: Final = 32
_RGB: Final = 3
_SIZES_TRIED: Final = ((331, 329), (97, 160))
_uses_kernel: Final[ContextVar[bool]] = ContextVar("uses_kernel", default=False)


class KernelResize:
    """Resizes RGB pictures of any size to one size by TensorFlow Lite's own reference kernel, as the native tools do.

    The kernel runs in an interpreter of ai-edge-litert, on a model of one ``RESIZE_BILINEAR``
    (``resize_bilinear.tflite``). It is used where it was seen to give the same bits as :func:`legacy_bilinear`.

    Raises :class:`ImportError` where ai-edge-litert is missing, :class:`ValueError` or :class:`RuntimeError` where it
    cannot run the model.
    """

    def __init__(self, height: int, width: int) -> None:
        runtime: Any = importlib.import_module("ai_edge_litert.interpreter")
        content = _MODEL.read_bytes().replace(struct.pack("<2i", *SIZE_IN_MODEL), struct.pack("<2i", height, width))
        self._interpreter = runtime.Interpreter(
            model_content=content, experimental_op_resolver_type=runtime.OpResolverType.BUILTIN_REF, num_threads=1
        )
        self._interpreter.allocate_tensors()
        self._input = self._interpreter.get_input_details()[0]["index"]
        self._output = self._interpreter.get_output_details()[0]["index"]
        self._size_in = _UNKNOWN
        self._one_at_a_time = threading.Lock()

    def __call__(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Resize ``(H, W, 3)`` uint8 to ``(height, width, 3)`` float32; threads take turns.

        Raises :class:`RuntimeError` where there is no memory for the picture; others can be resized afterwards.
        """
        with self._one_at_a_time:
            if image.shape[:2] != self._size_in:
                self._size_in = _UNKNOWN
                self._interpreter.resize_tensor_input(self._input, (1, *image.shape))
                self._interpreter.allocate_tensors()
                self._size_in = (image.shape[0], image.shape[1])
            self._interpreter.tensor(self._input)()[0] = image
            self._interpreter.invoke()
            resized: npt.NDArray[np.float32] = self._interpreter.get_tensor(self._output)[0]
            return resized


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
    right.

    >>> legacy_bilinear(np.array([[[0], [100]]], np.uint8), 1, 4)[0, :, 0].tolist()
    [0.0, 50.0, 100.0, 100.0]
    """
    kernel = _kernel(height, width) if _uses_kernel.get() and image.shape[2] == _RGB else None
    if kernel is not None:
        with suppress(RuntimeError):  # a large picture, of which it needs a copy
            return kernel(image)
    return _bilinear_by_numpy(image, height, width)


@contextmanager
def resizing_by_kernel() -> Iterator[None]:
    """A context in which :func:`legacy_bilinear` uses the kernel, if that gives the same bits as NumPy.

    The kernel is twice as fast. It loads native code, so use it only in
    processes that do nothing but prepare pictures.
    """
    before = _uses_kernel.set(True)
    try:
        yield
    finally:
        _uses_kernel.reset(before)


@lru_cache(maxsize=4)
def _kernel(height: int, width: int) -> KernelResize | None:
    """The kernel that resizes to this size.

    None where it cannot be loaded, or gave other bits than NumPy in a trial.
    """
    try:
        kernel = KernelResize(height, width)
        for rows, columns in _SIZES_TRIED:
            image = np.random.default_rng(rows).integers(0, 256, (rows, columns, _RGB), np.uint8)
            if not np.array_equal(kernel(image), _bilinear_by_numpy(image, height, width)):
                return None
    except (ImportError, OSError, RuntimeError, ValueError):
        return None
    return kernel


def _bilinear_by_numpy(image: npt.NDArray[np.uint8], height: int, width: int) -> Float32Array:
    """Resize with NumPy. It picks columns first, while values are bytes, and does rows in blocks that fit the cache."""
    rows, columns = _axis_plan(image.shape[0], height), _axis_plan(image.shape[1], width)
    channels = image.shape[2]
    flat = np.ascontiguousarray(image).reshape(image.shape[0], -1)
    left, right = (flat.take(_spread_over(index, channels), axis=1) for index in (columns.low, columns.high))
    left_weight, right_weight = (np.repeat(weight, channels) for weight in (columns.low_weight, columns.high_weight))
    resized = np.empty((height, width * channels), np.float32)
    scratch = np.empty((_ROWS_PER_BLOCK, width * channels), np.float32)
    for first in range(0, height, _ROWS_PER_BLOCK):
        block = slice(first, first + _ROWS_PER_BLOCK)
        total = resized[block]
        term = scratch[: len(total)]
        upper_weight, lower_weight = rows.low_weight[block, None], rows.high_weight[block, None]
        np.multiply(left[rows.low[block]], upper_weight, out=total)
        total *= left_weight
        for pixels, row_weight, column_weight in (
            (left[rows.high[block]], lower_weight, left_weight),
            (right[rows.low[block]], upper_weight, right_weight),
            (right[rows.high[block]], lower_weight, right_weight),
        ):
            np.multiply(pixels, row_weight, out=term)
            term *= column_weight
            total += term
    return resized.reshape(height, width, channels)


def _spread_over(columns: npt.NDArray[np.intp], channels: int) -> npt.NDArray[np.intp]:
    """Column numbers of pixels -> column numbers of values, where a row is ``(W * C,)``."""
    values: npt.NDArray[np.intp] = (columns[:, None] * channels + np.arange(channels)).ravel()
    return values


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
