"""Measures what a verdict would notice: known faults are planted in the reference's outputs and judged.

A fault counts as noticed where every output that it changes is judged ``diverged``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.gates.verdict import Grade, OutputVerdict, worst
from evaltools.model import TensorInfo
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.result import PlantedFault, Sensitivity
from evaltools.tasks.inference_diff.task import Difference, DiffSummary, OutputComparison

Judge = Callable[[DiffSummary], Sequence[tuple[str, OutputVerdict]]]
"""The verdict on each output, and on the boxes of a detector, by name."""

_MOST_ELEMENTS: Final = 200_000
_MOST_RUNS: Final = 9
"""Eight moves from run to run: what it takes to tell an output that is late from chance."""
_BLOCKS: Final = 64
_NOISE_STEPS: Final = tuple(2.0**-power for power in range(0, 24))
ALL_ZERO: Final = "all zero"
MUCH_NOISE: Final = 1 / 8
"""The output is 18 dB above such noise."""
_SATURATED: Final = 100 / 127
_ROUNDED: Final = "that of the run before, rounded"


def measure_sensitivity(
    outputs: Mapping[int, tuple[Array, ...]],
    comparison: OutputComparison,
    judge: Judge,
    are_small: Callable[[DiffSummary], Sequence[bool]],
    never_change: Collection[str],
) -> Sensitivity | None:
    """Plant every fault in ``outputs``, those of the reference by number of the run; None without two runs.

    ``are_small`` says by output whether rounding explains the size of a difference; ``never_change`` are those that
    are the same in all runs.
    """
    elements = sum(values.size for values in next(iter(outputs.values()), ()))
    runs = unlike_runs(outputs, max(2, min(_MOST_RUNS, _MOST_ELEMENTS // max(1, elements))))
    if len(runs) < 2:
        return None
    planting = _Planting(runs, comparison, judge)
    faults = [planting.plant(name, fault) for name, fault in _FAULTS.items()]
    hardly_change = [name for name in planting.changing_little(are_small) if name not in never_change]
    return Sensitivity(
        runs=len(runs),
        faults=[fault for fault in faults if fault is not None],
        smallest_noise=planting.smallest_noise(),
        alike=sorted(never_change),
        noisy=planting.grade_with_noise(),
        hardly_change=hardly_change,
    )


def unlike_runs(outputs: Mapping[int, tuple[Array, ...]], count: int) -> dict[int, tuple[Array, ...]]:
    """The first ``count`` runs whose outputs no earlier one has, and the first others where these are fewer."""
    seen: set[int] = set()
    unlike: list[int] = []
    others: list[int] = []
    for number, run in outputs.items():
        if len(unlike) == count:
            break
        digest = hash(tuple(values.tobytes() if values.dtype != object else repr(values.tolist()) for values in run))
        (others if digest in seen else unlike).append(number)
        seen.add(digest)
    chosen = sorted([*unlike, *others[: count - len(unlike)]])
    return {number: outputs[number] for number in chosen}


class _Series(Struct, frozen=True):
    """One output of the reference over the runs, with its type, quantisation and range."""

    runs: list[Array]
    info: TensorInfo

    @property
    def zero(self) -> int:
        """The number that stands for 0."""
        return (self.info.zero_point or 0) if self.info.is_quantized else 0

    def clipped(self, values: Array) -> Array:
        """Values rounded and cut to what the output's type can hold."""
        dtype = self.runs[0].dtype
        if dtype.kind in "iu":
            limits = np.iinfo(dtype.name)
            values = np.clip(np.rint(values), limits.min, limits.max)
        with np.errstate(over="ignore"):
            return values.astype(dtype)


