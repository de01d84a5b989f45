"""Values beyond a range: what fp16 cannot hold, what was pinned at a bound, and what is no number any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.locate.causes.view import Numbers, View, count
from evaltools.result.locate import Cause

LARGEST_FP16: Final = 65504.0
_FP16_BOUNDS: Final = (65000.0, 65536.0)
_SMALLEST_FP16: Final = 2.0**-14
_EXP_FP16: Final = 11.09
_NOISE: Final = 2.0**-7
_IN_FP32: Final = (
    "compute it in fp32: --gpu_precision_loss_allowed=false, without xnnpack_force_fp16, or enforce_f32 of "
    "CompiledModel; or scale the values down before"
)
_LITERT: Final = "https://github.com/google-ai-edge/LiteRT/issues/"
_FEWEST_PINNED: Final = 4
_MOST_WORDS: Final = 3
_MOST: Final = 0.95


def division_by_zero(view: View) -> Cause | None:
    """Every wrong value is one that a divisor of 0 gave: infinity on one side, on the other the largest number."""
    if view.operator != "DIV" or view.is_whole or len(view.operands) < 2 or not view.wrong.any():
        return None
    divisor = view.real_operand(1)
    if divisor is None or np.broadcast_to(divisor, view.wrong.shape)[view.wrong].any():
        return None
    return Cause(
        "division by zero",
        f"{count(int(view.wrong.sum()), view.wrong.size)} values are others, each where the divisor is 0: "
        f"{_words(view.numbers, view.wrong)} on the CPU, whose kernel keeps to numbers, and "
        f"{_words(view.given_numbers, view.wrong)} here",
        "neither is a result to go on with: keep the divisor away from 0, as by MAXIMUM or by adding a small number",
    )


def fp16_overflow(view: View) -> Cause | None:
    """The result, or the sum that a mean is made of, is beyond 65504, and infinity or that bound came instead."""
    if view.is_whole or view.case.precision == "fp32":
        return None
    terms = _terms(view)
    sums = view.numbers * terms
    beyond = np.abs(sums) > LARGEST_FP16
    if not beyond.any() or not (view.wrong & beyond).any():
        return None
    magnitude = np.abs(view.given_numbers) * terms
    pinned = (magnitude >= _FP16_BOUNDS[0]) & (magnitude <= _FP16_BOUNDS[1])
    capped = ~np.isfinite(view.given_numbers) | (pinned & (np.sign(sums) == np.sign(view.given_numbers)))
    near = np.abs(sums) > _FP16_BOUNDS[0]
    rest = np.abs(view.error[~near])
    if not capped[beyond].all() or not np.all(rest <= max(_NOISE * view.largest, view.case.tolerance)):
        return None
    came = sorted({_word(value) for value in view.given_numbers[beyond][:1000]})
    what = "the CPU has" if terms == 1 else f"the sum of {terms} values is"
    return Cause(
        "fp16 overflow",
        f"{what} up to {np.abs(sums[np.isfinite(sums)]).max(initial=0.0):.6g}, which fp16 cannot hold (at most 65504); "
        f"{count(int(capped[beyond].sum()), int(beyond.sum()))} such values came as {' or '.join(came[:3])}",
        _IN_FP32,
        f"{_LITERT}9249",
    )


def pinned_at_a_bound(view: View) -> Cause | None:
    """``given = min(max(expected, low), high)``, with bounds that the reference goes beyond."""
    low, high = float(np.nanmin(view.given_numbers)), float(np.nanmax(view.given_numbers))
    if not low < high:
        return None
    above = view.wrong & (view.given_numbers == high) & (view.numbers > high)
    below = view.wrong & (view.given_numbers == low) & (view.numbers < low)
    pinned = int(above.sum() + below.sum())
    # That the largest of all values is too small is nothing special; that many are equal to it, is.
    if max(above.sum(), below.sum()) < _FEWEST_PINNED or not view.explained_by(np.clip(view.numbers, low, high)):
        return None
    if view.is_whole:
        return Cause(
            "saturated quantisation",
            f"{count(pinned, view.wrong.size)} values stand at {_bounds(above, below, low, high)}, where the CPU has "
            f"{view.numbers.min():g} to {view.numbers.max():g}; all others are right",
            "the delegate quantises this tensor with too small a range: give it the model's scale and zero point, or "
            "calibrate with data that reaches these values",
            "https://ai.google.dev/edge/litert/models/quantization_spec",
        )
    return Cause(
        "values cut at a bound",
        f"{count(pinned, view.wrong.size)} values stand at {_bounds(above, below, low, high)}, where the CPU has "
        f"{view.numbers.min():.6g} to {view.numbers.max():.6g}; all others are right",
        "the delegate computes in a type of a smaller range, or adds an activation: ask for fp32, or keep the operator "
        "on the CPU",
    )


def wrapped_around(view: View) -> Cause | None:
    """Whole numbers that come out at the other end, where the reference stays at the bound."""
    if not view.is_whole or view.expected.dtype.itemsize > 2:
        return None
    low, high = view.limits
    at_bound = (view.numbers == high) | (view.numbers == low)
    middle = (high + low) / 2
    other_end = (view.given_numbers > middle) != (view.numbers > middle)
    if view.wrong.sum() < _FEWEST_PINNED or not np.all((at_bound & other_end)[view.wrong]):
        return None
    return Cause(
        "whole numbers wrap around",
        f"{view.share_wrong} values are wrong: each stands at a bound ({low} or {high}) on the CPU and at "
        "the other end here",
        "the delegate does not saturate: widen the output's range (its scale) or keep the operator on the CPU",
        "https://ai.google.dev/edge/litert/models/quantization_spec",
    )


_Origin = tuple[int, Callable[[Numbers], npt.NDArray[Any]], str]
_ORIGINS: Final[dict[str, tuple[_Origin, ...]]] = {
    "DIV": (
        (1, lambda x: np.abs(x) < _SMALLEST_FP16, "the divisor is smaller than 6.1e-5, which fp16 may round to zero"),
    ),
    "RSQRT": ((0, lambda x: np.abs(x) < _SMALLEST_FP16, "the value is smaller than 6.1e-5, fp16 may make it zero"),),
    "LOG": ((0, lambda x: np.abs(x) < _SMALLEST_FP16, "the value is smaller than 6.1e-5, fp16 may make it zero"),),
    "SQRT": ((0, lambda x: x <= 0, "the root of a number that is not above zero"),),
    "POW": ((0, lambda x: x < 0, "a power of a negative number, which exp(y log x) does not have"),),
    "EXP": ((0, lambda x: x > _EXP_FP16, "exp of more than 11.09 is beyond fp16"),),
    "TANH": ((0, lambda x: np.abs(x) > _EXP_FP16 / 2, "tanh made of exp(2x), which is beyond fp16 there"),),
    "LOGISTIC": ((0, lambda x: np.abs(x) > _EXP_FP16, "exp of more than 11.09 is beyond fp16"),),
    "SOFTMAX": (
        (
            0,
            lambda x: np.broadcast_to((x > _EXP_FP16).any(axis=-1, keepdims=True), x.shape),
            "exp of more than 11.09 is beyond fp16, and the row's largest value was not subtracted first",
        ),
    ),
}
"""By operator: which operand, where it is dangerous, and why."""


def not_a_number(view: View) -> Cause | None:
    """NaN or infinity where the reference has numbers, and operands there that explain it."""
    bad = ~np.isfinite(view.given_numbers) & np.isfinite(view.numbers)
    if view.is_whole or not bad.any():
        return None
    shown = f"{count(int(bad.sum()), bad.size)} values are {_words(view.given_numbers, bad)}, where the CPU has numbers"
    for tensor, values in zip(view.operand_tensors, view.operands, strict=True):
        if tensor is not None and values is not None and not np.isfinite(values.astype(np.float64)).all():
            return Cause(
                "NaN or infinity comes in",
                f"{shown}; the operand {tensor.name!r} holds NaN or infinity already, which the CPU copes with",
                "keep such values out of the input, or look at what makes them",
            )
    in_fp32 = view.case.precision == "fp32"
    for place, is_dangerous, why in _ORIGINS.get(view.operator, ()):
        if in_fp32 and "fp16" in why:
            continue
        operand = view.real_operand(place) if place < len(view.operands) else None
        if operand is None:
            continue
        try:
            dangerous = np.broadcast_to(is_dangerous(operand), bad.shape)
        except ValueError:
            continue
        inside = int((bad & dangerous).sum())
        # Dangerous operands must be where it happens, and it where they are, not everywhere.
        if inside >= _MOST * bad.sum() and inside >= _MOST / 2 * dangerous.sum() and not dangerous.all():
            return Cause(
                "NaN or infinity from rare operands",
                f"{shown}; at {count(inside, int(bad.sum()))} of them {why}",
                f"{_remedy(view)}; or keep the operand away from there, as by adding a small number or MAXIMUM",
            )
    return None


def some_not_finite(view: View) -> Cause | None:
    """NaN or infinity on one side alone, of which nothing more is known."""
    bad = ~np.isfinite(view.given_numbers) & np.isfinite(view.numbers)
    kept = np.isfinite(view.given_numbers) & ~np.isfinite(view.numbers)
    if bad.any():
        first = np.unravel_index(int(np.argmax(bad)), bad.shape)
        return Cause(
            "NaN or infinity",
            f"{count(int(bad.sum()), bad.size)} values are {_words(view.given_numbers, bad)}, where the CPU has "
            f"numbers up to {view.largest:.6g}; the first is at {[int(place) for place in first]}",
            _remedy(view),
            "https://github.com/tensorflow/tensorflow/issues/48523",
        )
    if kept.any():
        return Cause(
            "NaN or infinity is lost",
            f"{count(int(kept.sum()), kept.size)} values are numbers, where the CPU has NaN or infinity",
            "the delegate computes with fast maths; keep such values out of the model",
        )
    return None


def _terms(view: View) -> int:
    """How many values are added before they are divided."""
    if view.operator == "MEAN" and view.case.inputs and view.expected.size:
        return max(1, view.case.inputs[0].size // view.expected.size)
    if view.operator == "AVERAGE_POOL_2D":
        return max(1, int(view.options.get("filterHeight", 1)) * int(view.options.get("filterWidth", 1)))
    return 1


def _bounds(above: npt.NDArray[np.bool_], below: npt.NDArray[np.bool_], low: float, high: float) -> str:
    return " and ".join([*([f"{low:g}"] if below.any() else []), *([f"{high:g}"] if above.any() else [])])


def _word(value: float) -> str:
    return (
        f"{value:.6g}"
        if np.isfinite(value)
        else ("NaN" if np.isnan(value) else f"{value:+}".replace("inf", "infinity"))
    )


def _words(values: Numbers, places: npt.NDArray[np.bool_]) -> str:
    return " or ".join(sorted({_word(value) for value in values[places][:1000]})[:_MOST_WORDS])


def _remedy(view: View) -> str:
    """What to do where a value is beyond a range."""
    return "keep the operator on the CPU, or scale the values" if view.case.precision == "fp32" else _IN_FP32
