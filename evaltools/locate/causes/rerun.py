"""What the CPU gives where an operator is done in another way: resized or padded otherwise, or permuted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.locate.causes.flattened import RESHAPE_FIRST, SLICE
from evaltools.locate.causes.view import View, quantization
from evaltools.result.locate import Cause
from evaltools.runtime.session import Array

_RESIZES: Final = ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
_SAME, _VALID = 0, 1
_POOLS: Final = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
_CONVOLUTIONS: Final = ("CONV_2D", "DEPTHWISE_CONV_2D")
_MOST_PERMUTED: Final = 1 << 20
_ALL_ORDERS: Final = 1 << 17


def other_resize(view: View) -> Cause | None:
    """``given`` is what the CPU gives with other ``half_pixel_centers`` or ``align_corners``."""
    if view.operator not in _RESIZES or not view.repeats or not view.wrong.any():
        return None
    own = (bool(view.options.get("alignCorners")), bool(view.options.get("halfPixelCenters")))
    for corners, centers in ((False, False), (False, True), (True, False)):
        if (corners, centers) == own:
            continue
        other = view.run_with({"alignCorners": corners, "halfPixelCenters": centers})
        if other is not None and view.explained_by(other, 1.0 if view.is_whole else 0.0):
            return Cause(
                "resized from other places",
                f"all {view.given.size} values are what the CPU gives with {_settings(corners, centers)}; the model "
                f"says {_settings(*own)}",
                "train or convert with the setting that the delegate has, or keep the operator on the CPU",
                "https://github.com/tensorflow/tensorflow/issues/33691",
            )
    return None


def other_padding(view: View) -> Cause | None:
    """``given`` is what the CPU gives where SAME padding is put on other sides, or of other values."""
    if view.operator not in _POOLS + _CONVOLUTIONS or view.options.get("padding") != _SAME:
        return None
    place = view.fed_to(0) if view.node is not None else None
    if place is None or view.case.inputs[place].ndim != 4 or not view.repeats or not view.wrong.any():
        return None
    values, tensor = view.case.inputs[place], view.operand_tensors[0]
    window = _window(view)
    assert tensor is not None
    assert view.node is not None
    if window is None:
        return None
    totals = [_padding(size, *window[axis]) for axis, size in enumerate(values.shape[1:3])]
    zero = quantization(tensor)[1]
    for words, padded in _padded(values, totals, zero, view.operator):
        inputs = [padded if index == place else each for index, each in enumerate(view.case.inputs)]
        other = view.run_with({"padding": _VALID}, inputs, {tensor.index: padded.shape})
        if other is not None and view.explained_by(other, 1.0 if view.is_whole else 0.0):
            return Cause(
                "padded otherwise",
                f"all {view.given.size} values are what the CPU gives for an input {words}; {view.share_wrong} of them "
                "are wrong",
                "put a PAD before the operator and let it be VALID, so that nothing is left to the delegate",
            )
    return None


def stride_ignored(view: View) -> Cause | None:
    """``given`` is the beginning of what the CPU gives without strides.

    So does the WebGPU accelerator of ai-edge-litert 2.3.0 where a CONV_2D of int8 has a window of 1x1.
    """
    if view.operator not in _POOLS + _CONVOLUTIONS or not view.wrong.any() or not view.repeats:
        return None
    strides = (int(view.options.get("strideH", 1)), int(view.options.get("strideW", 1)))
    everywhere = view.run_with({"strideH": 1, "strideW": 1}) if max(strides) > 1 else None
    if everywhere is None or view.given.ndim != 4:
        return None
    beginning = everywhere[:, : view.given.shape[1], : view.given.shape[2]]
    if not view.explained_by(beginning, 1.0 if view.is_whole else 0.0):
        return None
    return Cause(
        "the stride was ignored",
        f"all {view.given.size} values are the first of those that the CPU gives with stride 1; the model says "
        f"{strides[0]}x{strides[1]}",
        "take the pixels before the operator, by STRIDED_SLICE, and let it have stride 1; or keep it on the CPU",
    )


def other_layout(view: View) -> Cause | None:
    """``given`` is what the CPU gives for an input in another order, as NHWC read as NCHW."""
    if not view.wrong.any() or view.node is None:
        return None
    for words, turned in _orders(view.expected):
        if view.explained_by(turned):
            return _layout(view, f"the CPU's {words}", "output")
    if not any(_can_be_turned(values) for values in view.case.inputs) or not view.repeats:
        return None
    words = view.nearest_that_explains(_turned(view))
    return _layout(view, f"what the CPU gives for {words}", "input") if words else None


def _turned(view: View) -> Iterator[tuple[str, list[Array]]]:
    """The inputs with one of them in another order."""
    for place, values in enumerate(view.case.inputs):
        name = view.graph.tensors[view.graph.inputs[place]].name
        for words, turned in _orders(values):
            if not np.array_equal(turned, values):
                rest = view.case.inputs
                yield f"{name!r} {words}", [turned if index == place else each for index, each in enumerate(rest)]


def _layout(view: View, words: str, side: str) -> Cause:
    flattens = view.operator == "FULLY_CONNECTED" and side == "input"
    return Cause(
        "another layout",
        f"all {view.given.size} values are {words}; {view.share_wrong} of them are wrong",
        RESHAPE_FIRST
        if flattens
        else f"put a RESHAPE or TRANSPOSE at the {side}, so that the delegate keeps its own order, or bind the "
        "buffer in the delegate's layout",
        "https://ai.google.dev/edge/litert/performance/gpu",
    )


def _can_be_turned(values: Array) -> bool:
    return 2 <= values.ndim <= 4 and 1 < values.size <= _MOST_PERMUTED and sum(size > 1 for size in values.shape) > 1


def _orders(values: npt.NDArray[Any]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """The same numbers, in other orders but of the same shape; what is known to happen comes first."""
    if not _can_be_turned(values):
        return
    if values.ndim == 4:
        number, height, width, channels = values.shape
        yield "read as if it lay as NCHW", values.reshape(number, channels, height, width).transpose(0, 2, 3, 1)
        yield "in the order NCHW", values.transpose(0, 3, 1, 2).reshape(values.shape)
        yield "with height and width swapped", values.transpose(0, 2, 1, 3).reshape(values.shape)
        if channels % SLICE == 0 and channels > SLICE:
            sliced = values.reshape(number, height, width, channels // SLICE, SLICE)
            yield "in slices of 4 channels", sliced.transpose(0, 3, 1, 2, 4).reshape(values.shape)
            sliced = values.reshape(number, channels // SLICE, height, width, SLICE)
            yield "read as if it lay in slices of 4 channels", sliced.transpose(0, 2, 3, 1, 4).reshape(values.shape)
    if values.size > _ALL_ORDERS:
        return
    for order in list(permutations(range(values.ndim)))[1:]:
        turned = values.transpose(order)
        yield f"in the order of dimensions {list(order)}", turned.reshape(values.shape)
        backwards = values.reshape(turned.shape).transpose(np.argsort(order))
        yield f"read as if it lay in the order of dimensions {list(order)}", backwards


def _settings(corners: bool, centers: bool) -> str:
    return f"align_corners={str(corners).lower()}, half_pixel_centers={str(centers).lower()}"


def _window(view: View) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Reach and stride of the window, by height and width."""
    options = view.options
    if view.operator in _POOLS:
        sizes = (int(options["filterHeight"]), int(options["filterWidth"]))
    else:
        weights = view.operand_tensors[1] if len(view.operand_tensors) > 1 else None
        if weights is None or len(weights.shape) != 4:
            return None
        sizes = (weights.shape[1], weights.shape[2])
    dilations = (int(options.get("dilationHFactor", 1)), int(options.get("dilationWFactor", 1)))
    reaches = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    return (reaches[0], int(options["strideH"])), (reaches[1], int(options["strideW"]))


