"""Rounds the constants of a model, as a delegate that computes in a lower precision does."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.model.flatbuffer import Table

UNIT_ROUNDOFF: Final = {"fp16": 2.0**-11, "bf16": 2.0**-8, "int8": 2.0**-8}
"""Largest relative error of one rounding to nearest, by precision; for int8, relative to the range."""
FLOAT32_ROUNDOFF: Final = 2.0**-22
"""What is disturbed for ``float32``: a few roundings, as sums in another order have them."""

Floats = npt.NDArray[np.floating[Any]]
_FLOAT_TYPES: Final = {0: "float32", 1: "float16"}
_BYTE_TYPES: Final = {3: "uint8", 9: "int8"}
_LARGEST: Final = {"fp16": 65504.0, "bf16": (2 - 2.0**-7) * 2.0**127}
_SEED: Final = 20240229
_MOVED_CONSTANTS: Final = 1 / 16
MOVED_INPUTS: Final = 1 / 4


def round_to(values: Floats, precision: str) -> npt.NDArray[np.float32]:
    """Round float32 or float16 values to ``fp16`` or ``bf16`` (to nearest, ties to even); the result is float32.

    ``float32`` keeps values. Those beyond the range of the precision become its largest, infinite ones too.

    >>> round_to(np.array([1.001, 1e6], np.float32), "fp16").tolist()
    [1.0009765625, 65504.0]
    >>> round_to(np.array([1.001], np.float32), "bf16").tolist()
    [1.0]
    """
    if precision == "float32":
        return values.astype(np.float32)
    single = np.clip(np.atleast_1d(values).astype(np.float32), -_LARGEST[precision], _LARGEST[precision])
    if precision == "fp16":
        return single.astype(np.float16).astype(np.float32).reshape(values.shape)
    bits = single.view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded = np.where(np.isnan(single), single, (nearest & np.uint32(0xFFFF0000)).view(np.float32))
    return rounded.reshape(values.shape)


def disturb(values: Floats, precision: str, random: np.random.Generator) -> npt.NDArray[np.float32]:
    """Round to a precision; for fp16 and bf16, then shake by up to half a unit roundoff, relative.

    The shaking stands for the roundings that constants and inputs do not show, those of intermediate results. For
    ``int8``, values are rounded to 255 steps over twice the largest magnitude.
    """
    if precision == "int8":
        return _to_8_bits(values, np.abs(values).max(initial=0.0))
    half = UNIT_ROUNDOFF.get(precision, FLOAT32_ROUNDOFF) / 2
    return round_to(values, precision) * (1 + random.uniform(-half, half, values.shape)).astype(np.float32)


def to_8_bits_of_range(values: Floats) -> npt.NDArray[np.float32]:
    """Round to 255 steps from the smallest value to the largest, 0 within: so XNNPACK does with what 8 bits multiply.

    The plain kernels round as ``int8`` of :func:`disturb` does, to which another such rounding adds nothing.

    >>> to_8_bits_of_range(np.array([0.0, 0.4, 255.0], np.float32)).tolist()
    [0.0, 0.0, 255.0]
    >>> to_8_bits_of_range(np.array([-127.5, 127.5], np.float32)).tolist()
    [-128.0, 128.0]
    """
    low, high = min(0.0, float(values.min(initial=0.0))), max(0.0, float(values.max(initial=0.0)))
    step = (high - low) / 255 or 1.0
    rounded: npt.NDArray[np.float32] = (np.rint(values / step) * step).astype(np.float32)
    return rounded


def shake(values: npt.NDArray[Any], share: float, random: np.random.Generator) -> npt.NDArray[Any]:
    """Move a share of whole numbers by one, up or down, within their type's range."""
    limits = np.iinfo(values.dtype)
    steps = np.where(random.random(values.shape) < 0.5, -1, 1) * (random.random(values.shape) < share)
    moved: npt.NDArray[Any] = np.clip(values.astype(np.int64) + steps, limits.min, limits.max).astype(values.dtype)
    return moved


def disturb_constants(content: bytes, precision: str) -> tuple[bytes, int]:
    """The same model with its constants disturbed, and how many values that were (for int8, only 8 bit ones).

    The same model is always disturbed in the same way. ``float32``, ``fp16`` and ``bf16`` disturb float constants.
    ``int8`` rounds float constants of two and more dimensions to 8 bits per channel, and moves a sixteenth of the 8 bit
    constants by one: the mean square of that is what rounding results differently does.
    """
    model = Table.root(memoryview(content))
    buffers = model.tables(4)
    edited = bytearray(content)
    random = np.random.default_rng(_SEED)
    done: set[int] = set()
    count = 0
    for tensor in [tensor for subgraph in model.tables(2) for tensor in subgraph.tables(0)]:
        index, kind = tensor.integer(2, "I"), tensor.integer(1, "b")
        dtype = _FLOAT_TYPES.get(kind) or (_BYTE_TYPES.get(kind) if precision == "int8" else None)
        if dtype is None or index in done or index >= len(buffers) or tensor.table(6) is not None:
            continue
        done.add(index)
        raw = buffers[index].numbers(0, "uint8")
        shape = tuple(tensor.numbers(0, "int32").tolist())
        if len(raw) == 0 or len(raw) != np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64)):
            continue
        constants = np.frombuffer(raw.tobytes(), dtype).reshape(shape)
        start = buffers[index].vector_start(0)
        edited[start : start + len(raw)] = _disturbed(constants, precision, random).tobytes()
        count += constants.size if kind in _BYTE_TYPES or precision != "int8" else 0
    return bytes(edited), count


def _disturbed(constants: npt.NDArray[Any], precision: str, random: np.random.Generator) -> npt.NDArray[Any]:
    """A constant's values after disturbing, in the same type and shape."""
    if constants.dtype.kind != "f":
        return shake(constants, _MOVED_CONSTANTS, random)
    if precision == "int8":
        return _per_channel(constants).astype(constants.dtype)
    if constants.dtype == np.float16 and precision == "fp16":
        return _one_step(constants, random)
    shaken = disturb(constants, precision, random)
    return round_to(shaken, "fp16").astype(np.float16) if constants.dtype == np.float16 else shaken


def _one_step(constants: Floats, random: np.random.Generator) -> Floats:
    """Constants that are fp16 already, which rounding would not change: some move to a neighbouring number."""
    direction = np.where(random.random(constants.shape) < 0.5, -np.inf, np.inf).astype(constants.dtype)
    moved = random.random(constants.shape) < _MOVED_CONSTANTS
    stepped: Floats = np.where(moved, np.nextafter(constants, direction), constants)
    return stepped


def _per_channel(constants: Floats) -> Floats:
    """Round to 8 bits per output channel: the first axis, or the last for the weights of a depthwise convolution."""
    if constants.ndim < 2:
        return constants
    channel = 3 if constants.ndim == 4 and constants.shape[0] == 1 else 0
    others = tuple(axis for axis in range(constants.ndim) if axis != channel)
    return _to_8_bits(constants, np.abs(constants).max(axis=others, keepdims=True, initial=0.0))


def _to_8_bits(values: Floats, largest: Any) -> npt.NDArray[np.float32]:
    step = np.where(np.asarray(largest) > 0, np.asarray(largest, np.float64) / 127, 1.0)
    rounded: npt.NDArray[np.float32] = (np.rint(values / step) * step).astype(np.float32)
    return rounded
