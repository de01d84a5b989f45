"""RGB bytes -> the model's input tensor: where the picture lies in it, and what happens to its values."""

from __future__ import annotations

import re
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import ImageError, UsageError
from evaltools.preprocess.resize import CropBox, central_crop_box, legacy_bilinear

Floats = npt.NDArray[np.float32]
_SMALLEST_STD: Final = 1e-6


class Normalization(Struct, frozen=True):
    """``real = (pixel - mean) / std`` per channel, pixels in 0..255.

    ``mean`` and ``std`` hold one value for all channels or three, in RGB order. The arithmetic is the native one:
    float32, multiplied by the float32 of ``1 / std``.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    source: str = "given"

    def __post_init__(self) -> None:
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, 3):
                raise UsageError(f"normalization {name} has {len(values)} values; give one, or three in RGB order")
        largest = float(np.finfo(np.float32).max)
        are_numbers = all(abs(value) <= largest for value in (*self.mean, *self.std))
        if not are_numbers or min(map(abs, self.std)) < _SMALLEST_STD:
            raise UsageError(
                f"normalization needs numbers that float32 has and a std of at least {_SMALLEST_STD}, got {self}"
            )

    def apply(self, pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Normalise ``(..., 3)`` float32 pixels; returns a new float32 array."""
        real = pixels - np.array(self.mean, np.float32)
        real *= (1.0 / np.array(self.std, np.float64)).astype(np.float32)
        return real

    def __str__(self) -> str:
        return f"mean={_numbers(self.mean)};std={_numbers(self.std)}"


def _numbers(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)


NATIVE: Final = Normalization((127.5,), (127.5,), "native")
"""What the native tool hard-wires for float inputs: 0..255 -> -1..1."""

_NAMED: Final = {
    "native": NATIVE,
    "unit": Normalization((0.0,), (255.0,), "unit"),
    "none": Normalization((0.0,), (1.0,), "none"),
    "imagenet": Normalization((123.675, 116.28, 103.53), (58.395, 57.12, 57.375), "imagenet"),
}
NORMALIZATION_NAMES: Final = tuple(_NAMED)

_MEAN_STD: Final = re.compile(r"mean=(?P<mean>[^;]+);std=(?P<std>[^;]+)")


def parse_normalization(text: str) -> Normalization:
    """Read a ``--normalization`` value: a name, or ``mean=M[,M,M];std=S[,S,S]`` on the 0..255 scale.

    Names: ``native`` (-1..1), ``unit`` (0..1), ``none`` (0..255), ``imagenet`` (per-channel mean and std).

    >>> parse_normalization("unit").std
    (255.0,)
    >>> str(parse_normalization("mean=1,2,3;std=4"))
    'mean=1,2,3;std=4'
    """
    if text in _NAMED:
        return _NAMED[text]
    match = _MEAN_STD.fullmatch(text.replace(" ", ""))
    try:
        if match is not None:
            mean = tuple(float(value) for value in match["mean"].split(","))
            return Normalization(mean, tuple(float(value) for value in match["std"].split(",")))
    except ValueError:
        pass
    message = (
        f"normalization {text!r} is not understood; use {', '.join(_NAMED)}, or numbers on the 0..255 scale "
        'as in "mean=127.5;std=127.5" or "mean=123.7,116.3,103.5;std=58.4,57.1,57.4"'
    )
    raise UsageError(message)


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


class Quantization(Struct, frozen=True):
    """Per-tensor quantisation: ``real = (quantised - zero_point) * scale``."""

    scale: float
    zero_point: int


