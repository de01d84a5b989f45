"""Tests of causes: each gives the facts that speak for one, as the sentences of ``causes`` name them, or None.

``expected`` is what the CPU gave, ``given`` what the delegate gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import comb, log
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.delegates.gpu import GPU
from evaltools.errors import EvaltoolsError
from evaltools.locate.view import Numbers, View, count, quantization
from evaltools.model.gpu_faults import GPU_FAULTS
from evaltools.runtime.session import Array
from evaltools.text import steps

Facts = Mapping[str, object]
_Places = npt.NDArray[np.bool_]
LARGEST_FP16: Final = 65504.0
_FP16_BOUNDS: Final = (65000.0, 65536.0)
_NOISE: Final = 2.0**-7
_IN_FP32: Final = "compute it in fp32: --gpu_precision_loss_allowed=false, without xnnpack_force_fp16"
_ON_CPU: Final = "keep the operator on the CPU, or scale the values"
_FEWEST_PINNED: Final = 4
_FEWEST: Final = 6
_PER_CHANNEL: Final = 4
_NEARLY: Final = 1e-3
_MOST_WORDS: Final = 3
_SHORTEST_GAP: Final = 8
_PADDED: Final = frozenset(
    {"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"}
)
_SPATIAL: Final = _PADDED | {"PAD", "PADV2", "MIRROR_PAD", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}
_RESIZES: Final = frozenset({"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"})
_SAMPLINGS: Final = ((False, False), (True, False), (False, True))
"""half_pixel_centers and align_corners, which exclude each other."""
_CHANCE: Final = 1e-4
_LONGEST_TAIL: Final = 7
_LEAST_ELEMENTS: Final = 16
_FEWEST_PIXELS: Final = 4
_NEIGHBOURS: Final = tuple((rows, columns) for rows in (1, 0, -1) for columns in (1, 0, -1) if rows or columns)
_FEW_CHANNELS: Final = 0.25
_NAMED: Final = 6


# ---- Where all values come from ---------------------------------------------------------------


def another_shape(view: View) -> Facts | None:
    """The output has another shape than the CPU's."""
    if view.given.shape == view.expected.shape:
        return None
    return {"given": list(view.given.shape), "expected": list(view.expected.shape)}


def skipped(view: View) -> Facts | None:
    """What was given is the only operand that is fed: ``given = operand``, and not ``operator(operand)``."""
    found = _returned(view)
    return found if found is not None and _count_fed(view) < 2 else None


def operand_returned(view: View) -> Facts | None:
    """The same of one of several."""
    found = _returned(view)
    return found if found is not None and _count_fed(view) >= 2 else None


def _count_fed(view: View) -> int:
    return sum(values is not None and view.fed_to(place) is not None for place, values in enumerate(view.operands))


def _returned(view: View) -> Facts | None:
    for place, (tensor, values) in enumerate(zip(view.operand_tensors, view.operands, strict=True)):
        if tensor is not None and values is not None and view.explained_by(values):
            return {**_all(view), "place": place, "operand": tensor.name, "off_by": view.off_by}
    return None


def stale(view: View) -> Facts | None:
    """What was given belongs to the inputs of the run before: ``given(n) = expected(n - 1)``."""
    return _all(view) if view.explained_by(view.case.before) else None


def one_value(view: View) -> Facts | None:
    """All values are the same, while others were expected."""
    flat, wrong = view.given_numbers.ravel(), np.flatnonzero(view.wrong)
    if wrong.size < _SHORTEST_GAP or not view.has_kinds(view.numbers) or not np.all(flat == flat[0]):
        return None
    return {**_all(view), "value": flat[0], "low": np.nanmin(view.numbers), "high": np.nanmax(view.numbers)}


def padded_otherwise(view: View) -> Facts | None:
    """What was given is what the CPU gives where zeros stand on other sides of [N,H,W,C], but for the border."""
    fed = view.fed_to(0) if view.operator in _PADDED and view.operand_tensors else None
    tensor = view.operand_tensors[0] if fed is not None else None
    if fed is None or tensor is None or view.case.inputs[fed].ndim != 4 or not view.repeats:
        return None
    for rows, columns in _NEIGHBOURS:
        inputs = list(view.case.inputs)
        inputs[fed] = _shifted(inputs[fed], rows, columns, quantization(tensor)[1])
        made = view.run_on(inputs)
        if made is None or made.shape != view.given.shape or min(made.shape[1:3]) < _FEWEST_PIXELS:
            continue
        # What was moved out of the picture is missing at the opposite border.
        for axis, places in ((1, rows), (2, columns)):
            edge = [slice(None)] * 4
            edge[axis] = slice(-1, None) if places > 0 else slice(0, 1 if places else 0)
            made[tuple(edge)] = view.given[tuple(edge)]
        if view.explained_by(made):
            further = [_further(rows, "row", "down", "up"), _further(columns, "column", "to the right", "to the left")]
            return {**_all(view), "where": " and ".join(filter(None, further))}
    return None


