"""How a picture becomes the input of a model."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import numpy as np
from msgspec import Struct

from evaltools.engine.steps import DECODE, READ, RESIZE
from evaltools.errors import ModelError, UsageError
from evaltools.model import ModelFile, TensorInfo
from evaltools.parameter import Parameter
from evaltools.preprocess import (
    ImageToTensor,
    Letterbox,
    Normalization,
    Placement,
    Quantization,
    decode_picture,
    parse_normalization,
    read_picture,
)
from evaltools.runtime.session import Array

CLASSIFIER_CROP: Final = 0.875
ACCEPTED_TYPES: Final = ("float32", "float16", "uint8", "int8", "int16")
NATIVE_TYPES: Final = ("float32", "uint8", "int8")
_MOST_INPUT_VALUES: Final = 1 << 29
Layout = Literal["nhwc", "nchw"]
"""Whether the channels of a pixel lie together, or each channel is a plane of its own."""
StatedLayout = Literal["auto", "nhwc", "nchw"]
SHAPES: Final = {
    "auto": "[1,height,width,3] or [1,3,height,width]",
    "nhwc": "[1,height,width,3]",
    "nchw": "[1,3,height,width]",
}
"""The inputs that a stated layout fits."""
_CHANNELS_AT: Final[dict[Layout, int]] = {"nhwc": 3, "nchw": 1}


def picture_layout(
    shape: Sequence[int], stated: StatedLayout = "auto", channels: Sequence[int] = (3,)
) -> Layout | None:
    """How an input of this shape has the channels of one picture; None where it has none, or not as stated.

    Where both readings fit, it is NHWC unless stated.

    >>> picture_layout((1, 3, 64, 64)), picture_layout((1, 3, 64, 3)), picture_layout((1, 3, 64, 3), "nchw")
    ('nchw', 'nhwc', 'nchw')
    >>> picture_layout((1, 64, 64, 3), "nchw"), picture_layout((1, 64))
    (None, None)
    """
    if len(shape) != 4 or shape[0] != 1:
        return None
    fitting = (layout for layout, place in _CHANNELS_AT.items() if shape[place] in channels)
    return next((layout for layout in fitting if stated in ("auto", layout)), None)


def picture_size(shape: Sequence[int], layout: Layout) -> tuple[int, int]:
    """Height and width of an input with this layout."""
    return (shape[1], shape[2]) if layout == "nhwc" else (shape[2], shape[3])


def channel_axis(layout: Layout) -> int:
    """The axis of an input with this layout along which its channels lie."""
    return _CHANNELS_AT[layout]


def picture_channels(shape: Sequence[int], layout: Layout) -> int:
    """The number of channels of an input with this layout."""
    return shape[channel_axis(layout)]


def has_free_size(tensor: TensorInfo) -> bool:
    """Whether the model leaves height or width of a picture open, so that the input stands for one pixel."""
    return -1 in tensor.shape_signature[1:]


def sizes_to_state(tensor: TensorInfo) -> str:
    """A shape to state for a picture whose height and width nobody states, so that it is 1 x 1; empty for others.

    >>> sizes_to_state(TensorInfo(0, "x", "float32", (1, 3, 1, 1), (-1, 3, -1, -1), None, None))
    '1,3,224,224'
    """
    signature = (1, *tensor.shape_signature[1:])
    layout = picture_layout(signature, channels=(1, 3))
    if layout is None or picture_size(signature, layout) != (-1, -1) or picture_size(tensor.shape, layout) != (1, 1):
        return ""
    return ",".join("224" if size == -1 else str(size) for size in signature)


def check_picture_input(model: ModelFile, allowed: Sequence[str], stated: StatedLayout = "auto") -> None:
    """Refuse a first input that is no single RGB picture of a fixed size; raises :class:`ModelError`."""
    tensor = model.inputs[0]
    shape = tensor.shape
    if picture_layout(shape, stated) is None or has_free_size(tensor):
        other = picture_layout(shape)
        hint = "" if stated == "auto" or other is None else f"; the model's fits --input_layout={other}"
        raise ModelError(
            f"{model.path}: the input {tensor} is no single RGB picture; expected {SHAPES[stated]} of a fixed "
            f"size{hint}"
        )
    if math.prod(shape) >= _MOST_INPUT_VALUES:
        raise ModelError(f"{model.path}: the input {tensor} is larger than any picture that is decoded (2^29 values)")
    if tensor.dtype not in allowed:
        message = f"{model.path}: the input {tensor} has the type {tensor.dtype}; accepted are {', '.join(allowed)}"
        raise ModelError(message)


def input_transform(
    model: ModelFile,
    tensor: TensorInfo,
    normalization: str = "auto",
    native: bool = False,
    crop_fraction: float | None = CLASSIFIER_CROP,
    letterbox: Letterbox | None = None,
    layout: StatedLayout = "auto",
    channel_order: str = "rgb",
) -> ImageToTensor:
    """The transform for an input that :func:`check_picture_input` takes; texts are those of the command line.

    Raises :class:`ModelError` for an integer input that needs real values and has no quantisation.
    """
    quantization = None
    if tensor.scale is not None and tensor.zero_point is not None:
        quantization = Quantization(tensor.scale, tensor.zero_point)
    chosen = _normalization(model, tensor, normalization, native)
    is_integer = not tensor.dtype.startswith("float")
    if is_integer and quantization is None and (chosen is not None or tensor.dtype == "int16"):
        message = f"{model.path}: the input {tensor} has no per-tensor quantisation, so real values cannot be converted"
        raise ModelError(message)
    found = picture_layout(tensor.shape, layout) or "nhwc"
    return ImageToTensor(
        *picture_size(tensor.shape, found),
        np.dtype(tensor.dtype),
        chosen,
        quantization,
        crop_fraction,
        letterbox,
        blue_first=channel_order == "bgr",
        channels_first=found == "nchw",
        damaged=native,
    )


def require_native(*stated: tuple[Parameter, str]) -> None:
    """Raise :class:`UsageError` for a stated value that the native tool does not know."""
    for parameter, value in stated:
        reason = parameter.not_native
        if reason and value not in ("auto", *reason.harmless):
            raise UsageError(f"--{parameter.name}={value}: {reason.reason}; leave out one of it and --compat")


class PictureFrame(Struct, frozen=True):
    """A picture's own size in pixels, and its place in a letterbox, if it is in one."""

    width: int
    height: int
    placement: Placement | None