def _padding(size: int, reach: int, stride: int) -> int:
    """How much SAME pads in all.

    >>> _padding(6, 3, 2), _padding(5, 3, 1)
    (1, 2)
    """
    return max((-(-size // stride) - 1) * stride + reach - size, 0)


def _padded(
    values: Array, totals: list[int], zero: float, operator: str
) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
    """The input, padded in other ways than the one of the CPU: half of it before, rounded down, with zeros."""
    usual = [(total // 2, total - total // 2) for total in totals]
    neutral = np.array(zero).astype(values.dtype)
    if operator not in _POOLS:
        for words, sides in (
            (
                "padded more at the top and left than at the bottom and right",
                [(after, before) for before, after in usual],
            ),
            ("padded at the bottom and right alone", [(0, total) for total in totals]),
            ("padded at the top and left alone", [(total, 0) for total in totals]),
        ):
            if sides != usual:
                yield words, _pad(values, sides, neutral)
    if not any(totals):
        return
    if operator in _POOLS:
        yield "with zeros around it that count", _pad(values, usual, neutral)
    if zero:
        name = "padded with the stored number 0, which is not the zero point"
        yield name, _pad(values, usual, np.array(0).astype(values.dtype))
    everything = [(0, 0), *usual, (0, 0)]
    yield "padded with the pixels at its border", np.pad(values, everything, mode="edge")
    if all(total < size for total, size in zip(totals, values.shape[1:3], strict=True)):
        yield "padded with its mirror image", np.pad(values, everything, mode="reflect")


def _pad(values: Array, sides: list[tuple[int, int]], value: Any) -> Array:
    everything = [(0, 0), *sides, (0, 0)]
    return np.pad(values, everything, mode="constant", constant_values=value)
