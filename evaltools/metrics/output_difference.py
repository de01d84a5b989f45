"""The difference of one output over a whole run, as it is reported and judged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from evaltools.metrics.difference import Magnitudes, Side, TensorDifference, merge_magnitudes
from evaltools.metrics.native_numbers import NativeError, shortest, summarise_errors
from evaltools.metrics.patterns import Farthest, farthest_channels, farthest_run, gain, run_sizes

_LEAST_UNCOMMON: Final = 0.01
"""Of whole numbers and texts, what differs is a share of those that are not the most frequent, at least of so many."""
_FEW_VALUES: Final = 8
"""Outputs of which fewer numbers lie between the smallest and the largest may be those of another run by chance."""


class Quanta(Struct, frozen=True):
    """Of the elements of a quantised output, how many are off by 0, 1, 2 and more quanta.

    ``rms`` is the root mean square of the difference in quanta.
    """

    off_by_0: int
    off_by_1: int
    off_by_2: int
    off_by_more: int
    max: int
    rms: float

    @property
    def shares(self) -> tuple[float, float, float, float]:
        """The counts as shares of all elements, 0..1."""
        counts = (self.off_by_0, self.off_by_1, self.off_by_2, self.off_by_more)
        total = max(1, sum(counts))
        zero, one, two, more = (count / total for count in counts)
        return zero, one, two, more


class Values(Struct, frozen=True):
    """What one side's values are like, over all runs.

    ``constant``: one and the same value everywhere, in all runs. ``distinct_outputs`` is the number of different
    outputs; with several runs and different inputs, 1 means that the output does not depend on them. ``low`` and
    ``high`` are of finite values, null without any; ``between`` counts the elements that are neither of these two in
    their run.
    """

    nan: int
    infinite: int
    denormal: int
    low: float | None
    high: float | None
    constant: bool
    all_zero: bool
    distinct_outputs: int
    between: int = 0


class Scores(Struct, frozen=True):
    """How many of ``positions`` score vectors have the same best class in both, and what the five best share.

    ``tied_best`` of the others have another best class only because the two have the same score on one side.
    """

    positions: int
    same_best: int
    top5_overlap: float | None
    tied_best: int = 0

    def __post_init__(self) -> None:
        if min(self.same_best, self.tied_best) < 0 or self.same_best + self.tied_best > self.positions:
            raise ValueError(f"{self.same_best} and {self.tied_best} of {self.positions} best classes")

    @property
    def share(self) -> float:
        """Share of positions with the same best class, 0..1."""
        return self.same_best / self.positions

    @property
    def changed(self) -> int:
        """How many positions have another best class, ties apart."""
        return self.positions - self.same_best - self.tied_best


class RunAnswers(Struct, frozen=True):
    """What one run answers: ``changed`` of so many answers are others, ties apart.

    ``size`` is how far the answers moved, where that says more than the elements do; else None. ``by_channel``: each
    channel of the elements counts beside it.
    """

    changed: int
    of: int
    size: float | None = None
    by_channel: bool = False


class KindFigures(Struct, frozen=True):
    """What the difference means for an output of a known ``kind``, by name; null where a figure does not exist.

    ``parts`` has the figure of each part: the IoU of a class, the largest move of a keypoint. ``aside`` has, by axis
    from the last, what is off to one side by most in all runs, and ``levels`` how many numbers test and reference have
    where places are numbers.
    """

    kind: str
    figures: dict[str, int | float | None]
    parts: dict[str, float]
    aside: Mapping[int, Farthest] = {}
    levels: tuple[int, int] | None = None


class OutputDifference(Struct, frozen=True):
    """One output, test against reference, over ``runs`` runs and ``elements`` elements in all.

    ``native`` is the native tool's figure: of raw numbers where both sides have the same type and quantisation, else of
    real ones. Everything else is in real units and over the elements that are finite on both sides (``compared``).
    ``p50``, ``p90`` and ``p99`` are percentiles of the absolute difference. ``relative_rms`` is the root mean square of
    the difference over that of the reference; ``snr_db`` is ``-20 log10`` of it. Null where a figure does not exist:
    ``snr_db`` of identical outputs, ``max_relative`` where the reference is 0 and the test is not.

    ``farthest_run`` and ``farthest_channels``, by axis, are those that differ most; runs are counted from 0 among those
    that are summed up. ``gain`` is the factor, less 1, that
    the test has in common. ``repeated`` counts runs in which one side gives what a side gave before, although the other
    side now gives something else.
    ``changed`` of ``answers`` are others, ties apart: best classes, pixels, keypoints.
    ``same_not_finite`` elements are the same infinity, or NaN, on both sides. ``of_kind`` is null where elements,
    scores and boxes say all.

    ``kind``: ``real`` for floats and dequantised numbers, ``quantised`` for outputs that can be compared in quanta,
    ``exact`` for whole numbers, truth values and texts.
    """

    output: str
    dtype: str
    kind: Literal["real", "quantised", "exact"]
    runs: int
    elements: int
    compared: int
    different: int
    native: NativeError | None
    mean: float | None
    max: float | None
    max_relative: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    relative_rms: float | None
    snr_db: float | None
    cosine: float | None
    quanta: Quanta | None
    never_written: int
    same_shape: bool
    test: Values
    reference: Values
    scores: Scores | None
    farthest_run: Farthest | None = None
    farthest_channels: Mapping[int, Farthest] = {}
    gain: float | None = None
    repeated: int = 0
    changed: int = 0
    answers: int = 0
    same_not_finite: int = 0
    of_kind: KindFigures | None = None

    @property
    def identical(self) -> bool:
        """Whether every element of every run is equal."""
        return self.different == 0

    @property
    def size(self) -> float:
        """The difference of the worst run; infinite where there is no relative one."""
        if self.kind != "exact" and self.relative_rms is None and not self.identical:
            return math.inf
        return self.farthest_run.size if self.farthest_run is not None else self.relative_rms or 0.0


def summarise_differences(
    name: str,
    dtype: str,
    parts: Sequence[TensorDifference],
    dequantised: bool = False,
    native: bool = False,
    of_kind: KindFigures | None = None,
    answers: Sequence[RunAnswers] = (),
) -> OutputDifference:
    """Add up the differences of one output over the runs, at least one.

    ``dequantised`` says that whole numbers of that type stand for real ones; ``of_kind`` is taken as it is, and so are
    the ``answers`` of each run, which are those of scores where there are none.
    """
    compared = sum(part.compared for part in parts)
    squared = sum(part.sums.squared for part in parts)
    reference_squared = sum(part.sums.reference_squared for part in parts)
    magnitudes = merge_magnitudes(part.magnitudes for part in parts)
    relative_rms = _relative_rms(squared, reference_squared) if compared else None
    quantum = _quantum(parts)
    largest = max(part.sums.max_absolute for part in parts)
    p50, p90, p99 = (_percentile(magnitudes, percent, quantum, largest) for percent in (50, 90, 99))
    quanta = _quanta(parts, quantum)
    step = quantum if quanta else 0.0
    is_real = _is_real(dtype, dequantised)
    runs = differences_by_run(dtype, parts, dequantised, answers)
    by_elements = (is_real or quanta is not None) and all(entry.size is None or entry.by_channel for entry in answers)
    aside = {} if of_kind is None else of_kind.aside
    return OutputDifference(
        output=name,
        dtype=dtype,
        kind="quantised" if quanta else "real" if is_real else "exact",
        runs=len(parts),
        elements=sum(part.elements for part in parts),
        compared=compared,
        same_not_finite=sum(part.same_not_finite for part in parts),
        different=sum(part.different for part in parts),
        native=None if dtype == "string" else summarise_errors([part.native_error for part in parts], native),
        mean=sum(part.sums.absolute for part in parts) / compared if compared else None,
        max=shortest(largest) if compared else None,
        max_relative=_finite(max(part.sums.max_relative for part in parts)) if compared else None,
        p50=p50,
        p90=p90,
        p99=p99,
        relative_rms=relative_rms,
        snr_db=-20 * math.log10(relative_rms) if relative_rms else None,
        cosine=_cosine(parts, squared, reference_squared) if compared else None,
        quanta=quanta,
        never_written=sum(part.never_written for part in parts),
        same_shape=all(part.same_shape for part in parts),
        test=_values([part.test for part in parts]),
        reference=_values([part.reference for part in parts]),
        scores=_scores(parts),
        farthest_run=farthest_run([run.size for run in runs]),
        farthest_channels=farthest_channels([part.channels for part in parts], step) if by_elements else aside,
        gain=gain([part.sums.dot for part in parts], [part.sums.reference_squared for part in parts]),
        repeated=sum(run.repeats for run in runs),
        changed=sum(run.changed for run in runs),
        answers=sum(run.answers for run in runs),
        of_kind=of_kind,
    )


class RunDifference(Struct, frozen=True):
    """One run of an output, or of a detector's boxes, as a verdict sees it.

    ``size`` is that of :class:`Farthest`, of keypoints and boxes how far they moved. ``changed`` of ``answers`` are
    others. ``repeats``: one side gives what a side gave in an earlier run, although the other gives something else, and
    so many values are no chance. ``is_level``: only one side has the same number everywhere.
    """

    size: float
    changed: int = 0
    answers: int = 0
    repeats: bool = False
    is_level: bool = False


def differences_by_run(
    dtype: str, parts: Sequence[TensorDifference], dequantised: bool = False, answers: Sequence[RunAnswers] = ()
) -> list[RunDifference]:
    """One entry per run; the arguments are those of :func:`summarise_differences`."""
    answers = answers or [_of_scores(part) for part in parts]
    quantum = _quantum(parts)
    in_quanta = any(part.quanta is not None for part in parts)
    if in_quanta or _is_real(dtype, dequantised):
        squared, reference = [part.sums.squared for part in parts], [part.sums.reference_squared for part in parts]
        counts = [part.compared for part in parts]
        sizes = run_sizes(squared, reference, counts, quantum if in_quanta else 0.0).tolist()
    else:
        sizes = [_share(part) for part in parts]
    if any(entry.size is not None for entry in answers):
        sizes = [entry.size or 0.0 for entry in answers]
    return [
        RunDifference(size, entry.changed, entry.of, repeats, _is_level(part))
        for size, entry, repeats, part in zip(sizes, answers, _repeats(parts), parts, strict=True)
    ]


def _is_level(part: TensorDifference) -> bool:
    """Of numbers that have a size, and of several elements."""
    sides = [side.low == side.high for side in (part.test, part.reference)]
    return sides[0] != sides[1] and not part.common and part.elements > _FEW_VALUES


def _is_real(dtype: str, dequantised: bool) -> bool:
    return dequantised or dtype.startswith(("float", "bfloat", "complex"))


def _share(part: TensorDifference) -> float:
    """Of whole numbers and texts, the share that differs of those that are not the most frequent."""
    uncommon = max(1.0, part.elements - part.common, _LEAST_UNCOMMON * part.elements)
    return min(1.0, part.different / uncommon)


def _of_scores(part: TensorDifference) -> RunAnswers:
    scores = part.scores
    if scores is None:
        return RunAnswers(0, 0)
    return RunAnswers(scores.changed, scores.positions)


def _repeats(parts: Sequence[TensorDifference]) -> list[bool]:
    """By run, whether one side gives what a side gave in an earlier one, where the other side gave something else."""
    pairs = [(part.test, part.reference) for part in parts]
    swapped = [(reference, test) for test, reference in pairs]
    return [ours or theirs for ours, theirs in zip(_first_repeats(pairs), _first_repeats(swapped), strict=True)]


def _first_repeats(pairs: Sequence[tuple[Side, Side]]) -> list[bool]:
    earlier: dict[int, set[int]] = {}
    found = []
    for first, second in pairs:
        known = earlier.get(first.digest, {second.digest})
        found.append(first.between >= _FEW_VALUES and bool(known - {second.digest}))
        earlier.setdefault(first.digest, set()).add(second.digest)
        earlier.setdefault(second.digest, set()).add(second.digest)
    return found


def _percentile(magnitudes: Magnitudes, percent: float, quantum: float, largest: float) -> float | None:
    """The middle of a bin, but no more than the largest magnitude of all."""
    value = _finite(magnitudes.percentile(percent) * quantum)
    return None if value is None else shortest(min(value, largest))


def _relative_rms(squared: float, reference_squared: float) -> float | None:
    if squared == 0:
        return 0.0
    return _finite(math.sqrt(squared / reference_squared)) if reference_squared else None


def _cosine(parts: Sequence[TensorDifference], squared: float, reference_squared: float) -> float | None:
    """The cosine of both sides: 1 for identical outputs, null where one side is all zero."""
    if squared == 0:
        return 1.0
    norm = math.sqrt(sum(part.sums.test_squared for part in parts)) * math.sqrt(reference_squared)
    return _finite(sum(part.sums.dot for part in parts) / norm) if norm else None


def _quantum(parts: Sequence[TensorDifference]) -> float:
    """The real size of a quantum where magnitudes are counted in quanta, else 1."""
    for part in parts:
        if part.quanta is not None and part.max_quanta:
            return part.sums.max_absolute / part.max_quanta
    return 1.0


def _quanta(parts: Sequence[TensorDifference], quantum: float) -> Quanta | None:
    counted = [part.quanta for part in parts if part.quanta is not None]
    if not counted:
        return None
    zero, one, two, more = (sum(counts[index] for counts in counted) for index in range(4))
    mean_square = sum(part.sums.squared for part in parts) / quantum**2 / max(1, zero + one + two + more)
    return Quanta(zero, one, two, more, max(part.max_quanta for part in parts), math.sqrt(mean_square))


def _values(sides: Sequence[Side]) -> Values:
    lows = [side.low for side in sides if not math.isnan(side.low)]
    highs = [side.high for side in sides if not math.isnan(side.high)]
    low, high = (min(lows), max(highs)) if lows else (None, None)
    finite = not any(side.nan or side.infinite for side in sides)
    constant = finite and low is not None and low == high
    return Values(
        nan=sum(side.nan for side in sides),
        infinite=sum(side.infinite for side in sides),
        denormal=sum(side.denormal for side in sides),
        low=None if low is None else shortest(low),
        high=None if high is None else shortest(high),
        constant=constant,
        all_zero=constant and low == 0,
        distinct_outputs=len({side.digest for side in sides}),
        between=sum(side.between for side in sides),
    )


def _scores(parts: Sequence[TensorDifference]) -> Scores | None:
    found = [part.scores for part in parts if part.scores is not None]
    if not found:
        return None
    total = sum(found[1:], start=found[0])
    return Scores(total.positions, total.same_best, total.top5_overlap, total.tied_best)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
