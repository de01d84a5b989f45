"""A change by paired draws of the examples, and its bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.metrics.interval import confidence_of_each
from evaltools.metrics.power import chance_of_mean, examples_needed
from evaltools.metrics.proportions import share_bound

SEED: Final = 0
"""The same pictures are drawn for every configuration, in every run over the same pictures."""
FEWEST_EXAMPLES: Final = 50
"""With fewer the draws say too little about examples that were not drawn at all."""
MOST_CONFIDENCE: Final = 0.99
"""Of a bound that a limit may ask for: beyond it a thousand draws have hardly a value."""
_RARE: Final = 0.01
_FEW: Final = 10
"""With fewer examples that differ the exact bound of so small a share counts as well."""
_SMALLEST_ERROR: Final = 1e-9
_CLEAR: Final = 4.0
"""Standard errors beyond which an example's influence is no chance."""
_NOISE: Final = 3.0
"""By so much, over the root of the number of draws, the influences may not add up to the variance."""


def resample_weights(examples: int, resamples: int, seed: int) -> npt.NDArray[np.uint16]:
    """How often each example is in each resample: (``resamples``, ``examples``), each row summing to ``examples``.

    A resample has as many examples as the set, drawn with replacement, all equally likely (Efron and Tibshirani 1993,
    chapter 6). The first rows stay the same when more resamples are asked for.

    >>> resample_weights(4, 2, seed=1).sum(axis=1).tolist()
    [4, 4]
    """
    chance = np.random.default_rng(seed)
    weights = np.zeros((resamples, examples), np.uint16)
    for row in weights if examples else ():
        row[:] = np.bincount(chance.integers(0, examples, examples), minlength=examples)
    return weights


class ResampledChange(Struct, frozen=True):
    """That of any figure, by its ``differences`` over draws of ``examples`` examples, the same for both sides.

    ``differing`` examples make the difference, as :func:`differing_examples` counts them.
    """

    change: float
    differences: Sequence[float]
    examples: int
    differing: float

    def bound(self, confidence: float, upper: bool) -> float:
        """One-sided bound of the change; NaN for fewer than 50 examples.

        The outer one of two. Student's t with as many degrees of freedom as examples differ, less one: only they show
        how much others vary. And the BCa percentile (Efron and Tibshirani 1993, chapter 14), whose quantile is that of
        the same t, which allows for differences that are mostly to one side. Where fewer than 10 examples differ, it
        allows for as many more like them as the exact bound of so small a share does, and for their sizes. Where more
        than 1 % of the draws have no difference (a draw misses an example with a probability of 1/e), that shows it,
        with changes of at least what one example is of all, and the exact bound for examples of which none changed.

        >>> round(ResampledChange(0.0, [0.0] * 1000, 5000, 0).bound(0.95, upper=True), 5)
        0.0006
        """
        if self.examples < FEWEST_EXAMPLES or not self.differences or not np.isfinite(self.differences).all():
            return math.nan
        draws = np.sort(np.asarray(self.differences, np.float64))
        if np.count_nonzero(draws == 0) > _RARE * draws.size:
            unseen = share_bound(0, self.examples, confidence, upper=True)
            more = self._reach_of_few(float(draws.std(ddof=1)), confidence, smallest=1 / self.examples)
            return max(self.change + more, unseen) if upper else min(self.change - more, -unseen)
        quantile = self._t_quantile(confidence) * (1 if upper else -1)
        deviation = float(draws.std(ddof=1))
        bounds = [
            self.change + quantile * deviation,
            _percentile(draws, _bca_level(draws, self.change, quantile)),
        ]
        if self.differing < _FEW:
            few = self._reach_of_few(deviation, confidence, smallest=0.0)
            bounds.append(self.change + few if upper else self.change - few)
        return max(bounds) if upper else min(bounds)

    def p_value(self) -> float:
        """Two-sided: twice the smallest error with which a bound excludes no change, to 2 %; 1 at most."""
        if self.change == 0 or math.isnan(self.bound(0.9, upper=True)):
            return 1.0
        upper = self.change < 0
        included, excluded = _SMALLEST_ERROR, 0.5
        if self._excludes_none(1 - included, upper):
            return 2 * included
        while excluded > 1.02 * included:
            middle = math.sqrt(included * excluded)
            if self._excludes_none(1 - middle, upper):
                excluded = middle
            else:
                included = middle
        return 2 * excluded

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> int | None:
        """How many examples like these decide whether the drop is at most ``limit``, in 80 % of cases.

        With bounds that come closer with the square root of their number. A larger drop is one of so many ``tests``.
        """
        distance = abs(self.change + limit)
        is_dropped = self.change < -limit
        needed = confidence_of_each(confidence, tests) if is_dropped else confidence
        reach = abs(self.change - self.bound(needed, upper=is_dropped))
        if distance == 0 or not reach > 0:
            return None
        deviation = float(np.std(self.differences, ddof=1)) if len(self.differences) > 1 else 0.0

        def chance(count: int) -> float:
            scale = math.sqrt(self.examples / count)
            return chance_of_mean(distance, reach * scale, deviation * scale)

        return examples_needed(chance, self.examples)

    def _excludes_none(self, confidence: float, upper: bool) -> bool:
        bound = self.bound(confidence, upper)
        return bound < 0 if upper else bound > 0

    def _reach_of_few(self, deviation: float, confidence: float, smallest: float) -> float:
        """How far the change may be off, as their number and what each of them makes may be others: independent."""
        differing = round(self.differing)
        if differing == 0:
            return 0.0
        most = self.examples * share_bound(min(differing, self.examples), self.examples, confidence, upper=True)
        size = max(deviation / math.sqrt(differing), smallest)
        beyond_noise = size * size * (1 - _NOISE / math.sqrt(len(self.differences)))
        spread = math.sqrt(max(0.0, beyond_noise - (self.change / differing) ** 2))
        return math.hypot((most - differing) * size, self._t_quantile(confidence) * math.sqrt(differing) * spread)

    def _t_quantile(self, confidence: float) -> float:
        """Wider by what the deviation of so few, with their own mean, is too small."""
        from scipy import special

        differing = max(self.differing, 2.0)
        return float(special.stdtrit(differing - 1, confidence)) * math.sqrt(differing / (differing - 1))