class LoadedPicture(Struct, frozen=True):
    """A picture as the model's input, and how long its reading, decoding and resizing took, in microseconds."""

    values: Array
    frame: PictureFrame
    steps: tuple[tuple[str, int], ...]


def load_picture(path: Path, to_tensor: ImageToTensor) -> LoadedPicture:
    """Decode a picture and make the input of it; raises :class:`~evaltools.errors.ImageError`.

    Raw ``.rgb8`` pictures have the model's size and are not resized.
    """
    start = time.perf_counter_ns()
    content = read_picture(path)
    was_read = time.perf_counter_ns()
    image = decode_picture(content, path.suffix, to_tensor.height, to_tensor.width, path, to_tensor.damaged)
    decoded = time.perf_counter_ns()
    is_sized = path.suffix.lower() == ".rgb8"
    values = to_tensor(image, already_sized=is_sized)
    resized = time.perf_counter_ns()
    steps = ((READ, was_read - start), (DECODE, decoded - was_read), (RESIZE, resized - decoded))
    height, width = image.shape[:2]
    frame = PictureFrame(width, height, None if is_sized else to_tensor.placement(height, width))
    found = tuple((stage, nanoseconds // 1000) for stage, nanoseconds in steps)
    if _now.steps is not None:
        _now.steps.extend(found)
    return LoadedPicture(values, frame, found)


class _Now(threading.local):
    """The steps that this thread takes to load pictures, None where nobody asks."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int]] | None = None


_now: Final = _Now()


@contextmanager
def steps_of_pictures() -> Iterator[list[tuple[str, int]]]:
    """A context that yields what :func:`load_picture` takes in it, in this thread: steps and microseconds, in order."""
    steps: list[tuple[str, int]] = []
    _now.steps = steps
    try:
        yield steps
    finally:
        _now.steps = None


def describe_normalization(to_tensor: ImageToTensor) -> str:
    """What input values were made of pixels, and who said so."""
    normalization = to_tensor.normalization
    return "native" if normalization is None else f"{normalization} ({normalization.source})"


def channel_order_of(to_tensor: ImageToTensor) -> Literal["rgb", "bgr"]:
    """The order of the channels as flags and results write it."""
    return "bgr" if to_tensor.blue_first else "rgb"


def _normalization(model: ModelFile, tensor: TensorInfo, text: str, native: bool) -> Normalization | None:
    if text != "auto":
        return parse_normalization(text)
    stated = model.normalization
    if stated is None or native or not tensor.dtype.startswith("float") or tensor.index != model.inputs[0].index:
        return None
    return Normalization(stated.mean, stated.std, "model metadata")
