"""What the figures of one operator mean: the verdict rule applied to it, and the precision that its delegate shows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.gates.verdict import (
    NOT_DECIDED,
    PASSES,
    NoiseFloor,
    OutputVerdict,
    Seen,
    far_variants,
    judge_runs,
)
from evaltools.metrics.output_difference import RunDifference
from evaltools.model.rounding import UNIT_ROUNDOFF
from evaltools.operators.arithmetic import Arithmetic
from evaltools.operators.part import TensorRuns

FP32, INT8, FP16, BF16 = "fp32", "int8", "fp16", "bf16"
LOWER: Final = (FP32, INT8, FP16, BF16)
"""From all digits of float32 over int8, of what 8-bit weights multiply, to the lowest precision."""
_ROUNDED: Final = (FP16, BF16)
_APPROXIMATION: Final = 5e-5
"""How far off operators are that hardware computes by tables or polynomials, as one more variant of the CPU."""
_QUANTUM: Final = 1.0
_STEPS: Final = 256
"""What a whole number of 8 bits can be: in a lower precision, sums of so many steps are not exact."""
_CANCELLED: Final = 32.0
"""How many times larger than their sum products may be that cancel each other, as far as that is allowed for."""
_FEWEST_OPERATORS: Final = 5
_USUAL: Final = 3.0
JUMPS: Final = frozenset(
    {
        "ARG_MAX", "ARG_MIN", "TOPK_V2", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5",
        "TFLite_Detection_PostProcess",
    }
)  # fmt: skip
"""Operators whose outputs change places where inputs change a little; accumulated errors behind them say nothing."""


class Limit(Struct, frozen=True):
    """How far a tensor may be off: its ``size`` as the rule counts it, which does not matter within ``steps``.

    ``precision`` is the one that this allows for: that of the delegate, or int8 of what 8-bit weights multiply.
    """

    size: float
    steps: float = 0.0
    precision: str = FP32

    def at_least(self, size: float) -> Limit:
        """The same, or more where that is more."""
        return replace(self, size=max(self.size, size))

    def beyond(self, runs: TensorRuns) -> int:
        """How many of the runs are further off."""
        pairs = zip(runs.largest, runs.sizes, strict=True)
        return sum(largest > self.steps and size > self.size for largest, size in pairs)

    def share(self, runs: TensorRuns) -> float:
        """The worst run as a share of what is allowed: above 1 it is too far off.

        >>> Limit(0.5, 1.0).share(TensorRuns(0, "x", "steps", (2.0,), (1.0,)))
        2.0
        """
        size = size_of(runs, self.steps)
        return size / self.size if self.size else math.inf if size else 0.0

    def of_element(self, runs: TensorRuns) -> float:
        """How far a single element may be off, in the tensor's own unit: at most half of what the worst one is."""
        if runs.unit == "steps":
            return self.steps
        return min(self.size * runs.magnitude, runs.worst / 2 if math.isfinite(runs.worst) else math.inf)


def size_of(runs: TensorRuns, steps: float) -> float:
    """The size of the worst run; none where no element is more than so many steps off."""
    return runs.relative if runs.worst > steps else 0.0


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
    return ""


def variants_of(arithmetic: Arithmetic, stated: str) -> tuple[str, ...]:
    """The variants of the CPU that an operator is compared with, where its delegate computes in a stated precision."""
    rounded = _ROUNDED if not stated else _ROUNDED[: LOWER.index(stated) - 1] if stated in _ROUNDED else ()
    return ("kernels", "float32", *(["int8"] if arithmetic.hybrid else []), *rounded)


def judge(runs: TensorRuns, arithmetic: Arithmetic, precision: str) -> OutputVerdict:
    """The verdict rule for a single operator, with the precisions that its delegate may compute in.

    Each number that is added up counts as a node, for roundings grow with the root of both.
    """
    lower = [each for each in _ROUNDED if LOWER.index(each) <= LOWER.index(precision)]
    precisions = {name: _seen(runs.variants.get(name, 0.0)) for name in lower}
    roundings = {"float32": _seen(runs.variants.get("float32", 0.0))}
    if arithmetic.hybrid and precision != FP32:
        roundings[INT8] = _seen(runs.variants.get(INT8, 0.0))
    if arithmetic.approximated:
        roundings["approximation"] = _seen(_APPROXIMATION)
    kernels = {"kernels": _seen(runs.variants.get("kernels", 0.0))}
    if far_variants(kernels, roundings | precisions):
        kernels = {}
    found = _seen(size_of(runs, quanta(runs, arithmetic, precision)))
    return judge_runs(found, NoiseFloor(kernels | roundings, precisions, arithmetic.sums))