class _Planting:
    def __init__(
        self,
        by_number: Mapping[int, tuple[Array, ...]],
        comparison: OutputComparison,
        judge: Judge,
    ) -> None:
        runs = list(by_number.values())
        self._numbers = list(by_number)
        self._runs = runs
        self._tensors = comparison.reference_outputs
        self._series = [_Series([run[position] for run in runs], info) for position, info in enumerate(self._tensors)]
        self._comparison = comparison
        self._judge = judge
        self._planted: dict[str, DiffSummary] = {}
        self._noisy: dict[float, Sequence[tuple[str, OutputVerdict]]] = {}
        self._unchanged = [comparison.compare(run, run) for run in runs]

    def plant(self, name: str, fault: Callable[[_Series], list[Array]]) -> PlantedFault | None:
        """Plant one fault and judge it; None where no output holds numbers.

        ``noticed`` in the result is None where the fault changes nothing.
        """
        faulty = [fault(series) if _is_numeric(series) else series.runs for series in self._series]
        changed = [
            any(not np.array_equal(now, before) for now, before in zip(values, series.runs, strict=True))
            for values, series in zip(faulty, self._series, strict=True)
        ]
        if not any(changed):
            return PlantedFault(name, None, []) if any(map(_is_numeric, self._series)) else None
        summary = self._planted[name] = self._summary(faulty)
        missed = self._missed(summary, changed)
        return PlantedFault(name, not missed, missed)

    def smallest_noise(self) -> float | None:
        """The smallest noise of the steps that is noticed in every output, relative to its root mean square.

        Halving the steps, as more noise is noticed where less is. None as well for a detector, whose classes and count
        are numbers in which noise means nothing.
        """
        if self._unchanged[0].boxes is not None:
            return None
        noticed, missed, step = -1, len(_NOISE_STEPS), 0
        while missed - noticed > 1:
            if self._misses_noise(_NOISE_STEPS[step]):
                missed = step
            else:
                noticed = step
            step = (noticed + missed) // 2
        return _NOISE_STEPS[noticed] if noticed >= 0 else None

    def grade_with_noise(self) -> Grade | None:
        """The grade of the worst output if all have much noise; None for a detector."""
        if self._unchanged[0].boxes is not None:
            return None
        return worst([verdict.grade for _, verdict in self._with_noise(MUCH_NOISE)])

    def _misses_noise(self, size: float) -> bool:
        verdicts = zip(self._with_noise(size), map(_is_numeric, self._series), strict=True)
        return any(verdict.grade != "diverged" for (_, verdict), is_numeric in verdicts if is_numeric)

    def _with_noise(self, size: float) -> Sequence[tuple[str, OutputVerdict]]:
        if size not in self._noisy:
            noisy = [_noisy(series, size) if _is_numeric(series) else series.runs for series in self._series]
            self._noisy[size] = self._judge(self._summary(noisy))
        return self._noisy[size]

    def changing_little(self, are_small: Callable[[DiffSummary], Sequence[bool]]) -> list[str]:
        """The outputs that change from run to run by no more than rounding explains; none of a detector."""
        if self._unchanged[0].boxes is not None:
            return []
        summary = self._planted.get(_ROUNDED)
        if summary is None:
            return []
        return [
            found.output
            for found, is_small, series in zip(summary.outputs, are_small(summary), self._series, strict=True)
            if is_small and _is_numeric(series)
        ]

    def _missed(self, summary: DiffSummary, changed: Sequence[bool]) -> list[str]:
        """The outputs in which the fault is not noticed."""
        verdicts = self._judge(summary)
        by_output = [*changed, *([True] * (len(verdicts) - len(changed)))]
        return [
            name
            for (name, verdict), is_changed in zip(verdicts, by_output, strict=True)
            if is_changed and verdict.grade != "diverged"
        ]

    def _summary(self, faulty: Sequence[Sequence[Array]]) -> DiffSummary:
        differences = [self._compared(run, [values[run] for values in faulty]) for run in range(len(self._runs))]
        return self._comparison.summarise(dict(zip(self._numbers, differences, strict=True)))

    def _compared(self, run: int, values: Sequence[Array]) -> Difference:
        if all(now is before for now, before in zip(values, self._runs[run], strict=True)):
            return self._unchanged[run]
        return self._comparison.compare(tuple(values), self._runs[run])


def _is_numeric(series: _Series) -> bool:
    return series.runs[0].size > 0 and series.runs[0].dtype.kind in "fiu"


def _noisy(series: _Series, size: float) -> list[Array]:
    random = np.random.default_rng(7)
    values = [run.astype(np.float64) - series.zero for run in series.runs]
    with np.errstate(all="ignore"):
        spread = size * float(np.sqrt(np.mean([np.mean(np.square(run)) for run in values])))
        return [series.clipped(run + spread * random.standard_normal(run.shape) + series.zero) for run in values]


def _one_run_zeroed(series: _Series) -> list[Array]:
    middle = len(series.runs) // 2
    return [np.full_like(run, series.zero) if place == middle else run for place, run in enumerate(series.runs)]


def _flattest_run_zeroed(series: _Series) -> list[Array]:
    """The outputs with one run set to zero.

    It is the run with the smallest sum of squares, where zeros are hardest to notice.
    """
    sizes = [float(np.square(run.astype(np.float64) - series.zero).sum()) for run in series.runs]
    smallest = int(np.argmin(sizes))
    return [np.full_like(run, series.zero) if place == smallest else run for place, run in enumerate(series.runs)]


def _one_run_stale(series: _Series) -> list[Array]:
    middle = len(series.runs) // 2
    return [series.runs[place - 1] if place == middle else run for place, run in enumerate(series.runs)]


