"""Values that are wrong at certain places alone: at the border, in the last lanes, in some channels."""

from __future__ import annotations

from math import comb, log
from typing import Final

import numpy as np

from evaltools.locate.causes.view import View, count
from evaltools.result.locate import Cause

_SPATIAL: Final = frozenset(
    {
        "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D", "PAD",
        "PADV2", "MIRROR_PAD", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR",
    }
)  # fmt: skip
_PADDED: Final = _SPATIAL - {"PAD", "PADV2", "MIRROR_PAD", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}
_CHANCE: Final = 1e-4
_LANES: Final = (16, 8, 4)
_LONGEST_TAIL: Final = 7
_LEAST_ELEMENTS: Final = 16
_FURTHEST: Final = 2
_FEW_CHANNELS: Final = 0.25
_NAMED: Final = 6


def another_shape(view: View) -> Cause | None:
    """The output has another shape than the CPU's."""
    if view.given.shape == view.expected.shape:
        return None
    return Cause(
        "another shape",
        f"the output is {list(view.given.shape)}, and {list(view.expected.shape)} on the CPU",
        "fix all shapes in the model before the delegate sees it; it may have been prepared for other ones",
    )


def moved(view: View) -> Cause | None:
    """``given[y, x] = expected[y + rows, x + columns]``, but for the border: padded on other sides."""
    if view.operator not in _PADDED or view.expected.ndim != 4 or not view.wrong.any():
        return None
    found = [
        (rows, columns)
        for rows in range(-_FURTHEST, _FURTHEST + 1)
        for columns in range(-_FURTHEST, _FURTHEST + 1)
        if (rows, columns) != (0, 0) and view.is_moved(rows, columns)
    ]
    if not found:
        return None
    rows, columns = min(found, key=lambda places: abs(places[0]) + abs(places[1]))
    further = [_places(rows, "row", "down", "up"), _places(columns, "column", "to the right", "to the left")]
    return Cause(
        "moved by pixels",
        f"but for the border all values are those that the CPU has {' and '.join(filter(None, further))}; "
        f"{view.share_wrong} are wrong",
        "let the operator pad nothing (VALID): put a PAD before it, or cut off what it gives more (STRIDED_SLICE), so "
        "that nothing is left to the delegate",
    )


def _places(number: int, name: str, forward: str, backward: str) -> str:
    """Empty for none."""
    more = "" if abs(number) == 1 else "s"
    return f"{abs(number)} {name}{more} further {backward if number < 0 else forward}" if number else ""


def at_the_border(view: View) -> Cause | None:
    """``wrong`` only within a few pixels of the border of [N,H,W,C], too often there to be by chance."""
    if view.operator not in _SPATIAL or view.expected.ndim != 4 or not view.wrong.any():
        return None
    pixels = view.wrong.any(axis=(0, 3))
    height, width = pixels.shape
    rows, columns = np.nonzero(pixels)
    depth = int(np.minimum(np.minimum(rows, height - 1 - rows), np.minimum(columns, width - 1 - columns)).max()) + 1
    inner = max(0, height - 2 * depth) * max(0, width - 2 * depth)
    share = 1 - inner / (height * width)
    if not inner or not is_no_chance(share, len(rows)):
        return None
    sides = {
        "top": rows < depth,
        "bottom": rows >= height - depth,
        "left": columns < depth,
        "right": columns >= width - depth,
    }
    seen = [name for name, inside in sides.items() if inside.sum() > len(rows) / (2 * len(sides))]
    return Cause(
        "wrong at the border",
        f"{count(len(rows), pixels.size)} pixels of {height} x {width} are wrong, each within {depth} of the border "
        f"({', '.join(seen)}); the {inner} pixels inside are right",
        "padding: put a PAD before the operator and let it be VALID, or look at how the delegate pads on each side",
    )


def last_lanes(view: View) -> Cause | None:
    """``wrong`` only in the last 1 to 7 elements of the last dimension, or of the whole tensor."""
    wrong = view.wrong
    if not wrong.any() or wrong.ndim == 0:
        return None
    length = wrong.shape[-1]
    by_place = wrong.reshape(-1, length).any(axis=0)
    first = int(np.argmax(by_place))
    tail = length - first
    if tail <= _LONGEST_TAIL and length > _LEAST_ELEMENTS and is_no_chance(tail / length, int(wrong.sum())):
        return _tail(tail, length, "channels of the last dimension", int(wrong.sum()))
    flat = np.flatnonzero(wrong)
    tail = wrong.size - int(flat[0])
    if tail <= _LONGEST_TAIL and wrong.size >= 4 * _LEAST_ELEMENTS and is_no_chance(tail / wrong.size, flat.size):
        return _tail(tail, wrong.size, "elements of the tensor", flat.size)
    return None


def few_channels(view: View) -> Cause | None:
    """``wrong`` only in few of the channels, which is the last index."""
    if view.expected.ndim < 2 or not view.wrong.any() or last_lanes(view) is not None:
        return None
    by_channel = view.wrong.reshape(-1, view.wrong.shape[-1]).sum(axis=0)
    channels = np.flatnonzero(by_channel)
    share = len(channels) / len(by_channel)
    if share > _FEW_CHANNELS or not is_no_chance(share, int(view.wrong.sum()), comb(len(by_channel), len(channels))):
        return None
    named = ", ".join(map(str, channels[:_NAMED].tolist())) + (", ..." if len(channels) > _NAMED else "")
    zero = view.zero_point
    only_zero = bool(np.all(view.given_numbers[..., channels] == zero))
    return Cause(
        "wrong in few channels",
        f"all {int(view.wrong.sum())} wrong values lie in {len(channels)} of {len(by_channel)} channels: {named}"
        + (f"; all of these are {zero:g}" if only_zero else ""),
        "look at what is special there: weights, scales, biases of these channels, or the delegate's tiles",
    )


def is_no_chance(share: float, times: int, choices: int = 1) -> bool:
    """Whether so many errors, thrown at random, would hardly all fall into a share of the places.

    ``choices`` is how many such shares there are: ``choices * share ** times`` is small.

    >>> is_no_chance(0.5, 3), is_no_chance(0.5, 20), is_no_chance(0.5, 20, 1000)
    (False, True, False)
    """
    return 0 < share < 1 and log(choices) + times * log(share) < log(_CHANCE)


def _tail(tail: int, length: int, what: str, wrong: int) -> Cause:
    lanes = next((lanes for lanes in _LANES if length % lanes == tail), 0)
    rest = f"; {length} divided by {lanes} leaves {tail}" if lanes else ""
    return Cause(
        "wrong in the last lanes",
        f"all {wrong} wrong values lie in the last {tail} of {length} {what}{rest}",
        "the rest of a vector loop: make that size a multiple of 4, 8 or 16 by padding, or keep the operator on the "
        "CPU",
    )