class ImageToTensor(Struct, frozen=True):
    """Crop, resize, normalise and convert, in the native tool's order and arithmetic.

    ``dtype`` is the input tensor's: float32, float16, uint8, int8 or int16. ``crop_fraction`` 0.875 is what the native
    classification tool uses, ``None`` means no crop (detection).

    ``normalization`` ``None`` is the native rule, which depends only on the type: float -> ``(x - 127.5) * (1 /
    127.5)``; uint8 -> ``x``; int8 -> ``x - 128``, truncated toward zero *after* the subtraction, so that values below
    128 come out rounded up. float16 is the float rule, then cast. Any other case (a stated normalisation on an integer
    input, or int16) goes through real values: ``round(real / scale) + zero_point``, which needs ``quantization``.

    ``blue_first`` gives the channels as blue, green, red, with means and deviations in RGB order all the same.
    ``channels_first`` gives a plane for each channel, ``(1, 3, height, width)``. ``damaged`` is for whoever decodes:
    pictures that the native tool takes though they are damaged count.

    With a ``letterbox`` the whole picture keeps its aspect ratio, and ``crop_fraction`` does not count;
    :meth:`placement` says where it lies.

    >>> to_tensor = ImageToTensor(2, 2, np.dtype("uint8"), crop_fraction=None)
    >>> to_tensor(np.full((4, 4, 3), 9, np.uint8)).shape
    (1, 2, 2, 3)
    """

    height: int
    width: int
    dtype: np.dtype[np.generic]
    normalization: Normalization | None = None
    quantization: Quantization | None = None
    crop_fraction: float | None = 0.875
    letterbox: Letterbox | None = None
    blue_first: bool = False
    channels_first: bool = False
    damaged: bool = False

    def __call__(self, image: npt.NDArray[np.uint8], already_sized: bool = False) -> npt.NDArray[np.generic]:
        """Turn ``(H, W, 3)`` uint8 into the input, ``(1, height, width, 3)`` of ``dtype`` unless channels go first.

        ``already_sized`` skips crop and resize, for raw pictures that come at the model's size.
        Raises :class:`ImageError` for a picture too small to crop.
        """
        pixels = image.astype(np.float32) if already_sized else self._sized(image)
        converted = self._convert(pixels)
        ordered = converted[..., ::-1] if self.blue_first else converted
        return np.ascontiguousarray(ordered.transpose(2, 0, 1) if self.channels_first else ordered)[None]

    def placement(self, height: int, width: int) -> Placement | None:
        """Where a picture of this size lies in the input, None where it fills it."""
        return self.letterbox.place(height, width, self.height, self.width) if self.letterbox else None

    def value_range(self) -> tuple[float, float]:
        """The least and the largest number that black and white pixels become, as the input has them.

        >>> ImageToTensor(1, 1, np.dtype("float32")).value_range()
        (-1.0, 1.0)
        """
        ends = np.concatenate([self._convert(np.full((1, 1, 3), level, np.float32)) for level in (0, 255)])
        return float(ends.min()), float(ends.max())

    def _sized(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        if self.letterbox is not None:
            return self._letterboxed(image, self.letterbox)
        box = CropBox(0, 0, image.shape[0], image.shape[1])
        if self.crop_fraction is not None:
            box = central_crop_box(image.shape[0], image.shape[1], self.crop_fraction)
        if box.height <= 0 or box.width <= 0:
            raise ImageError(f"is too small to crop: {image.shape[1]}x{image.shape[0]} pixels")
        cropped = image[box.top : box.top + box.height, box.left : box.left + box.width]
        return legacy_bilinear(cropped, self.height, self.width)

    def _letterboxed(self, image: npt.NDArray[np.uint8], letterbox: Letterbox) -> npt.NDArray[np.float32]:
        place = letterbox.place(image.shape[0], image.shape[1], self.height, self.width)
        canvas = np.full((self.height, self.width, image.shape[2]), letterbox.fill, np.float32)
        resized = legacy_bilinear(image, place.height, place.width)
        canvas[place.top : place.top + place.height, place.left : place.left + place.width] = resized
        return canvas

    def _convert(self, pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.generic]:
        if self.dtype.kind == "f":
            real = (self.normalization or NATIVE).apply(pixels)
            return real.astype(self.dtype, copy=False)
        if self.normalization is None and self.dtype == np.uint8:
            return pixels.astype(np.uint8)
        if self.normalization is None and self.dtype == np.int8:
            return (pixels - np.float32(128)).astype(np.int8)
        return self._quantize((self.normalization or NATIVE).apply(pixels))

    def _quantize(self, real: npt.NDArray[np.float32]) -> npt.NDArray[np.generic]:
        if self.quantization is None:
            raise ValueError(f"an input of type {self.dtype} needs the tensor's quantization")
        limits = np.iinfo(self.dtype.name)
        quantized = np.rint(real / np.float32(self.quantization.scale)) + self.quantization.zero_point
        clipped: npt.NDArray[np.generic] = np.clip(quantized, limits.min, limits.max).astype(self.dtype)
        return clipped
