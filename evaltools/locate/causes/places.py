"""Values that are those of something else, or wrong at certain places alone: at the border, in some channels."""

from __future__ import annotations

from math import comb, log
from typing import Final

import numpy as np

from evaltools.locate.causes.view import View, count, quantization
from evaltools.result.locate import Cause
from evaltools.runtime.session import Array

_LITERT: Final = "https://github.com/google-ai-edge/LiteRT/issues/"
_TENSORFLOW: Final = "https://github.com/tensorflow/tensorflow/issues/"
_SHORTEST_GAP: Final = 8
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
_FEWEST_PIXELS: Final = 4
_NEIGHBOURS: Final = tuple((rows, columns) for rows in (1, 0, -1) for columns in (1, 0, -1) if rows or columns)
_FEW_CHANNELS: Final = 0.25
_NAMED: Final = 6


def operand_returned(view: View) -> Cause | None:
    """What was given is an operand: ``given = operand``, and not ``operator(operands)``."""
    fed = [place for place, values in enumerate(view.operands) if values is not None and view.fed_to(place) is not None]
    for place, (tensor, values) in enumerate(zip(view.operand_tensors, view.operands, strict=True)):
        if tensor is None or values is None or not view.explained_by(values):
            continue
        shown = (
            f"all {view.given.size} values are those of operand {place}, {tensor.name!r}, while {view.share_wrong} of "
            f"them should be others, up to {view.off_by} away"
        )
        if len(fed) < 2:
            remedy = "keep this operator on the CPU, or write it in another way; the delegate skips it"
            return Cause("the operator was skipped", shown, remedy)
        return Cause(
            "an operand was returned",
            shown,
            "do not use the tensor as an output and as an operand of the next operator; a copy of it by RESHAPE as the "
            "output cures that",
            f"{_LITERT}8599",
        )
    return None


def stale(view: View) -> Cause | None:
    """What was given belongs to the inputs of the run before: ``given(n) = expected(n - 1)``."""
    if not view.explained_by(view.case.before):
        return None
    return Cause(
        "the output of the run before",
        f"all {view.given.size} values are what the CPU gives for the inputs of the run before; {view.share_wrong} of "
        "them should be others",
        "the output is read before it is written: wait for the delegate, or use another way to bind the output buffer",
    )


def not_written(view: View) -> Cause | None:
    """All values, or all of one stretch of memory, are the same, while others were expected there."""
    flat, wrong = view.given_numbers.ravel(), np.flatnonzero(view.wrong)
    if wrong.size < _SHORTEST_GAP or not view.has_kinds(view.numbers):
        return None
    first, last = int(wrong[0]), int(wrong[-1])
    value = flat[first]
    if value not in (0.0, view.zero_point) and np.unique(flat).size > 1:
        return None
    if not np.all(flat[first : last + 1] == value):
        return None
    if np.all(flat == value):
        return Cause(
            "one value everywhere",
            f"all {flat.size} values are {value:g}; the CPU's are {_range(view)}",
            "the output is not written, or overwritten: try it without buffer reuse, or keep the operator on the CPU",
            f"{_TENSORFLOW}27240",
        )
    # Other elements may be equal by chance, but not half of a stretch.
    if wrong.size * 2 < last + 1 - first or last + 1 - first > 0.98 * flat.size:
        return None
    return Cause(
        "a part is not written",
        f"elements {first} to {last} of {flat.size} are {value:g} without exception, where {wrong.size} of them should "
        f"be others; {count(flat.size - (last + 1 - first), flat.size)} outside are right",
        "the delegate writes a part of the output alone: look at its tiling, or keep the operator on the CPU",
    )


def _range(view: View) -> str:
    return f"from {np.nanmin(view.numbers):.6g} to {np.nanmax(view.numbers):.6g}"


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


def padded_otherwise(view: View) -> Cause | None:
    """What was given is what the CPU gives where zeros stand on other sides of [N,H,W,C], but for the border."""
    fed = view.fed_to(0) if view.operator in _PADDED and view.operand_tensors else None
    tensor = view.operand_tensors[0] if fed is not None else None
    if fed is None or tensor is None or view.case.inputs[fed].ndim != 4 or not view.repeats:
        return None
    zero = quantization(tensor)[1]
    for rows, columns in _NEIGHBOURS:
        inputs = list(view.case.inputs)
        inputs[fed] = _shifted(inputs[fed], rows, columns, zero)
        made = view.run_on(inputs)
        if made is None or made.shape != view.given.shape or min(made.shape[1:3]) < _FEWEST_PIXELS:
            continue
        # What was moved out of the picture is missing at the opposite border.
        for axis, places in ((1, rows), (2, columns)):
            edge = [slice(None)] * 4
            edge[axis] = slice(-1, None) if places > 0 else slice(0, 1 if places else 0)
            made[tuple(edge)] = view.given[tuple(edge)]
        if view.explained_by(made):
            further = [_places(rows, "row", "down", "up"), _places(columns, "column", "to the right", "to the left")]
            return Cause(
                "padded otherwise",
                "but for the border all values are those that the CPU gives for a picture that stands "
                f"{' and '.join(filter(None, further))}; {view.share_wrong} are wrong",
                "put a PAD before the operator and let it be VALID, so that nothing is left to the delegate",
            )
    return None


def _shifted(values: Array, rows: int, columns: int, zero: float) -> Array:
    """A picture moved by at most one row and column, with ``zero`` where nothing comes in."""
    edges = [(0, 0), (max(rows, 0), max(-rows, 0)), (max(columns, 0), max(-columns, 0)), (0, 0)]
    filled = np.pad(values, edges, constant_values=zero)
    top, left = max(-rows, 0), max(-columns, 0)
    return filled[:, top : top + values.shape[1], left : left + values.shape[2]]


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
