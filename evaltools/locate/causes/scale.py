"""Values that are a multiple of what they should be, moved by a constant, or rounded in another way."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.locate.causes.view import Numbers, View, count
from evaltools.locate.parts.difference import is_rounded
from evaltools.model.rounding import UNIT_ROUNDOFF
from evaltools.result.locate import Cause
from evaltools.text import steps

_FEWEST: Final = 6
_PER_CHANNEL: Final = 4
_LEAST_SPREAD: Final = 1e-3
_BIAS_OPERANDS: Final = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3}
_REMEDY: Final = (
    "compare the scale and zero point that the delegate uses with the model's, of inputs, weights and output"
)
_FEW_STEPS: Final = 3
_FEWEST_ROUNDED: Final = 16
_BIAS: Final = 0.8
_MANY: Final = 0.2
_ROUNDINGS: Final = 8.0
_PRECISIONS: Final = {"bf16": "8 binary digits", "fp16": "11 binary digits"}
"""The one of fewer digits first, whose numbers are mostly numbers of the other one, too."""


def bias_left_out(view: View) -> Cause | None:
    """``given`` is what the CPU gives without the operator's bias."""
    place = _BIAS_OPERANDS.get(view.operator, 0)
    if not 0 < place < len(view.operands) or view.operands[place] is None or not view.wrong.any():
        return None
    bias = view.operand_tensors[place]
    if bias is None or bias.constant is None or not view.repeats:
        return None
    without = view.run_with({bias.index: bytes(len(bias.constant))})
    if without is None or not view.explained_by(without):
        return None
    return Cause(
        "the bias was left out",
        f"all {view.given.size} values are what the CPU gives without the bias; {view.share_wrong} are wrong by up to "
        f"{view.off_by}",
        "put the bias behind the operator as an ADD of its own",
    )


def multiplied_or_moved(view: View) -> Cause | None:
    """The simplest of these that fits: one factor, one shift, both, or one of them for each channel."""
    return scaled(view) or moved(view) or scaled_per_channel(view)


def scaled(view: View) -> Cause | None:
    """``given = a * expected`` with one factor for all, in numbers counted from the zero point."""
    if _steady(view, view.numbers) < _FEWEST:
        return None
    expected, given = _centred(view)
    factor = _factor(expected, given)
    if factor is None or not view.explained_by(_stored(view, factor * expected), _slack(view, factor)):
        return None
    if abs(factor + 1) < _LEAST_SPREAD:
        return Cause(
            "sign flipped",
            f"all {view.given.size} values are the CPU's with the other sign",
            "negate the result (NEG) as a way round, and report it",
        )
    return Cause(
        "multiplied by a constant",
        f"all {view.given.size} values are {factor:.6g} times the CPU's",
        _REMEDY,
    )


def moved(view: View) -> Cause | None:
    """``given = expected + b``, or ``a * expected + b``, with the same ``a`` and ``b`` for all."""
    expected, given = _centred(view)
    finite = np.isfinite(expected) & np.isfinite(given) & ~_at_bounds(view)
    if finite.sum() < _FEWEST or _steady(view, view.numbers) < _FEWEST:
        return None
    shift = float(np.median(given[finite] - expected[finite]))
    if shift and view.explained_by(_stored(view, expected + shift), _slack(view, 1.0)):
        by = steps(f"{shift:+.6g}") if view.is_whole else f"{shift:+.6g}"
        return Cause(
            "moved by a constant",
            f"all {view.given.size} values are the CPU's {by}",
            "compare the zero points that the delegate uses with the model's, and whether a bias is added twice or not",
        )
    matrix = np.stack([expected[finite], np.ones(int(finite.sum()))], axis=1)
    (factor, shift), *_ = np.linalg.lstsq(matrix, given[finite], rcond=None)
    # A factor of nearly nothing is no scale: then the values have nothing to do with those expected.
    explains = _explains_spread(expected[finite], given[finite], float(factor), float(shift))
    if not explains or not view.explained_by(_stored(view, factor * expected + shift), _slack(view, float(factor))):
        return None
    return Cause(
        "multiplied and moved by constants",
        f"all {view.given.size} values are {factor:.6g} times the CPU's {shift:+.6g}",
        _REMEDY,
    )