def _seen(size: float) -> Seen:
    return Seen({0: RunDifference(size)})


def quanta(runs: TensorRuns, arithmetic: Arithmetic, precision: str) -> float:
    """How many steps are no difference: one; in a lower precision as many as sums of that precision are off by.

    None where values are further off to one side, on average, than rounding makes them.
    """
    if runs.unit != "steps":
        return 0.0
    if precision not in _ROUNDED:
        return 0.0 if runs.bias > arithmetic.most_bias else _QUANTUM
    return _QUANTUM + (_CANCELLED + math.sqrt(max(1, arithmetic.sums))) * _STEPS * UNIT_ROUNDOFF[precision]


def limit_of(runs: TensorRuns, arithmetic: Arithmetic, precision: str) -> Limit:
    """How far an operator may be off by itself by the rule; anything where rounding moves it too far to say."""
    allowed = INT8 if arithmetic.hybrid and precision == FP32 else precision
    verdict = judge(runs, arithmetic, allowed)
    size = math.inf if verdict.grade == NOT_DECIDED else verdict.tolerances[NOT_DECIDED]
    return Limit(size, quanta(runs, arithmetic, allowed), allowed)


def least_limit(runs: TensorRuns, precision: str, sums: int = 1) -> Limit:
    """The limit of a tensor of which no variant was measured.

    >>> round(least_limit(TensorRuns(0, "x", "absolute", magnitude=1.0), "fp32").size * 2**24)
    16
    """
    return limit_of(replace(runs, variants={}), Arithmetic(sums), precision)


def precision_needed(runs: TensorRuns, arithmetic: Arithmetic) -> str:
    """The first precision that explains a single operator, empty where none does."""
    tried = LOWER if arithmetic.hybrid else (FP32, *_ROUNDED)
    return next((each for each in tried if judge(runs, arithmetic, each).grade in PASSES), "")


def found_precisions(floats: Mapping[int, Sequence[TensorRuns]], needed: Mapping[int, str]) -> dict[int, str]:
    """The precision in which each operator of a delegate computes that does not state it.

    ``floats`` has the outputs of each operator that it ran, ``needed`` the lowest :func:`precision_needed` of these.
    An operator that is off and of which all values could be written in a lower precision computes in that. The others
    do where most operators are off as far as that explains, and at least two, or where all that are off can be written
    in it: one operator that is off among others that are exact is not a precision, but a fault.

    >>> exact, half = TensorRuns(0, "x", "absolute"), TensorRuns(0, "y", "absolute")
    >>> found_precisions({0: [half], 1: [half], 2: [exact]}, {0: "fp16", 1: "fp16", 2: "fp32"})
    {0: 'fp16', 1: 'fp16', 2: 'fp16'}
    >>> found_precisions({0: [half], 1: [exact]}, {0: "fp16", 1: "fp32"})
    {0: 'fp32', 1: 'fp32'}
    """
    off = [place for place in floats if needed[place] not in (FP32, INT8)]
    digits = {place: _digits(floats[place]) for place in off}
    usual = FP32
    for precision in _ROUNDED:
        explained = [place for place in off if needed[place] and LOWER.index(needed[place]) <= LOWER.index(precision)]
        is_most = len(off) > 1 and 2 * len(off) > len(floats) and 5 * len(explained) >= 4 * len(off)
        if off and (is_most or (len(explained) == len(off) and all(digits[place] for place in off))):
            usual = precision
            break
    return {place: digits.get(place) or usual for place in floats}


def _digits(outputs: Sequence[TensorRuns]) -> str:
    """The lower precision that all values could be written in, bf16 first, whose numbers are fp16's, too."""
    return next((each for each in reversed(_ROUNDED) if all(each in runs.rounded for runs in outputs)), "")


def usual_share(shares: Sequence[float]) -> float:
    """By what the limits of a low precision are too strict for a delegate, 1 where they are not.

    ``shares`` are errors of its single operators, each divided by its limit. What most of them do is not a fault of
    one: three times their median is allowed. Fewer than five operators say nothing.

    >>> usual_share([0.6, 0.7, 0.6, 0.5, 40.0]), usual_share([0.1] * 5), usual_share([9.0])
    (1.7999999999999998, 1.0, 1.0)
    """
    return max(1.0, _USUAL * statistics.median(shares)) if len(shares) >= _FEWEST_OPERATORS else 1.0


def furthest(outputs: Sequence[TensorRuns], limits: Mapping[int, Limit]) -> TensorRuns:
    """The output that is furthest beyond its limit, as a share of it."""
    return max(outputs, key=lambda runs: limits[runs.tensor].share(runs))
