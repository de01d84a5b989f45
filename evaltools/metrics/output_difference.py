"""The difference of one output over a whole run, as it is reported and judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct

from evaltools.metrics.difference import Float64s, Magnitudes, Side, TensorDifference, merge_magnitudes
from evaltools.metrics.native_numbers import NativeError, shortest, summarise_errors
from evaltools.metrics.patterns import (
    FEW_ELEMENTS,
    STEPS,
    Farthest,
    Systematic,
    farthest_region,
    farthest_run,
    farthest_share,
    gain,
    offset,
    run_sizes,
)

BEST_CLASS: Final = "other_best_class"
"""The share of positions with another best class, ties apart."""
LARGEST: Final = "other_largest_element"
"""The share of vectors with another largest element, ties apart."""
_SEVERAL_ELEMENTS: Final = 8


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
    ``high`` are of finite values, null without any; ``at_low`` and ``at_high`` count the elements that are just that.
    """

    nan: int
    infinite: int
    denormal: int
    low: float | None
    high: float | None
    constant: bool
    all_zero: bool
    distinct_outputs: int
    at_low: int = 0
    at_high: int = 0


class Scores(Struct, frozen=True):
    """How many of ``positions`` score vectors have the same best class in both, and what the five best share.

    ``tied_best`` of the others have another best class only because the two have the same score on one side.
    """

    positions: int
    same_best: int
    top5_overlap: float | None
    tied_best: int = 0

    @property
    def share(self) -> float:
        """Share of positions with the same best class, 0..1."""
        return self.same_best / self.positions

    @property
    def changed_share(self) -> float:
        """Share of positions with another best class, ties apart, 0..1."""
        return (self.positions - self.same_best - self.tied_best) / self.positions


class JudgedFigure(Struct, frozen=True):
    """A figure that is compared with the same one of the CPU variants; the smaller, the better.

    ``of``: the figure is a share of so many, 0..1, and one more of them is tolerated. Without it, ``at_least`` is
    tolerated.
    """

    name: str
    value: float
    of: int | None = None
    at_least: float = 0.0


class KindFigures(Struct, frozen=True):
    """What the difference means for an output of a known ``kind``, by name; null where a figure does not exist.

    ``parts`` has the figure of each part: the IoU of a class, the largest move of a keypoint. ``decides``: these
    figures are judged in place of the elements.
    """

    kind: str
    figures: dict[str, int | float | None]
    parts: dict[str, float]
    judged: list[JudgedFigure]
    decides: bool


