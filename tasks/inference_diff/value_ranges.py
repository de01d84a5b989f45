"""The ranges of random inputs and of pictures: the values that the model is made for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.model import ModelFile, TensorInfo
from evaltools.model.graph import real_range
from evaltools.model.metadata import ValueRange
from evaltools.preprocess import Normalization
from evaltools.tasks.framework.image_input import picture_layout

Origin = Literal["flag", "native", "table", "metadata", "quantization", "operators", "probe", "type", "default"]
"""Who states a range.

flag: the user. native: the native tool has none other. table: the rows that can be selected. metadata: the model's.
quantization: its scale and zero point, or those of a QUANTIZE behind it. operators: what the graph does first. probe:
outputs overflowed with the default. type: all numbers of the type. default: nothing states any.
"""
PICTURE_CHANNELS: Final = (1, 3)
_FULL_RANGE: Final = ("uint8", "int8", "int16", "uint16")
_ORDINARY_WHOLE: Final = (0, 127)
_SANE: Final = 1e6


class DrawnRange(Struct, frozen=True):
    """Lowest and highest value; ``whole``: whole numbers are drawn, both ends among them. ``why`` is for people."""

    low: float
    high: float
    origin: Origin
    why: str = ""
    whole: bool = False

    def __str__(self) -> str:
        return f"Gaussian in {self.low:g}..{self.high:g}{f', {self.why}' if self.why else ''}"


def default_range(model: ModelFile, tensor: TensorInfo) -> DrawnRange:
    """The range that the model states or shows for an input of numbers.

    Else -1..1, the type's range, or small whole numbers.
    """
    if tensor.rows is not None:
        return DrawnRange(0, tensor.rows - 1, "table", f"rows of a table of {tensor.rows}", True)
    if tensor.dtype.startswith(("float", "complex")):
        return _of_floats(model, tensor)
    return _of_whole_numbers(tensor)


def native_range(tensor: TensorInfo) -> DrawnRange:
    """What the native tool draws, whatever the model says."""
    if np.dtype(tensor.dtype).kind == "f":
        return DrawnRange(-1, 1, "native", "as the native tool")
    limits = np.iinfo(tensor.dtype)
    return DrawnRange(float(limits.min), float(limits.max), "native", "as the native tool")


def narrower(found: DrawnRange, dtype: str) -> DrawnRange | None:
    """The range to try if outputs overflow: 0..1 for floats whose range is only the default; None for others."""
    if found.origin != "default" or not dtype.startswith("float"):
        return None
    return DrawnRange(0, 1, "probe", f"because outputs overflow with {found.low:g}..{found.high:g}")


def are_sane(outputs: Sequence[npt.NDArray[np.generic]]) -> bool:
    """Whether float outputs are finite, and none is beyond a million.

    No model makes a million of inputs around 1, unless they are outside of what it is made for and grow from layer to
    layer.

    >>> are_sane([np.array([3.0])]), are_sane([np.array([np.nan])]), are_sane([np.array([1e30])])
    (True, False, False)
    """
    floats = [values for values in outputs if values.dtype.kind in "fc"]
    return all(bool((np.abs(values) <= _SANE).all()) for values in floats)


def _of_floats(model: ModelFile, tensor: TensorInfo) -> DrawnRange:
    stated = tensor.stated_range
    if is_normalised(model, tensor) and model.normalization is not None:
        stated = ValueRange(*_pixels(model.normalization.mean, model.normalization.std))
    if stated is not None:
        return DrawnRange(stated.low, stated.high, "metadata", "stated in the model's metadata")
    shown = tensor.range_by_graph
    if shown is not None and shown.operators == ("QUANTIZE",):
        return DrawnRange(shown.low, shown.high, "quantization", "all that the model's QUANTIZE takes")
    if shown is not None:
        return DrawnRange(shown.low, shown.high, "operators", _normalised_by(shown))
    return DrawnRange(-1, 1, "default")


def is_normalised(model: ModelFile, tensor: TensorInfo) -> bool:
    """Whether the metadata state a normalisation for this input, the first, of real pixels."""
    is_first = tensor.index == model.inputs[0].index
    return model.normalization is not None and is_first and is_picture(tensor) and tensor.dtype.startswith("float")


def range_of_pixels(tensor: TensorInfo, normalization: Normalization, model: ModelFile) -> DrawnRange:
    """The range that pixels 0..255 get by a normalisation that the user states; whole numbers keep their own range."""
    if not tensor.dtype.startswith("float"):
        return default_range(model, tensor)
    low, high = _pixels(normalization.mean, normalization.std)
    return DrawnRange(low, high, "flag", "by --normalization")


def _pixels(mean: Sequence[float], std: Sequence[float]) -> tuple[float, float]:
    ends = np.array([(pixel - np.array(mean)) / np.array(std) for pixel in (0, 255)])
    return float(ends.min()), float(ends.max())


def _of_whole_numbers(tensor: TensorInfo) -> DrawnRange:
    limits = np.iinfo(tensor.dtype)
    stated = tensor.stated_range
    if stated is not None and limits.min <= stated.low <= stated.high - 1 <= limits.max:
        whole = (stated.low, stated.high) != (limits.min, limits.max)
        return DrawnRange(stated.low, stated.high, "metadata", "stated in the model's metadata", whole)
    if tensor.dtype in _FULL_RANGE:
        low, high = float(limits.min), float(limits.max)
        if tensor.scale and tensor.is_quantized:
            real = real_range(tensor.dtype, tensor.scale, tensor.zero_point or 0)
            return DrawnRange(low, high, "quantization", f"which stand for {real.low:.4g}..{real.high:.4g}")
        return DrawnRange(low, high, "type")
    shown = tensor.range_by_graph
    if shown is not None and limits.min <= shown.low == 0 and shown.high == 255:
        return DrawnRange(0, 255, "operators", _normalised_by(shown), True)
    return DrawnRange(*_ORDINARY_WHOLE, "default", "", True)


def _normalised_by(shown: ValueRange) -> str:
    return f"which the model normalises itself ({', '.join(shown.operators)})"


def is_picture(tensor: TensorInfo) -> bool:
    """Whether an input has the shape of one picture, in colour or grey.

    >>> is_picture(TensorInfo(0, "x", "float32", (1, 8, 8, 3), (1, 8, 8, 3), None, None))
    True
    """
    return picture_layout(tensor.shape, channels=PICTURE_CHANNELS) is not None


def given_ranges(model: ModelFile, tensors: Sequence[TensorInfo], texts: Sequence[str]) -> dict[int, DrawnRange]:
    """The ranges of ``--input_range`` by position; raises :class:`UsageError` for what does not fit."""
    found: dict[int, DrawnRange] = {}
    for text in texts:
        name, low, high = _split_range(text)
        position = 0 if not name and len(tensors) == 1 else model.named("input", name, tensors)
        tensor = tensors[position]
        if position in found:
            raise UsageError(f"--input_range: {name!r} is given twice; keep one")
        if tensor.dtype in ("string", "bool"):
            raise UsageError(f"--input_range={text}: the input {tensor} holds no numbers; leave the flag out")
        _require_in_type(text, tensor, low, high)
        whole = not tensor.dtype.startswith(("float", "complex"))
        found[position] = DrawnRange(low, high, "flag", "as given", whole)
    return found


def _require_in_type(text: str, tensor: TensorInfo, low: float, high: float) -> None:
    if tensor.dtype.startswith(("float", "complex")):
        largest = float(np.finfo(tensor.dtype).max)
        if max(abs(low), abs(high)) > largest / 2:
            raise UsageError(f"--input_range={text}: beyond {tensor.dtype}; use limits within +-{largest / 2:g}")
        return
    limits = np.iinfo(tensor.dtype)
    if low != int(low) or high != int(high) or low < float(limits.min) or high > float(limits.max):
        raise UsageError(f"--input_range={text}: the input {tensor} needs whole numbers in {limits.min}..{limits.max}")


def _split_range(text: str) -> tuple[str, float, float]:
    parts = text.rsplit(":", 2)
    name = parts[0] if len(parts) == 3 else ""
    try:
        low, high = (float(number) for number in parts[-2:])
        if np.isfinite([low, high]).all() and low < high and len(parts) >= 2:
            return name, low, high
    except ValueError:
        pass
    raise UsageError(f"--input_range={text}: use NAME:LOW:HIGH with LOW below HIGH, as in ids:0:99")
