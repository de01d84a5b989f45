"""How often intervals and gates are right: coverage, wrong pass and wrong fail on noise whose truth is known.

``python -m benchmarks intervals [--trials=1000]``

Each row draws so many evaluations from one kind of noise, with a fixed seed. ``coverage``: the share of 95 % intervals
that hold the truth, of those that are given; ``given``: how many are. ``wrong pass`` and ``wrong fail``: a gate at 95 %
whose limit is the truth itself, so that each side may err in 5 %. ``width``: the median one of the intervals given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.metrics.bounds_of_means import t_quantile
from evaltools.metrics.interval import confidence_of_each
from evaltools.metrics.latency import LatencyRatio, latency_ratio, median_interval
from evaltools.metrics.means import MeanChange, mean_change
from evaltools.metrics.metric import SHARE
from evaltools.metrics.power import examples_to_decide, examples_to_judge
from evaltools.metrics.proportions import PairedCounts, change_bound, change_interval, mcnemar_p, share_bound
from evaltools.metrics.resampled import ResampledChange, differing_examples, resample_weights
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

PARAMETERS: Final = (Parameter("trials", "Evaluations per row.", default=1000),)
Chance = np.random.Generator
Bounds = tuple[float, float]
PICTURES: Final = 300
DRAWS: Final = 1000


class Row(Struct, frozen=True):
    """Shares, 0..1; ``coverage`` is None where there are only one-sided bounds, the others where there are none.

    ``width`` is the median one of the intervals that are given, where it is to be compared.
    """

    what: str
    noise: str
    given: float
    coverage: float | None
    wrong_pass: float | None = None
    wrong_fail: float | None = None
    width: float | None = None


def main(arguments: list[str]) -> int:
    """Simulate and print a table."""
    trials = parse_flags("intervals", "", "", {"flags": PARAMETERS}, arguments).number("trials")
    print("| what | noise | given | coverage | wrong pass | wrong fail | width |\n|---|---|---|---|---|---|---|")
    kinds = (
        shares,
        gates_of_several,
        paired_shares,
        few_differing,
        own_means,
        lost_means,
        latency_ratios,
        correlated_ratios,
        unquiet_ratios,
        medians,
    )
    for simulate in kinds:
        for row in simulate(trials):
            cells = [_percent(value) for value in (row.given, row.coverage, row.wrong_pass, row.wrong_fail)]
            width = "" if row.width is None else f"{row.width:.2g}"
            print(f"| {row.what} | {row.noise} | {' | '.join(cells)} | {width} |", flush=True)
    print("\n| how many examples | rates | said | decided by them |\n|---|---|---|---|")
    for question, rates, said, decided in planned(trials):
        print(f"| {question} | {rates} | {said} | {_percent(decided)} |", flush=True)
    return 0


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def shares(trials: int) -> Iterator[Row]:
    """Gates on a share; where it is better higher, the lower bound passes and the upper one fails."""
    chance = np.random.default_rng(1)
    for count, share in ((200, 0.999), (200, 0.9), (1000, 0.7), (50, 0.98)):
        passes = fails = 0
        for successes in chance.binomial(count, share, trials).tolist():
            passes += share_bound(successes, count, 0.95, upper=False) > share
            fails += share_bound(successes, count, 0.95, upper=True) < share
        yield Row("top1 >= LIMIT", f"{count} examples, share {share:g}", 1.0, None, passes / trials, fails / trials)


def gates_of_several(trials: int) -> Iterator[Row]:
    """Gates with several limits that are all the truth itself: how often any of them is broken, Holm's first step."""
    for number in (1, 4, 12):
        chance = np.random.default_rng(9)
        confidence = confidence_of_each(0.95, number)
        fails = sum(
            any(share_bound(count, 1000, confidence, upper=True) < 0.9 for count in successes)
            for successes in chance.binomial(1000, 0.9, (trials, number)).tolist()
        )
        what = f"any of {number} limits top1 >= LIMIT"
        yield Row(what, "1000 examples each, share 0.9", 1.0, None, None, fails / trials)


def paired_shares(trials: int) -> Iterator[Row]:
    """The change of a share by Tango's score."""
    chance = np.random.default_rng(2)
    for count, lost, gained in ((200, 0.02, 0.01), (500, 0.02, 0.002), (1000, 0.02, 0.02), (5000, 0.01, 0.005)):
        truth = gained - lost
        held = passes = fails = 0
        for a, b, _ in chance.multinomial(count, [lost, gained, 1 - lost - gained], trials).tolist():
            counts = PairedCounts(count, a, b)
            interval = change_interval(counts)
            held += interval.low <= truth <= interval.high
            passes += change_bound(counts, 0.95, upper=False) > truth
            fails += change_bound(counts, 0.95, upper=True) < truth
        noise = f"{count} examples, {100 * lost:g} % lost, {100 * gained:g} % gained"
        yield Row("top1 drop", noise, 1.0, held / trials, passes / trials, fails / trials)