def scaled_per_channel(view: View) -> Cause | None:
    """``given = a * expected`` or ``expected + b`` with an ``a`` or ``b`` of each channel, which is the last index."""
    if view.expected.ndim < 2 or view.expected.shape[-1] < 2:
        return None
    channels = view.expected.shape[-1]
    expected, given = (values.reshape(-1, channels) for values in _centred(view))
    if len(expected) < _PER_CHANNEL:
        return None
    wrong = view.wrong.reshape(-1, channels).any(axis=0)
    usable = ~_at_bounds(view).reshape(-1, channels) & np.isfinite(expected) & np.isfinite(given)
    factors, shifts = np.ones(channels), np.zeros(channels)
    for channel in np.flatnonzero(wrong):
        rows = usable[:, channel]
        if np.unique(expected[rows, channel]).size < _PER_CHANNEL:
            return None
        factors[channel] = _factor(expected[rows, channel], given[rows, channel]) or 1.0
        shifts[channel] = np.median(given[rows, channel] - expected[rows, channel])
    named = f"{int(wrong.sum())} of {channels} channels (the first is {int(np.argmax(wrong))})"
    slack = _slack(view, float(np.abs(factors).max()))
    if view.explained_by(_stored(view, expected * factors).reshape(view.expected.shape), slack):
        some = factors[wrong]
        return Cause(
            "wrong scale of channels",
            f"{named} are multiplied by a constant of their own, from {some.min():.6g} to {some.max():.6g}",
            f"{_REMEDY}; scales per channel are read as one scale, or in another order",
            "https://ai.google.dev/edge/litert/models/quantization_spec",
        )
    if view.explained_by(_stored(view, expected + shifts).reshape(view.expected.shape), slack):
        some = shifts[wrong]
        return Cause(
            "channels moved by constants",
            f"{named} are moved by a constant of their own, from {some.min():+.6g} to {some.max():+.6g}",
            "compare the bias that the delegate uses with the model's: left out, added twice, or of another channel",
        )
    return None


def _centred(view: View) -> tuple[Numbers, Numbers]:
    """Both sides, counted from the zero point."""
    return view.numbers - view.zero_point, view.given_numbers - view.zero_point


def _stored(view: View, centred: Numbers) -> Numbers:
    return view.in_type(centred + view.zero_point)


def _slack(view: View, factor: float) -> float:
    """Whole numbers were rounded before they were multiplied, and again behind."""
    return 0.5 * (1 + abs(factor)) if view.is_whole else 0.0


def _at_bounds(view: View) -> npt.NDArray[np.bool_]:
    """Whole numbers at the end of their type's range, which may have been cut there."""
    if not view.is_whole:
        return np.zeros(view.given.shape, bool)
    low, high = view.limits
    at_bounds: npt.NDArray[np.bool_] = np.isin(view.given_numbers, (low, high))
    return at_bounds


def _factor(expected: Numbers, given: Numbers) -> float | None:
    """The one that fits best, None for none or 1."""
    usable = np.isfinite(expected) & np.isfinite(given)
    square = float(np.sum(np.square(expected[usable])))
    factor = float(np.sum(expected[usable] * given[usable])) / square if square else 1.0
    return factor if abs(factor - 1) > 1e-9 else None


def _steady(view: View, values: Numbers) -> int:
    """How many different values there are among those that are wrong, of at most a few hundred looked at."""
    return int(np.unique(values[view.wrong][:512]).size)


def _explains_spread(expected: Numbers, given: Numbers, factor: float, shift: float) -> bool:
    left = float(np.std(given - factor * expected - shift))
    return left <= 0.1 * float(np.std(given)) and abs(factor) > _LEAST_SPREAD


def biased_rounding(view: View) -> Cause | None:
    """Whole numbers that are a few steps off, nearly all to the same side: ``mean of sign(error)`` near -1 or 1."""
    if not view.is_whole or view.case.unit != "steps":
        return None
    off = view.error[view.error != 0]
    if off.size < _FEWEST_ROUNDED or np.isnan(off).any() or np.abs(off).max() > _FEW_STEPS:
        return None
    bias, share = float(np.mean(np.sign(off))), off.size / view.error.size
    if abs(bias) < _BIAS:
        return None
    how = "cut off" if share >= _MANY else "rounded another way where a value lies in the middle, or rounded twice"
    return Cause(
        "another rounding of whole numbers",
        f"{count(off.size, view.error.size)} values ({100 * share:.0f} %) are off by at most {np.abs(off).max():g} "
        f"step{'s' if np.abs(off).max() > 1 else ''}, {100 * np.mean(off > 0):.0f} % of them upwards; on average "
        f"{np.mean(view.error):+.3g}: results seem to be {how}",
        "round results to nearest as the CPU's kernels do; where the delegate cannot, take it for its precision and "
        "judge the task's score",
        "https://github.com/google-ai-edge/LiteRT/issues/7441",
    )


def fewer_digits(view: View) -> Cause | None:
    """All values can be written in a lower precision, those of the reference cannot, and the errors are as small."""
    if view.expected.dtype != np.float32 or view.given.dtype != np.float32:
        return None
    error = np.abs(view.error)
    for precision, digits in _PRECISIONS.items():
        limit = _ROUNDINGS * UNIT_ROUNDOFF[precision] * view.largest
        if is_rounded(view.given, precision) and not is_rounded(view.expected, precision) and np.all(error <= limit):
            return Cause(
                f"computed in {precision}",
                f"all {error.size} values are {precision} numbers ({digits}), and the error of at most "
                f"{error.max():.3g} is {error.max() / view.largest / UNIT_ROUNDOFF[precision]:.1f} roundings of the "
                "largest value: a matter of precision, no fault",
                "take it, or ask for fp32: --gpu_precision_loss_allowed=false, no xnnpack_force_fp16",
                "https://ai.google.dev/edge/litert/performance/gpu",
            )
    return None