def _shifted(values: Array, rows: int, columns: int, zero: float) -> Array:
    """A picture moved by at most one row and column, with ``zero`` where nothing comes in."""
    edges = [(0, 0), (max(rows, 0), max(-rows, 0)), (max(columns, 0), max(-columns, 0)), (0, 0)]
    filled = np.pad(values, edges, constant_values=zero)
    top, left = max(-rows, 0), max(-columns, 0)
    return filled[:, top : top + values.shape[1], left : left + values.shape[2]]


def _further(number: int, name: str, forward: str, backward: str) -> str:
    return f"{abs(number)} {name} further {backward if number < 0 else forward}" if number else ""


def sampled_otherwise(view: View) -> Facts | None:
    """What was given is what the CPU gives where a RESIZE takes its pixels from other places."""
    if view.operator not in _RESIZES or not view.repeats:
        return None
    for half_pixel, corners in _SAMPLINGS:
        told = {"half_pixel_centers": half_pixel, "align_corners": corners}
        made = view.with_options(halfPixelCenters=half_pixel, alignCorners=corners)
        if made is not None and view.explained_by(made):
            return {**_all(view), "told": " and ".join(f"{name} {value}" for name, value in told.items())}
    return None


# ---- Ranges -----------------------------------------------------------------------------------


def division_by_zero(view: View) -> Facts | None:
    """Every wrong value is one that a divisor of 0 gave: infinity on one side, on the other the largest number."""
    if view.operator != "DIV" or view.is_whole or len(view.operands) < 2 or not view.wrong.any():
        return None
    divisor = view.real_operand(1)
    if divisor is None or np.broadcast_to(divisor, view.wrong.shape)[view.wrong].any():
        return None
    words = {"cpu": _words(view.numbers, view.wrong), "here": _words(view.given_numbers, view.wrong)}
    return {"count": view.share_wrong, **words}


def fp16_overflow(view: View) -> Facts | None:
    """The result, or the sum that a mean is made of, is beyond 65504, and infinity or that bound came instead."""
    if view.is_whole or view.case.precision == "fp32":
        return None
    terms = view.case.inputs[0].size // view.expected.size if view.operator == "MEAN" and view.expected.size else 1
    sums, magnitude = view.numbers * terms, np.abs(view.given_numbers) * terms
    beyond = np.abs(sums) > LARGEST_FP16
    if not (view.wrong & beyond).any():
        return None
    pinned = (magnitude >= _FP16_BOUNDS[0]) & (magnitude <= _FP16_BOUNDS[1])
    capped = ~np.isfinite(view.given_numbers) | (pinned & (np.sign(sums) == np.sign(view.given_numbers)))
    rest = np.abs(view.error[np.abs(sums) <= _FP16_BOUNDS[0]])
    if not capped[beyond].all() or not np.all(rest <= max(_NOISE * view.largest, view.case.tolerance)):
        return None
    return {
        "what": "the CPU has" if terms == 1 else f"the sum of {terms} values is",
        "largest": np.abs(sums[np.isfinite(sums)]).max(initial=0.0),
        "count": count(int(beyond.sum()), int(beyond.sum())),
        "words": _words(view.given_numbers, beyond),
    }


def cut_at_a_bound(view: View) -> Facts | None:
    """``given = min(max(expected, low), high)``, with bounds that the reference goes beyond."""
    low, high = float(np.nanmin(view.given_numbers)), float(np.nanmax(view.given_numbers))
    above = view.wrong & (view.given_numbers == high) & (view.numbers > high)
    below = view.wrong & (view.given_numbers == low) & (view.numbers < low)
    # That the largest of all values is too small is nothing special; that many are equal to it, is.
    enough = low < high and max(above.sum(), below.sum()) >= _FEWEST_PINNED
    if not enough or not view.explained_by(np.clip(view.numbers, low, high)):
        return None
    bounds = [*([low] if below.any() else []), *([high] if above.any() else [])]
    return {
        "count": count(int(above.sum() + below.sum()), view.wrong.size),
        "bounds": f"{_joined(bounds)}{_in_real_numbers(view, bounds)}",
        "low": view.numbers.min(),
        "high": view.numbers.max(),
    }


def _joined(numbers: Sequence[float]) -> str:
    return " and ".join(f"{number:.6g}" for number in numbers)