def few_differing(trials: int, numbers: tuple[int, ...] = (3, 6, 8, 12, 20, 40, 150)) -> Iterator[Row]:
    """A figure that few pictures change, each by so much; how many differ is drawn as well."""
    weights = resample_weights(PICTURES, DRAWS, seed=0)
    kinds: dict[str, tuple[Callable[[Chance, int], npt.NDArray[np.float64]], float]] = {
        "equal losses": (lambda _, count: np.full(count, -1.0), -1.0),
        "losses and gains": (lambda chance, count: chance.choice([-1.0, 1.0], count).astype(np.float64), 0.0),
        "losses of all sizes": (lambda chance, count: -chance.exponential(1, count), -1.0),
        "of all sizes, 70 % losses": (
            lambda chance, count: chance.exponential(1, count) * chance.choice([-1.0, 1.0], count, p=[0.7, 0.3]),
            -0.4,
        ),
    }
    for kind, (draw, mean) in kinds.items():
        for number in numbers:
            chance = np.random.default_rng(3)
            truth = number * mean / PICTURES
            held = passes = fails = 0
            for _ in range(trials):
                influences = np.zeros(PICTURES)
                places = np.flatnonzero(chance.random(PICTURES) < number / PICTURES)
                influences[places] = draw(chance, len(places)) / PICTURES
                differences = weights @ influences
                differing = differing_examples(weights, differences)
                change = ResampledChange(float(influences.sum()), differences.tolist(), PICTURES, differing)
                held += change.bound(0.975, upper=False) <= truth <= change.bound(0.975, upper=True)
                passes += change.bound(0.95, upper=False) > truth
                fails += change.bound(0.95, upper=True) < truth
            noise = f"about {number} of {PICTURES} pictures differ, {kind}"
            yield Row("mAP drop", noise, 1.0, held / trials, passes / trials, fails / trials)


def own_means(trials: int) -> Iterator[Row]:
    """The change of a metric of one's own, better higher and within 0 and 1, of which some examples lose much.

    By the bound that stated bounds guarantee, and by the spread of the examples: then it is given only where 20 of them
    differ, and two do not make most of it. Noise of 0.002 in every example makes all of them differ, though few lose
    anything; nothing but a guarantee is a defence against that.
    """
    for count, kind, share, loses in (
        (94, "all", 0.02, 1.0),
        (94, "all", 0.05, 1.0),
        (200, "all", 0.02, 1.0),
        (400, "all", 0.02, 1.0),
        (800, "all", 0.02, 1.0),
        (94, "all, noise in each", 0.01, 1.0),
        (200, "all, noise in each", 0.02, 1.0),
        (800, "all, noise in each", 0.005, 1.0),
        (94, "parts of all sizes", 0.2, 0.2),
        (200, "parts of all sizes", 0.05, 0.2),
        (800, "parts of all sizes", 0.05, 0.2),
        (40, "parts of all sizes", 1.0, 0.2),
    ):
        chance = np.random.default_rng(10)
        losses = chance.random((trials, count)) < share
        sizes = np.minimum(1.0, chance.exponential(loses, losses.shape)) if loses < 1 else np.ones(losses.shape)
        mean_size = loses * (1 - np.exp(-1 / loses)) if loses < 1 else 1.0
        noise = chance.normal(0, 0.002, losses.shape) if "noise" in kind else np.zeros(losses.shape)
        truth = -share * mean_size
        changes = [mean_change(np.full(count, 0.9), 0.9 + change, SHARE) for change in noise - sizes * losses]
        kind_of_noise = f"{count} examples, {100 * share:g} % lose {kind}"
        yield _row_of_changes(changes, "own metric drop, guaranteed", kind_of_noise, truth, is_guaranteed=True)
        yield _row_of_changes(changes, "own metric drop", kind_of_noise, truth)