class OutputDifference(Struct, frozen=True):
    """One output, test against reference, over ``runs`` runs and ``elements`` elements in all.

    ``native`` is the native tool's figure: of raw numbers where both sides have the same type and quantisation, else of
    real ones. Everything else is in real units and over the elements that are finite on both sides (``compared``).
    ``p50``, ``p90`` and ``p99`` are percentiles of the absolute difference. ``relative_rms`` is the root mean square of
    the difference over that of the reference; ``snr_db`` is ``-20 log10`` of it. Null where a figure does not exist:
    ``snr_db`` of identical outputs, ``max_relative`` where the reference is 0 and the test is not.

    ``farthest_run``, ``farthest_channel`` (of the last axis) and ``farthest_block`` (of 64 equal parts) are those that
    differ most; runs are counted from 0 among those that are summed up. ``gain`` and ``offset`` are what the difference
    has in common in all elements. ``repeated`` counts runs in which one side gives what the other side gave in another
    run, or gives again what it gave before although the other side now gives another; in ``repeated_far`` of them the
    sides are farther apart than in any run that is none of them. ``late``: the number of runs in which one side moves,
    if in each of them the other gives what that one gave before; else 0. ``late_part``: the same of the one of 32 equal
    parts for which that is most. ``displaced`` counts the runs in which the test's elements are nearly the reference's,
    one place off or mirrored; in ``displaced_exactly`` of them they are so bit for bit.
    ``blank`` counts the runs in which one side has one and the same number in all of several elements, and the other
    has others, by more than a 255th of all that the two sides' values span and by more than a quantum.
    ``same_not_finite`` elements are the same infinity, or NaN, on both sides. ``of_kind`` is null where elements,
    scores and boxes tell all.

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
    farthest_channel: Farthest | None = None
    farthest_block: Farthest | None = None
    gain: Systematic | None = None
    offset: Systematic | None = None
    repeated: int = 0
    repeated_far: int = 0
    late: int = 0
    late_part: int = 0
    displaced: int = 0
    displaced_exactly: int = 0
    blank: int = 0
    same_not_finite: int = 0
    of_kind: KindFigures | None = None

    @property
    def identical(self) -> bool:
        """Whether every element of every run is equal."""
        return self.different == 0

    @property
    def judged_figures(self) -> dict[str, JudgedFigure]:
        """The figures that are judged besides the sizes of differences, by name."""
        found = list(self.of_kind.judged) if self.of_kind is not None else []
        if self.scores is not None:
            found.append(JudgedFigure(BEST_CLASS, self.scores.changed_share, of=self.scores.positions))
        return {figure.name: figure for figure in found}


def summarise_differences(
    name: str,
    dtype: str,
    parts: Sequence[TensorDifference],
    dequantised: bool = False,
    native: bool = False,
    of_kind: KindFigures | None = None,
) -> OutputDifference:
    """Add up the differences of one output over the runs, at least one.

    ``dequantised`` says that whole numbers of that type stand for real ones; ``of_kind`` is taken as it is.
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
    repeated = _repeated(parts)
    step = quantum if quanta else 0.0
    is_real = dequantised or dtype.startswith(("float", "bfloat", "complex"))
    has_size = is_real or quanta is not None
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
        farthest_run=_farthest_run(parts, has_size, step),
        farthest_channel=_farthest_place(parts, lambda part: part.regions.channels, has_size, step),
        farthest_block=_farthest_place(parts, lambda part: part.regions.blocks, has_size, step),
        gain=gain([part.sums.dot for part in parts], [part.sums.reference_squared for part in parts]),
        offset=offset(
            [part.sums.signed for part in parts],
            [part.compared for part in parts],
            [part.sums.reference_squared for part in parts],
        ),
        repeated=len(repeated),
        repeated_far=_farther_than_others(parts, repeated),
        late=_late([(part.test.digest, part.reference.digest) for part in parts]),
        late_part=max(map(_late, _by_part(parts)), default=0),
        displaced=sum(part.displacement != "none" for part in parts),
        displaced_exactly=sum(part.displacement == "exact" for part in parts),
        blank=sum(_blank_runs(parts, has_size)),
        of_kind=of_kind,
    )


class RunDifference(Struct, frozen=True):
    """What one run of an output shows, to be held against the same run of the yardsticks.

    ``size`` is that of :class:`Farthest`. ``blank``: one side has the same number everywhere, and the other has not.
    ``changed`` are the blocks in which several elements differ, ``blank_blocks`` those of them in
    which one side has the same number everywhere.
    """

    size: float
    blank: bool
    changed: frozenset[int]
    blank_blocks: frozenset[int]


def differences_by_run(parts: Sequence[TensorDifference], found: OutputDifference) -> list[RunDifference]:
    """One entry per run of those that ``found`` sums up, in their order."""
    has_size = found.kind != "exact"
    if has_size:
        squared, reference = [part.sums.squared for part in parts], [part.sums.reference_squared for part in parts]
        step = _quantum(parts) if found.quanta is not None else 0.0
        sizes = run_sizes(squared, reference, [part.compared for part in parts], step).tolist()
    else:
        sizes = _shares(parts)
    return [
        RunDifference(size, blank, frozenset(part.regions.changed), frozenset(part.regions.blank))
        for part, size, blank in zip(parts, sizes, _blank_runs(parts, has_size), strict=True)
    ]


def _shares(parts: Sequence[TensorDifference]) -> list[float]:
    return [part.different / max(1, part.elements) for part in parts]


def _farthest_run(parts: Sequence[TensorDifference], is_real: bool, quantum: float) -> Farthest | None:
    """The run that differs most.

    Whole numbers and texts have no size: for them the share of elements that differ counts.
    """
    if not is_real:
        shares = _shares(parts)
        index = max(range(len(parts)), key=shares.__getitem__)
        return Farthest(index, shares[index])
    squared, reference = [part.sums.squared for part in parts], [part.sums.reference_squared for part in parts]
    return farthest_run(squared, reference, [part.compared for part in parts], quantum)