def _in_real_numbers(view: View, stored: Sequence[float]) -> str:
    """What whole numbers stand for, in words; empty for floats, and where the part cannot be read."""
    with suppress(EvaltoolsError):
        scale, zero = quantization(view.output) if view.is_whole else (None, 0.0)
        if scale is not None:
            return f", which stand for {_joined([(number - zero) * scale for number in stored])}"
    return ""


def some_not_finite(view: View) -> Facts | None:
    """NaN or infinity only on the delegate's side."""
    bad = ~_finite(view.given) & _finite(view.expected)
    if not bad.any():
        return None
    first = [int(place) for place in np.unravel_index(int(np.argmax(bad)), bad.shape)]
    remedy = _ON_CPU if view.case.precision == "fp32" else _IN_FP32
    found = {"count": count(int(bad.sum()), bad.size), "words": _words(view.given_numbers, bad), "remedy": remedy}
    return {**found, "largest": view.largest, "first": first}


def _finite(values: Array) -> _Places:
    found: _Places = np.isfinite(values.astype(np.float64))
    return found


def _words(values: Numbers, places: _Places) -> str:
    return " or ".join(sorted({_word(value) for value in values[places][:1000]})[:_MOST_WORDS])


def _word(value: float) -> str:
    if np.isfinite(value):
        return f"{value:.6g}"
    return "NaN" if np.isnan(value) else f"{value:+}".replace("inf", "infinity")


# ---- Scales -----------------------------------------------------------------------------------


def negated(view: View) -> Facts | None:
    """``given = -expected``."""
    found = multiplied(view)
    return found if found is not None and _is_negation(found) else None


def multiplied(view: View) -> Facts | None:
    """``given = a * expected`` with one factor for all, in numbers counted from the zero point."""
    if _kinds(view) < _FEWEST:
        return None
    expected, given = _centred(view)
    factor = _factor(expected, given)
    if factor is None or not view.explained_by(_stored(view, factor * expected), _slack(view, factor)):
        return None
    return {**_all(view), "factor": factor}


def _is_negation(found: Facts) -> bool:
    factor = found["factor"]
    return isinstance(factor, float) and abs(factor + 1) < _NEARLY


def moved(view: View) -> Facts | None:
    """``given = expected + b`` with the same ``b`` for all."""
    expected, given = _centred(view)
    usable = _usable(view)
    if usable.sum() < _FEWEST or _kinds(view) < _FEWEST:
        return None
    shift = float(np.median(given[usable] - expected[usable]))
    if not shift or not view.explained_by(_stored(view, expected + shift), _slack(view, 1.0)):
        return None
    by = f"{shift:+.6g}"
    return {**_all(view), "by": steps(by) if view.is_whole else by}


def multiplied_channels(view: View) -> Facts | None:
    """``given = a * expected`` with an ``a`` of each channel, which is the last index."""
    return _by_channel(view, lambda expected, given: _factor(expected, given) or 1.0, np.multiply, 1.0)


def moved_channels(view: View) -> Facts | None:
    """``given = expected + b`` with a ``b`` of each channel."""
    return _by_channel(view, lambda expected, given: float(np.median(given - expected)), np.add, 0.0)


def _by_channel(
    view: View, fitted: Callable[[Numbers, Numbers], float], applied: Callable[[Numbers, Numbers], Numbers], none: float
) -> Facts | None:
    if view.expected.ndim < 2 or view.expected.shape[-1] < 2:
        return None
    channels = view.expected.shape[-1]
    expected, given = (values.reshape(-1, channels) for values in _centred(view))
    wrong = view.wrong.reshape(-1, channels).any(axis=0)
    usable, constants = _usable(view).reshape(-1, channels), np.full(channels, none)
    for channel in np.flatnonzero(wrong):
        rows = usable[:, channel]
        if np.unique(expected[rows, channel]).size < _PER_CHANNEL:
            return None
        constants[channel] = fitted(expected[rows, channel], given[rows, channel])
    slack = _slack(view, float(np.abs(constants).max()))
    if not view.explained_by(_stored(view, applied(expected, constants)).reshape(view.expected.shape), slack):
        return None
    named = f"{int(wrong.sum())} of {channels} channels (the first is {int(np.argmax(wrong))})"
    return {"channels": named, "low": constants[wrong].min(), "high": constants[wrong].max()}


def _centred(view: View) -> tuple[Numbers, Numbers]:
    """Both sides, counted from the zero point."""
    return view.numbers - view.zero_point, view.given_numbers - view.zero_point


def _stored(view: View, centred: Numbers) -> Numbers:
    return view.in_type(centred + view.zero_point)