def lost_means(trials: int, counts: tuple[int, ...] = (50, 200, 800)) -> Iterator[Row]:
    """The change of a mean without bounds whose differences are normal, skewed, or have losses that few examples show.

    Beside the interval that the mean had before: Student's t, widened by the distance of the smallest from the largest
    score for what was not seen.
    """
    kinds: dict[str, tuple[Callable[[Chance, tuple[int, int]], npt.NDArray[np.float64]], float]] = {
        "normal": (lambda chance, shape: chance.normal(-0.3, 1, shape), -0.3),
        "losses, exponential": (lambda chance, shape: -chance.exponential(1, shape), -1.0),
        "losses, Pareto of 2.1": (lambda chance, shape: -chance.pareto(2.1, shape), -1 / 1.1),
        "losses, Pareto of 1.5": (lambda chance, shape: -chance.pareto(1.5, shape), -2.0),
        "normal, 1 % lose a hundredfold": (
            lambda chance, shape: chance.normal(0, 1, shape) - 100.0 * (chance.random(shape) < 0.01),
            -1.0,
        ),
    }
    for kind, (draw, truth) in kinds.items():
        for count in counts:
            chance = np.random.default_rng(13)
            before = chance.normal(5, 1, (trials, count))
            differences = draw(chance, (trials, count))
            noise = f"{count} examples, {kind}"
            yield _before(before, differences, noise, truth)
            changes = [mean_change(old, old + change) for old, change in zip(before, differences, strict=True)]
            yield _row_of_changes(changes, "own metric drop", noise, truth)


def _before(before: npt.NDArray[np.float64], differences: npt.NDArray[np.float64], noise: str, truth: float) -> Row:
    count = before.shape[1]
    scores = np.concatenate([before, before + differences], axis=1)
    span = np.maximum(0.0, scores.max(axis=1)) - np.minimum(0.0, scores.min(axis=1))
    error = differences.std(axis=1, ddof=1) / np.sqrt(count)
    found = differences.mean(axis=1)

    def reach(confidence: float) -> npt.NDArray[np.float64]:
        unseen = share_bound(0, count, confidence, upper=True)
        reached: npt.NDArray[np.float64] = t_quantile(confidence, count - 1) * error + span * unseen
        return reached

    return Row(
        "own metric drop, as it was",
        noise,
        1.0,
        float(np.mean(np.abs(found - truth) <= reach(0.975))),
        float(np.mean(found - reach(0.95) > truth)),
        float(np.mean(found + reach(0.95) < truth)),
        float(np.median(2 * reach(0.975))),
    )


def _row_of_changes(changes: list[MeanChange], what: str, noise: str, truth: float, is_guaranteed: bool = False) -> Row:
    given = changes if is_guaranteed else [each for each in changes if each.says_enough and not each.rests_on_two]
    bounds = [each.guaranteed if is_guaranteed else each.bound for each in given]
    intervals = [(bound(0.975, False), bound(0.975, True)) for bound in bounds]
    held = [low <= truth <= high for low, high in intervals]
    passes = sum(bound(0.95, False) > truth for bound in bounds)
    fails = sum(bound(0.95, True) < truth for bound in bounds)
    return Row(
        what,
        noise,
        len(given) / len(changes),
        sum(held) / len(given) if given else None,
        passes / len(changes),
        fails / len(changes),
        float(np.median([high - low for low, high in intervals])) if given else None,
    )


def latency_ratios(trials: int) -> Iterator[Row]:
    """The ratio of two configurations whose pairs of times have autocorrelated noise, and of processes that differ."""
    for count, memory in ((200, 0.0), (50, 0.5), (200, 0.5), (200, 0.9), (1000, 0.9)):
        bounds = _ratios_with_memory(trials, count, memory)
        yield _two_sided("latency ratio, of these processes", f"{count} examples, AR(1) {memory:g}", bounds, _RATIO)
    for workers in (3, 8):
        chance = np.random.default_rng(8)
        bounds = [_ratio_of_processes(chance, workers) for _ in range(trials)]
        noise = f"{workers} processes of each, speeds differ by 1 %, 96 examples, AR(1) 0.5"
        yield _two_sided("latency ratio, of such processes", noise, bounds, 1.2)


def correlated_ratios(trials: int) -> Iterator[Row]:
    """The same where neighbours are so correlated that most intervals are withheld, and what is given looks as if not.

    ``wrong of all`` says how often an interval is given that misses the ratio, of all evaluations.
    """
    for count, memory in ((50, 0.8), (50, 0.9), (50, 0.97), (200, 0.97)):
        bounds = _ratios_with_memory(trials, count, memory)
        found = _two_sided("", "", bounds, _RATIO)
        missed = sum(each is not None and not each[0] <= _RATIO <= each[1] for each in bounds)
        noise = f"{count} examples, AR(1) {memory:g}; wrong of all {_percent(missed / trials)}"
        yield Row("latency ratio, of these processes", noise, found.given, found.coverage)


