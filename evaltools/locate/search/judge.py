"""Says of figures alone what they mean: how far off is too far, and in which precision a delegate computes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.locate.parts.difference import HALVES, ONE_SIDED
from evaltools.locate.parts.part import TensorRuns
from evaltools.locate.search.arithmetic import Arithmetic
from evaltools.result.locate import Errors

FP32, FP16, BF16, INT8 = "fp32", "fp16", "bf16", "int8"
UNKNOWN: Final = ""
LOWER: Final = (FP32, INT8, FP16, BF16)
"""From all digits of float32 over int8, of what 8-bit weights multiply, to the lowest precision."""
_UNIT_ROUNDOFF: Final = {FP32: 2.0**-24, FP16: 2.0**-11, BF16: 2.0**-8}
_TIMES_FLOOR: Final = 3.0
_TIMES_NOISE: Final = 5.0
_ROUNDINGS: Final = 8.0
_FEWEST_OPERATORS: Final = 5
_STEPS: Final = 256
"""What a whole number of 8 bits can be: in a lower precision, sums of so many steps are not exact."""
_CANCELLED: Final = 32.0
"""How many times larger than their sum products may be that cancel each other, as far as that is allowed for."""
_APPROXIMATION: Final = 1e-4
JUMPS: Final = frozenset(
    {
        "ARG_MAX", "ARG_MIN", "TOPK_V2", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5",
        "TFLite_Detection_PostProcess",
    }
)  # fmt: skip
"""Operators whose outputs change places where inputs change a little; accumulated errors behind them say nothing."""


class Limit(Struct, frozen=True):
    """How far a tensor may be off: ``largest`` in each element, ``one_sided`` to one side on average, in steps.

    ``precision`` is the one that this allows for: that of the delegate, or int8 of what 8-bit weights multiply.
    """

    largest: float
    one_sided: float = math.inf
    precision: str = FP32

    def times(self, factor: float) -> Limit:
        """So many times as much in each element."""
        return replace(self, largest=factor * self.largest)

    def beyond(self, runs: TensorRuns) -> int:
        """How many of the runs are further off."""
        sides = runs.one_sided or (0.0,) * len(runs.largest)
        return sum(
            largest > self.largest or abs(side) > self.one_sided
            for largest, side in zip(runs.largest, sides, strict=True)
        )

    def share(self, runs: TensorRuns) -> float:
        """The worst run as a share of what is allowed: above 1 it is too far off.

        >>> Limit(1.0, 0.4).share(TensorRuns(0, "x", "steps", (1.0, 1.0), one_sided=(0.1, -0.8)))
        2.0
        """
        if not self.largest:
            return math.inf if runs.worst else 0.0
        return max(runs.worst / self.largest, *(abs(side) / self.one_sided for side in runs.one_sided), 0.0)

    def only_to_one_side(self, runs: TensorRuns) -> float:
        """By how many steps the worst run is off on average where no single element is too far off, else 0."""
        side = max(runs.one_sided, key=abs, default=0.0)
        return side if runs.worst <= self.largest and abs(side) > self.one_sided else 0.0


def stated_precision(configuration: Configuration) -> str:
    """The precision of floats that the flags of a configuration ask for; empty where they do not say.

    >>> stated_precision(Configuration.from_text("c", "use_xnnpack=true xnnpack_force_fp16=true"))
    'fp16'
    >>> stated_precision(Configuration.from_text("c", "external_delegate_path=npu.so"))
    ''
    """
    settings = configuration.delegates
    names = [delegate.name for delegate in settings.requested]
    if not names or names == ["XNNPACK"]:
        return FP16 if settings.value("xnnpack_force_fp16") is True else FP32
    if names == ["GPU"]:
        return FP16 if settings.value("gpu_precision_loss_allowed") is True else FP32
    return UNKNOWN


def limit_of(runs: TensorRuns, arithmetic: Arithmetic, precision: str) -> Limit:
    """How far an operator may be off alone: :func:`tolerance` in each element, and to one side.

    A step in each element is no rounding. The CPU's kernels (builtin, reference, XNNPACK) differ in up to 24 % of the
    elements of 19 int8 and uint8 models, each operator alone, mostly to the same side, since their rules for rounding
    do; but by 5 steps in LSTMs, where kernels are many steps apart. Results that are cut off are half a step too
    small. So what rules explain is allowed with a margin: ``bias`` of the arithmetic, which says 0.25 of
    most operators, or what kernels do on the inputs at hand, if that is more. With some scales rules differ by half
    a step and more; there, results that are cut off cannot be told from right ones. A lower precision rounds otherwise,
    and has no such limit.

    >>> limit_of(TensorRuns(0, "x", "steps", floors={"kernels": 1.0}), Arithmetic(), "fp32")
    Limit(largest=1.0, one_sided=0.4, precision='fp32')
    """
    largest = tolerance(runs, arithmetic, precision)
    if runs.unit != "steps" or precision != FP32:
        return Limit(largest, precision=INT8 if arithmetic.hybrid and precision == FP32 else precision)
    usual = max(arithmetic.bias, _finite(runs, "kernels, one side"))
    return Limit(largest, usual + ONE_SIDED - HALVES + arithmetic.approximated)


def tolerance(runs: TensorRuns, arithmetic: Arithmetic, precision: str) -> float:
    """How far an operator may be off alone, in the unit of its output.

    Whole numbers of a quantised tensor: one step, or what the CPU's kernels differ by. Floats: three times what the
    CPU's kernels, and rounding inputs and constants once to the precision, make; at least eight roundings of the
    largest value. Where ``sums`` values are added up, in another order each time, roundings of the sum grow with the
    square root of that number, of which all is allowed, in a lower precision a third. ``hybrid`` operators, float
    with weights in 8 bits, quantise what is fed. Half of the largest value is never right.

    >>> tolerance(TensorRuns(0, "x", "absolute", magnitude=2.0, floors={"kernels": 1e-5}), Arithmetic(), "fp32")
    3.0000000000000004e-05
    """
    sums, approximated = arithmetic.sums, arithmetic.approximated
    if runs.unit == "steps":
        root = math.sqrt(max(1, sums))
        inexact = 0.0 if precision == FP32 else (_CANCELLED + root) * _STEPS * _UNIT_ROUNDOFF[precision]
        return max(1.0, _finite(runs, "kernels")) + approximated + inexact
    names = ["kernels"] + (["xnnpack fp16"] if precision == FP16 else []) + (["int8"] if arithmetic.hybrid else [])
    floors = [_TIMES_FLOOR * _finite(runs, name) for name in names]
    floors.append(_TIMES_FLOOR * math.sqrt(max(1, sums)) * _finite(runs, "float32"))
    if precision != FP32:
        floors.append(_TIMES_FLOOR * max(1.0, math.sqrt(sums) / 3) * _finite(runs, precision))
    roundings = _ROUNDINGS * (_TIMES_FLOOR if approximated else 1.0)
    least = max(roundings * _UNIT_ROUNDOFF[precision], _APPROXIMATION if approximated else 0.0) * runs.magnitude
    return min(max(*floors, least), runs.magnitude / 2 or math.inf)


def ordinary(shares: Sequence[float]) -> float:
    """By what the tolerances of a low precision are too strict for a delegate, 1 where they are not.

    ``shares`` are errors of its operators alone, each divided by its tolerance. What most of them do is no fault of
    one: three times their median is allowed. Fewer than five operators say nothing.

    >>> ordinary([0.6, 0.7, 0.6, 0.5, 40.0]), ordinary([0.1] * 5), ordinary([9.0])
    (1.7999999999999998, 1.0, 1.0)
    """
    return max(1.0, _TIMES_FLOOR * statistics.median(shares)) if len(shares) >= _FEWEST_OPERATORS else 1.0


def floor(runs: TensorRuns, precision: str) -> float:
    """What the CPU itself makes: its kernels among themselves, and one rounding to the precision."""
    names = ["kernels", "float32"] + ([] if precision == FP32 else [precision, "xnnpack fp16"])
    return max(_finite(runs, name) for name in names)


def _finite(runs: TensorRuns, name: str) -> float:
    """A floor, 0 where there is none: kernels that overflow excuse nothing."""
    found = runs.floors.get(name, 0.0)
    return found if math.isfinite(found) else 0.0


def found_precision(singles: Sequence[tuple[Sequence[TensorRuns], Arithmetic]]) -> str:
    """The precision in which a delegate computes that does not state it, by what its operators give alone.

    ``singles`` are the operators that it ran, each with its float outputs, and its arithmetic. A lower
    precision needs most of them to be off as far as that explains, and at least two; or every one that is off to have
    no more digits than it: one operator that is off among others that are exact is no precision, but a fault.

    >>> exact = TensorRuns(0, "x", "absolute", (0.0,), magnitude=1.0, floors={"fp16": 5e-4})
    >>> half = TensorRuns(0, "x", "absolute", (4e-4,), magnitude=1.0, floors={"fp16": 5e-4})
    >>> found_precision([([half], Arithmetic()), ([half], Arithmetic()), ([exact], Arithmetic())])
    'fp16'
    >>> found_precision([([half], Arithmetic()), ([exact], Arithmetic())])
    'fp32'
    """

    def within(outputs: Sequence[TensorRuns], arithmetic: Arithmetic, precision: str) -> bool:
        return all(runs.worst <= tolerance(runs, arithmetic, precision) for runs in outputs)

    off = [each for each in singles if not within(*each, FP32)]
    if not off:
        return FP32
    explained = {precision: [each for each in off if within(*each, precision)] for precision in (BF16, FP16)}
    for precision in (BF16, FP16):  # what has the digits of bf16 has those of fp16, too
        rounded = all(precision in runs.rounded for outputs, _ in off for runs in outputs)
        if rounded and len(explained[precision]) == len(off):
            return precision
    for precision in (FP16, BF16):
        if 2 * len(off) > len(singles) and 5 * len(explained[precision]) >= 4 * len(off) and len(off) > 1:
            return precision
    return FP32


def own_digits(outputs: Sequence[TensorRuns], arithmetic: Arithmetic) -> str:
    """The lower precision that all floats given could be written in, where an operator is off; empty for none.

    >>> half = TensorRuns(0, "x", "absolute", (4e-4,), magnitude=1.0, rounded=("fp16",))
    >>> own_digits([half], Arithmetic())
    'fp16'
    """
    if all(runs.worst <= tolerance(runs, arithmetic, FP32) for runs in outputs):
        return UNKNOWN
    return next((each for each in (BF16, FP16) if all(each in runs.rounded for runs in outputs)), UNKNOWN)


def beyond_noise(runs: TensorRuns, limit: Limit, noise: float) -> bool:
    """Whether a part is further off than its last operator alone may be, and than small errors before it explain."""
    return runs.worst > max(limit.largest, _TIMES_NOISE * noise)


def least_limit(runs: TensorRuns, precision: str, sums: int = 1) -> Limit:
    """The tolerance of a tensor of which no floor was measured: roundings of its largest value, as in tolerance().

    >>> runs = TensorRuns(0, "x", "absolute", magnitude=2.0**24)
    >>> least_limit(runs, "fp32").largest, least_limit(runs, "fp32", sums=100).largest
    (8.0, 80.0)
    """
    if runs.unit == "steps":
        return Limit(1.0)
    root = math.sqrt(max(1, sums)) / (1.0 if precision == FP32 else 3.0)
    return Limit(_ROUNDINGS * max(1.0, root) * _UNIT_ROUNDOFF[precision] * runs.magnitude)


def errors(runs: TensorRuns, limit: Limit) -> Errors:
    """The figures of a tensor, held against a limit."""
    return Errors(
        worst=runs.worst,
        median=statistics.median(runs.largest),
        relative=runs.relative,
        runs=len(runs.largest),
        beyond=limit.beyond(runs),
        first_not_finite=runs.not_finite_run,
    )


def furthest(outputs: Sequence[TensorRuns], limits: Mapping[int, Limit]) -> TensorRuns:
    """The output that is furthest beyond its limit, as a share of it."""
    return max(outputs, key=lambda runs: limits[runs.tensor].share(runs))