def _slack(view: View, factor: float) -> float:
    """Whole numbers were rounded before they were multiplied, and again behind."""
    return 0.5 * (1 + abs(factor)) if view.is_whole else 0.0


def _usable(view: View) -> _Places:
    """Numbers on both sides, and none at the end of a type of whole numbers, which may have been cut there."""
    finite: _Places = _finite(view.given) & _finite(view.expected)
    return finite & ~np.isin(view.given_numbers, view.limits) if view.is_whole else finite


def _factor(expected: Numbers, given: Numbers) -> float | None:
    """The one that fits best, None for none or 1."""
    usable = np.isfinite(expected) & np.isfinite(given)
    square = float(np.sum(np.square(expected[usable])))
    factor = float(np.sum(expected[usable] * given[usable])) / square if square else 1.0
    return factor if abs(factor - 1) > 1e-9 else None


def _kinds(view: View) -> int:
    """How many different values there are among those that are wrong, of at most a few hundred looked at."""
    return int(np.unique(view.numbers[view.wrong][:512]).size)


def _all(view: View) -> Facts:
    return {"size": view.given.size, "wrong": view.share_wrong}


def known_gpu_fault(view: View) -> Facts | None:
    """The GPU was asked for, and the operator is one of those that it is known to compute wrongly."""
    asked_for = {delegate.name for delegate in view.case.configuration.delegates.requested}
    if GPU.name not in asked_for or not view.wrong.any():
        return None
    fault = next((fault for fault in GPU_FAULTS if fault.is_in(view.graph, view.node)), None)
    return None if fault is None else {"wrong": fault.wrong, "source": fault.source, "way_round": fault.way_round}


# ---- Which values are wrong -------------------------------------------------------------------


def at_the_border(view: View) -> Facts | None:
    """``wrong`` only within a few pixels of the border of [N,H,W,C], too often there to be by chance."""
    if view.operator not in _SPATIAL or view.expected.ndim != 4 or not view.wrong.any():
        return None
    pixels = view.wrong.any(axis=(0, 3))
    height, width = pixels.shape
    rows, columns = np.nonzero(pixels)
    depth = int(np.minimum(np.minimum(rows, height - 1 - rows), np.minimum(columns, width - 1 - columns)).max()) + 1
    inner = max(0, height - 2 * depth) * max(0, width - 2 * depth)
    if not inner or not is_no_chance(1 - inner / (height * width), len(rows)):
        return None
    sides = {
        "top": rows < depth,
        "bottom": rows >= height - depth,
        "left": columns < depth,
        "right": columns >= width - depth,
    }
    seen = ", ".join(name for name, inside in sides.items() if inside.sum() > len(rows) / (2 * len(sides)))
    found = {"count": count(len(rows), pixels.size), "height": height, "width": width, "depth": depth}
    return {**found, "sides": seen, "inner": inner}


def last_lanes(view: View) -> Facts | None:
    """``wrong`` only in the last 1 to 7 channels, which are the last index."""
    if not view.wrong.any() or view.wrong.ndim == 0:
        return None
    length = view.wrong.shape[-1]
    tail = length - int(np.argmax(view.wrong.reshape(-1, length).any(axis=0)))
    wrong = int(view.wrong.sum())
    if tail > _LONGEST_TAIL or length <= _LEAST_ELEMENTS or not is_no_chance(tail / length, wrong):
        return None
    return {"wrong": wrong, "tail": tail, "length": length}


def few_channels(view: View) -> Facts | None:
    """``wrong`` only in few of the channels, which are the last index."""
    if view.expected.ndim < 2 or not view.wrong.any() or last_lanes(view) is not None:
        return None
    by_channel = view.wrong.reshape(-1, view.wrong.shape[-1]).sum(axis=0)
    channels = np.flatnonzero(by_channel)
    share = len(channels) / len(by_channel)
    if share > _FEW_CHANNELS or not is_no_chance(share, int(view.wrong.sum()), comb(len(by_channel), len(channels))):
        return None
    named = ", ".join(map(str, channels[:_NAMED].tolist())) + (", ..." if len(channels) > _NAMED else "")
    return {"wrong": int(view.wrong.sum()), "some": len(channels), "channels": len(by_channel), "named": named}


def is_no_chance(share: float, times: int, choices: int = 1) -> bool:
    """Whether so many errors, thrown at random, would hardly all fall into a share of the places.

    ``choices`` is how many such shares there are: ``choices * share ** times`` is small.

    >>> is_no_chance(0.5, 3), is_no_chance(0.5, 20), is_no_chance(0.5, 20, 1000)
    (False, True, False)
    """
    return 0 < share < 1 and log(choices) + times * log(share) < log(_CHANCE)