def _ratios_with_memory(trials: int, count: int, memory: float) -> list[Bounds | None]:
    chance = np.random.default_rng(4)
    bounds = []
    for _ in range(trials):
        own, other = (np.exp(0.1 * _series(chance, count, memory)) for _ in range(2))
        bounds.append(_bounds_of(latency_ratio((1e5 * own).tolist(), (_RATIO * 1e5 * other).tolist())))
    return bounds


def unquiet_ratios(trials: int) -> Iterator[Row]:
    """The same where some runs of one side are slow, and where the clock steps by 30 % for a while.

    A step that happens in none of the pairs that were measured cannot be seen. So the truth of clock steps is that of
    the time measured: the ratio of the medians of what the clock did in it. ``wrong of all time`` says how often an
    interval is given that misses the ratio over all time.
    """
    what = "latency ratio, of these processes"
    for count, share, factor in ((20, 0.4, 3.0), (50, 0.3, 3.0), (50, 0.4, 3.0), (200, 0.3, 3.0), (200, 0.4, 1.3)):
        chance = np.random.default_rng(11)
        truth = _ratio_of_mixtures(
            np.zeros(1), np.repeat([0.0, 1.0], [round(10 - 10 * share), round(10 * share)]), factor
        )
        bounds = []
        for _ in range(trials):
            slow = chance.random(count) < share
            bounds.append(_ratio_bounds(chance, np.zeros(count), slow.astype(np.float64), factor))
        yield _two_sided(
            what, f"{count} examples, {100 * share:g} % of one side {factor:g} times as slow", bounds, truth
        )
    for count, life, is_shared in ((50, 10, False), (50, 25, False), (50, 50, False), (200, 50, False), (50, 25, True)):
        chance = np.random.default_rng(12)
        bounds, missed, held = [], 0, 0
        for _ in range(trials):
            own = _clock(chance, count, life)
            other = own if is_shared else _clock(chance, count, life)
            found = _ratio_bounds(chance, own, other, _CLOCK_STEP)
            bounds.append(found)
            if found is not None:
                held += found[0] <= _ratio_of_mixtures(own, other, _CLOCK_STEP) <= found[1]
                missed += not found[0] <= _RATIO <= found[1]
        given = sum(each is not None for each in bounds)
        sides = "both sides" if is_shared else "each side by itself"
        noise = f"{count} examples, steps of the clock after {life} pairs, {sides}"
        noise += f"; wrong of all time {_percent(missed / trials)}"
        yield Row(what, noise, given / trials, held / given if given else None)


_RATIO: Final = 1.2
_CLOCK_STEP: Final = 1.3
_SPREAD: Final = 0.03
"""The deviation of the logarithms of times at one speed."""


def _ratio_bounds(
    chance: Chance, own: npt.NDArray[np.float64], other: npt.NDArray[np.float64], factor: float
) -> Bounds | None:
    """The interval of times of which some (1) are so many times as slow as the others (0)."""
    first, second = (factor**slow * np.exp(_SPREAD * chance.normal(0, 1, len(slow))) for slow in (own, other))
    return _bounds_of(latency_ratio((1e5 * first).tolist(), (_RATIO * 1e5 * second).tolist()))


def _ratio_of_mixtures(own: npt.NDArray[np.float64], other: npt.NDArray[np.float64], factor: float) -> float:
    """The true ratio of the medians of times of which such shares are slow."""
    return _RATIO * _median_of_mixture(float(other.mean()), factor) / _median_of_mixture(float(own.mean()), factor)


def _median_of_mixture(share: float, factor: float) -> float:
    """That of times around 1, of which a share is so many times as slow, by bisection."""
    normal = NormalDist(0, _SPREAD)
    low, high = -1.0, 1.0 + float(np.log(factor))
    for _ in range(60):
        middle = (low + high) / 2
        below = (1 - share) * normal.cdf(middle) + share * normal.cdf(middle - float(np.log(factor)))
        low, high = (low, middle) if below >= 0.5 else (middle, high)
    return float(np.exp(high))


def _clock(chance: Chance, count: int, life: int) -> npt.NDArray[np.float64]:
    """Which of two speeds a clock has at each pair: it changes after so many of them, on average."""
    changes = chance.random(count) < 1 / life
    start = chance.integers(0, 2)
    found: npt.NDArray[np.float64] = ((start + np.cumsum(changes)) % 2).astype(np.float64)
    return found