def _stale(series: _Series) -> list[Array]:
    return [series.runs[max(0, place - 1)] for place in range(len(series.runs))]


def _stale_and_rounded(series: _Series) -> list[Array]:
    """The outputs of the run before, with one rounding more, so that no checksum gives them away."""
    random = np.random.default_rng(11)
    return [series.runs[0], *(_rounded(series, run, random) for run in series.runs[:-1])]


def _rounded(series: _Series, run: Array, random: np.random.Generator) -> Array:
    """Floats moved to the next number, up or down; of whole numbers, one is moved by 1."""
    if run.dtype.kind == "f":
        ends = np.where(random.random(run.shape) < 0.5, -np.inf, np.inf).astype(run.dtype)
        with np.errstate(over="ignore"):
            moved: Array = np.nextafter(run, ends)
        return moved
    values = run.astype(np.float64)
    place = int(random.integers(values.size))
    values.flat[place] += 1 if values.flat[place] <= series.zero else -1
    return series.clipped(values)


def _frozen(series: _Series) -> list[Array]:
    return [series.runs[0] for _ in series.runs]


def _zeroed(series: _Series) -> list[Array]:
    return [np.full_like(run, series.zero) for run in series.runs]


def _mirrored(series: _Series) -> list[Array]:
    return [series.clipped(2.0 * series.zero - run.astype(np.float64)) for run in series.runs]


def _rolled(series: _Series) -> list[Array]:
    return [np.roll(run.ravel(), 1).reshape(run.shape) for run in series.runs]


def _best_swapped(series: _Series) -> list[Array]:
    """The outputs with the best and the second of the last axis swapped; of classes, the two most frequent ones."""
    if series.runs[0].dtype.kind in "iu" and not series.info.is_quantized:
        return [_most_frequent_swapped(run) for run in series.runs]
    if not series.runs[0].ndim or series.runs[0].shape[-1] < 2:
        return series.runs
    swapped = []
    for run in series.runs:
        scores = run.reshape(-1, run.shape[-1]).copy()
        order = np.argpartition(scores, -2, axis=1)[:, -2:]
        rows = np.arange(len(scores))[:, None]
        scores[rows, order] = scores[rows, order[:, ::-1]]
        swapped.append(scores.reshape(run.shape))
    return swapped


def _most_frequent_swapped(run: Array) -> Array:
    values, counts = np.unique(run, return_counts=True)
    if len(values) == 1:
        return run
    first, second = values[np.argsort(counts)[-2:]]
    swapped: Array = np.where(run == first, second, np.where(run == second, first, run))
    return swapped


def _middle_channel(series: _Series, factor: float) -> list[Array]:
    if not series.runs[0].ndim or series.runs[0].shape[-1] < 2:
        return series.runs
    changed = []
    for run in series.runs:
        values = run.astype(np.float64)
        middle = run.shape[-1] // 2
        values[..., middle] = (values[..., middle] - series.zero) * factor + series.zero
        changed.append(series.clipped(values))
    return changed


def _corner_zeroed(series: _Series) -> list[Array]:
    changed = []
    for run in series.runs:
        flat = run.ravel().copy()
        flat[: max(1, flat.size // _BLOCKS)] = series.zero
        changed.append(flat.reshape(run.shape))
    return changed


def _saturated(series: _Series) -> list[Array]:
    largest = max(float(np.abs(run.astype(np.float64) - series.zero).max()) for run in series.runs) * _SATURATED
    return [
        series.clipped(np.clip(run.astype(np.float64), series.zero - largest, series.zero + largest))
        for run in series.runs
    ]


def _offset(series: _Series) -> list[Array]:
    """The outputs moved by a tenth of the range of their values."""
    low, high = min(float(run.min()) for run in series.runs), max(float(run.max()) for run in series.runs)
    return [series.clipped(run.astype(np.float64) + (high - low) / 10) for run in series.runs]


_FAULTS: Final[dict[str, Callable[[_Series], list[Array]]]] = {
    ALL_ZERO: _zeroed,
    "one run zero": _one_run_zeroed,
    "the flattest run zero": _flattest_run_zeroed,
    "the first output for ever": _frozen,
    "the output of the run before": _stale,
    _ROUNDED: _stale_and_rounded,
    "that of the run before, once": _one_run_stale,
    "the sign flipped": _mirrored,
    "moved by one element": _rolled,
    "best and second swapped": _best_swapped,
    "the middle channel zero": lambda series: _middle_channel(series, 0.0),
    "the middle channel x 1.5": lambda series: _middle_channel(series, 1.5),
    "the first 1/64 zero": _corner_zeroed,
    "saturated at 100/127": _saturated,
    "an offset of a tenth of the range": _offset,
}