def _farthest_place(
    parts: Sequence[TensorDifference], regions: Callable[[TensorDifference], Float64s], has_size: bool, quantum: float
) -> Farthest | None:
    """The channel or block that differs most; for whole numbers, by the share that differs, where that was counted."""
    found = [regions(part) for part in parts]
    if has_size:
        return farthest_region(found, quantum)
    return farthest_share(found) if all(part.regions.counted for part in parts) else None


def _blank_runs(parts: Sequence[TensorDifference], is_real: bool) -> list[bool]:
    """By run, whether one side has one number everywhere, and the other has not, by more than rounding may level out.

    Of few elements, all may have the same number by chance. Whole numbers and texts have no size: there it takes a
    thousandth of the elements.
    """
    lows = [side.low for part in parts for side in (part.test, part.reference) if not math.isnan(side.low)]
    highs = [side.high for part in parts for side in (part.test, part.reference) if not math.isnan(side.high)]
    step = (max(highs) - min(lows)) / STEPS if lows else math.inf
    blank = []
    for part in parts:
        levelled = part.test.is_level != part.reference.is_level
        several = part.elements > 2 and part.different >= min(_SEVERAL_ELEMENTS, part.elements - 1)
        if is_real:
            is_far = part.sums.max_absolute > step and (part.quanta is None or part.max_quanta > 1)
        else:
            is_far = part.different > FEW_ELEMENTS * part.elements
        blank.append(levelled and several and is_far)
    return blank


def _repeated(parts: Sequence[TensorDifference]) -> set[int]:
    """Runs in which one side gives what the other gave in another run, or the same again where the other moved."""
    pairs = [(part.test.digest, part.reference.digest) for part in parts]
    swapped = [(reference, test) for test, reference in pairs]
    return max(_repeats(pairs), _repeats(swapped), _of_other_runs(pairs), _of_other_runs(swapped), key=len)


def _farther_than_others(parts: Sequence[TensorDifference], repeated: set[int]) -> int:
    """Of the repeated runs, those with a larger difference than all others have: rounding is as large in any."""
    sizes = [part.sums.max_absolute for part in parts]
    usual = max((size for run, size in enumerate(sizes) if run not in repeated), default=0.0)
    return sum(sizes[run] > usual for run in repeated)


def _by_part(parts: Sequence[TensorDifference]) -> list[list[tuple[int, int]]]:
    """The checksums of both sides by run, for each part of the output that differs; none where a run has none."""
    by_run = [list(zip(part.test.parts, part.reference.parts, strict=False)) for part in parts]
    if len({len(pairs) for pairs in by_run}) != 1:
        return []
    by_part = [list(pairs) for pairs in zip(*by_run, strict=True)]
    return [pairs for pairs in by_part if any(test != reference for test, reference in pairs)]


def _late(pairs: Sequence[tuple[int, int]]) -> int:
    """How often one side moves, 0 where the other side is not a run late every time."""
    moves = []
    for sides in (pairs, [(reference, test) for test, reference in pairs]):
        moving = [(given, before) for (_, before), (given, other) in pairwise(sides) if other != before]
        moves.append(len(moving) if all(given == before for given, before in moving) else 0)
    return max(moves)


def _of_other_runs(pairs: Sequence[tuple[int, int]]) -> set[int]:
    """Where a first number is a second one as well, but not that of the same run."""
    seconds = {second for _, second in pairs}
    return {run for run, (first, second) in enumerate(pairs) if first != second and first in seconds}


def _repeats(pairs: Sequence[tuple[int, int]]) -> set[int]:
    """Where a first number comes again with a second one that it did not have before."""
    earlier: dict[int, set[int]] = {}
    found = set()
    for run, (given, other) in enumerate(pairs):
        known = earlier.setdefault(given, set())
        if known and other not in known:
            found.add(run)
        known.add(other)
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
        at_low=sum(side.at_low for side in sides if side.low == low),
        at_high=sum(side.at_high for side in sides if side.high == high),
    )


def _scores(parts: Sequence[TensorDifference]) -> Scores | None:
    found = [part.scores for part in parts if part.scores is not None]
    if not found:
        return None
    total = sum(found[1:], start=found[0])
    return Scores(total.positions, total.same_best, total.top5_overlap, total.tied_best)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