def _ratio_of_processes(chance: Chance, workers: int) -> Bounds | None:
    """96 examples in turn by so many processes of each configuration, each of which has a speed of its own."""
    first: list[float] = []
    second: list[float] = []
    processes: list[tuple[int, int]] = []
    for number in range(workers):
        count = 96 // workers
        speeds = np.exp(chance.normal(0, 0.01, 2))
        own, other = (np.exp(0.01 * _series(chance, count, 0.5)) for _ in range(2))
        first += (1e5 * speeds[0] * own).tolist()
        second += (1.2e5 * speeds[1] * other).tolist()
        processes += [(number, number)] * count
    return _bounds_of(latency_ratio(first, second, processes))


def _bounds_of(found: LatencyRatio | None) -> Bounds | None:
    return None if found is None or found.interval is None else (found.interval.low, found.interval.high)


def medians(trials: int) -> Iterator[Row]:
    """The median of one process, and of several whose speeds differ."""
    for count, memory in ((50, 0.0), (400, 0.5), (2000, 0.9), (400, 0.97)):
        chance = np.random.default_rng(5)
        bounds = [_median_bounds([_times(chance, count, memory, 10_000)]) for _ in range(trials)]
        yield _two_sided("median, one process", f"{count} runs, AR(1) {memory:g}", bounds, 10_000)
    for rounds in (2, 3, 8):
        chance = np.random.default_rng(6)
        bounds = [
            _median_bounds([_times(chance, 50, 0.0, 10_000 * np.exp(chance.normal(0, 0.03))) for _ in range(rounds)])
            for _ in range(trials)
        ]
        yield _two_sided("median, several processes", f"{rounds} rounds, speeds differ by 3 %", bounds, 10_000)


def planned(trials: int) -> Iterator[tuple[str, str, int, float]]:
    """How often as many examples as the planner says decide its question: 80 % is promised."""
    chance = np.random.default_rng(7)
    for pilot in (
        PairedCounts(200, 1, 0),
        PairedCounts(200, 1, 5),
        PairedCounts(1000, 10, 12),
        PairedCounts(1000, 40, 25),
    ):
        rates = f"{pilot.lost} lost, {pilot.gained} gained of {pilot.count}"
        gate, judged = examples_to_decide(pilot, 0.02), examples_to_judge(pilot, 0.005)
        if gate is not None:
            yield "top1 drop <= 2 points at 95 %", rates, gate, _decided(chance, trials, pilot, gate, _on_limit)
        if judged is not None:
            yield "a verdict, margin 0.5 points", rates, judged, _decided(chance, trials, pilot, judged, _has_verdict)


def _on_limit(counts: PairedCounts) -> bool:
    return change_bound(counts, 0.95, upper=False) >= -0.02 or change_bound(counts, 0.95, upper=True) < -0.02


def _has_verdict(counts: PairedCounts) -> bool:
    interval = change_interval(counts)
    return (interval.low >= -0.005 and interval.high <= 0.005) or mcnemar_p(counts) <= 0.05


def _decided(
    chance: Chance, trials: int, pilot: PairedCounts, count: int, is_decided: Callable[[PairedCounts], bool]
) -> float:
    lost, gained = pilot.lost / pilot.count, pilot.gained / pilot.count
    drawn = chance.multinomial(count, [lost, gained, 1 - lost - gained], trials)
    return sum(is_decided(PairedCounts(count, a, b)) for a, b, _ in drawn.tolist()) / trials


def _two_sided(what: str, noise: str, bounds: list[Bounds | None], truth: float) -> Row:
    """Half of the error of a 95 % interval is on each side, so that is left out."""
    given = [entry for entry in bounds if entry is not None]
    held = sum(low <= truth <= high for low, high in given)
    return Row(what, noise, len(given) / len(bounds), held / len(given) if given else None)


def _median_bounds(series: list[list[int]]) -> Bounds | None:
    found = median_interval(series)
    return None if found is None else (found.low, found.high)


def _times(chance: Chance, count: int, memory: float, median: float) -> list[int]:
    times: list[int] = (median * np.exp(0.3 * _series(chance, count, memory))).round().astype(int).tolist()
    return times


def _series(chance: Chance, count: int, memory: float) -> npt.NDArray[np.float64]:
    """Standard normal numbers of which neighbours have this correlation (AR(1))."""
    from scipy import signal

    noise = chance.normal(0, 1, count + 200)
    series: npt.NDArray[np.float64] = signal.lfilter([np.sqrt(1 - memory * memory)], [1, -memory], noise)[200:]
    return series