def resampled_change(
    before: Sequence[float | None], after: Sequence[float | None], change: float, examples: int
) -> ResampledChange | None:
    """The change of a figure that is known over the same draws on both sides; None where there are none.

    >>> resampled_change([0.25, None], [0.5, 0.5], 0.25, 60).differences
    [0.25]
    """
    if len(before) != len(after):
        return None
    kept = [number for number, pair in enumerate(zip(before, after, strict=True)) if None not in pair]
    if not kept:
        return None
    differences = [(after[number] or 0.0) - (before[number] or 0.0) for number in kept]
    weights = _weights(examples, len(before))[kept]
    return ResampledChange(change, differences, examples, differing_examples(weights, np.asarray(differences)))


def differing_examples(weights: npt.NDArray[np.uint16], differences: npt.NDArray[np.float64]) -> float:
    """About how many examples make the ``differences`` (R,) over draws; ``weights`` (R, I): how often each was drawn.

    An example's influence is the covariance of its weight and the difference (Efron 2014), known to within the
    deviation of the differences by the root of R. Those of more than four times that are counted. What they leave of
    the variance, beyond noise, is of smaller ones, at least as many as would make it with four times that each: so many
    examples are distinguished from few, and a thousand draws say at most "56 or more".

    >>> draws = resample_weights(400, 1000, seed=1)
    >>> round(differing_examples(draws, draws[:, :8].sum(axis=1) / 400.0))
    8
    """
    count = len(differences)
    variance = float(differences.var())
    if count < 2 or variance == 0:
        return 0.0
    centred = (differences - differences.mean()).astype(np.float32)
    influences = (centred @ weights.astype(np.float32)).astype(np.float64) / count
    smallest = _CLEAR**2 * variance / count
    clear = influences[influences**2 > smallest]
    left = max(0.0, variance * (1 - _NOISE / math.sqrt(count)) - float(clear @ clear))
    return len(clear) + left / smallest


@lru_cache(maxsize=1)
def _weights(examples: int, draws: int) -> npt.NDArray[np.uint16]:
    return resample_weights(examples, draws, SEED)


def _percentile(ordered: npt.NDArray[np.float64], level: float) -> float:
    """Of B ordered draws the one at the whole part of (B + 1) times the share that lies beyond it, from either end."""
    beyond = min(level, 1 - level)
    place = min(max(math.floor((ordered.size + 1) * beyond + 1e-9), 1), (ordered.size + 1) // 2)
    return float(ordered[place - 1] if level < 0.5 else ordered[ordered.size - place])


def _bca_level(ordered: npt.NDArray[np.float64], change: float, quantile: float) -> float:
    """The level of the percentile that stands for a quantile: corrected for bias, and for skewness by acceleration."""
    normal = NormalDist()
    below, up_to = (int(np.searchsorted(ordered, change, side)) for side in ("left", "right"))
    share = min(max((below + up_to) / 2, 1.0), ordered.size - 1.0) / ordered.size
    bias = normal.inv_cdf(share) if 0 < share < 1 else 0.0
    deviation = float(ordered.std())
    if deviation == 0:
        return normal.cdf(quantile)
    acceleration = float(((ordered - ordered.mean()) ** 3).mean()) / (6 * deviation**3)
    shrunk = 1 - acceleration * (bias + quantile)
    if shrunk <= 0:
        return 1.0 if quantile > 0 else 0.0
    return normal.cdf(bias + (bias + quantile) / shrunk)
