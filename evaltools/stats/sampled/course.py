"""The course of a sampled run: which examples come next, and whether a limit on the mean of all values is decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from evaltools.stats.interval import Interval
from evaltools.stats.sampled.drawing import EVEN, Block, draw_block, leaning_weights, next_size, shuffled
from evaltools.stats.sampled.evidence import Look, Wealth, growth
from evaltools.stats.sampled.strata import Ints, Numbers, Strata, expected_rates

Answer = Literal["kept", "broken", "open"]
CONFIDENCE: Final = 0.95
"""That of each answer and each bound, one-sided, at all looks together."""
_POINTS: Final = 24
_ROUNDS: Final = 3
_SMALL: Final = 1e-9


class Course:
    """A sampled run over ``strata`` that asks whether the mean of all values is at most ``limit``.

    A limit for each example, ``(N,)``, is one on their mean: over the examples that have a value where some have none.
    ``whole``: all values are whole numbers, which decides sooner. ``even``: every example has the same chance. The same
    ``seed`` and ``part`` (see :func:`~evaltools.stats.sampled.drawing.shuffled`) and the same values give the same
    course. ``answer`` is ``kept`` or ``broken`` as soon as that is known,
    with ``confidence``, an error of at most 5 % each unless stated, however often one looks; without error where all
    examples were drawn, whatever it was before. It stays ``open`` where none has a value.

    >>> from evaltools.stats.sampled.strata import strata_of
    >>> course = Course(strata_of(np.zeros(2000), np.zeros(2000), np.ones(2000)), limit=0.01, seed=1)
    >>> while course.answer == "open":
    ...     block = course.next_block()
    ...     course.add(block, np.zeros(len(block.examples)))
    >>> course.answer, len(course.drawn) < 600
    ('kept', True)
    """

    def __init__(
        self,
        strata: Strata,
        limit: npt.ArrayLike,
        seed: int,
        even: bool = False,
        whole: bool = True,
        part: int = 0,
        confidence: float = CONFIDENCE,
    ) -> None:
        self.strata: Final = strata
        self.drawn: Ints = np.zeros(0, np.int64)
        self.answer: Answer = "open"
        self.decided_after = 0
        self._limits: Final = np.broadcast_to(np.asarray(limit, np.float64), strata.population)
        self._seed, self._even, self._whole, self._part = seed, even, whole, part
        self._needed: Final = -math.log(1 - confidence)
        self._most, self._broken_from = ends_of_limit(float(self._limits.sum()), whole)
        self.looks: Final[list[Look]] = []
        self._values: Numbers = np.zeros(0)
        self._answered = np.zeros(0, np.bool_)
        self._queue = shuffled(strata, seed, part)
        self._rates = expected_rates(strata, self.drawn, self._values)
        self._above = Wealth(strata, [self._broken_from])
        self._below = Wealth(strata.mirrored(), [-self._most])

    @property
    def is_whole(self) -> bool:
        """Whether all examples were drawn."""
        return len(self.drawn) == self.strata.population

    @property
    def has_answers(self) -> bool:
        """Whether any example that was drawn has a value."""
        return bool(self._answered.any())

    @property
    def allowed(self) -> tuple[float, float]:
        """The smallest and the largest sum of all values that the answer allows."""
        if self.answer == "open":
            return -math.inf, math.inf
        return (-math.inf, self._most) if self.answer == "kept" else (self._broken_from, math.inf)

    def next_block(self) -> Block:
        """Draw the examples that come next; :meth:`add` takes their values."""
        size = next_size(len(self.drawn), self.strata.population)
        return draw_block(self.strata, self._queue, self.drawn, self._weights(), size, self._seed, self._part)

    def _weights(self) -> Numbers:
        """Those that promise the fastest growth of the evidence for the answer that is expected."""
        if self._even:
            return np.ones(len(self.strata.low))
        left, rates = self.strata.sizes - self.strata.count(self.drawn), self._rates
        so_far = float(self._values.sum())
        strata, towards, missing = self.strata, rates, self._broken_from - so_far
        if so_far + float((left * rates.mean).sum()) > (self._most + self._broken_from) / 2:
            strata, towards, missing = strata.mirrored(), rates.mirrored(), so_far - self._most
        candidates = [leaning_weights(rates, left, even, strata.reach) for even in EVEN]
        promised = [float(growth(strata, left, weights, towards, [missing])[1][0]) for weights in candidates]
        return candidates[int(np.argmax(promised))]

    def add(self, block: Block, values: Numbers) -> None:
        """Take the values ``(n,)`` of a block of this course, or of another one over the same groups.

        NaN is an example without a value; with one, only all examples together give an answer.
        """
        answered = np.isfinite(values)
        self._answered = np.concatenate((self._answered, answered))
        look = Look(block, np.where(answered, values, 0.0), self._rates)
        self.looks.append(look)
        self.drawn = np.concatenate((self.drawn, block.examples))
        self._values = np.concatenate((self._values, look.values))
        self._rates = expected_rates(self.strata, self.drawn, self._values)
        self._above.add(look)
        self._below.add(look.mirrored())
        found = self._answer()
        if self.answer == "open" or (self.is_whole and found != self.answer):
            self.answer = found
            self.decided_after = len(self.drawn)

    def _answer(self) -> Answer:
        if not self.has_answers:
            return "open"
        if self.is_whole:
            most = self._limits[self.drawn[self._answered]].sum()
            return "kept" if self._values.sum() <= most + _SMALL else "broken"
        if not self._answered.all():
            return "open"
        if self._above.most[0] >= self._needed:
            return "kept"
        return "broken" if self._below.most[0] >= self._needed else "open"

    def interval(self) -> Interval:
        """Bounds of the mean of all values, each with 95 % confidence at all looks.

        None is beyond the answer, unless the other bound is: the lower one is never above the upper one.
        """
        population = self.strata.population
        low, high = bounds_of_total(self.strata, self.looks, self._whole)
        least, most = self.allowed
        low = min(high, max(low, least))
        high = max(low, min(high, most))
        return Interval(low / population, high / population, 2 * CONFIDENCE - 1)


def ends_of_limit(limit: float, whole: bool) -> tuple[float, float]:
    """The largest sum that keeps a limit, and the smallest one that breaks it; ``whole``: sums are whole numbers.

    >>> ends_of_limit(2.5, whole=True), ends_of_limit(2.5, whole=False)
    ((2, 3), (2.5, 2.5))
    """
    return (math.floor(limit + _SMALL), math.floor(limit + _SMALL) + 1) if whole else (limit, limit)


def looks_at(strata: Strata, blocks: Sequence[Block], values: Sequence[Numbers]) -> list[Look]:
    """Blocks that were drawn for something else, with values ``(n,)`` of their examples that have other bounds."""
    drawn, known, looks = np.zeros(0, np.int64), np.zeros(0), []
    for block, own in zip(blocks, values, strict=True):
        looks.append(Look(block, own, expected_rates(strata, drawn, known)))
        drawn, known = np.concatenate((drawn, block.examples)), np.concatenate((known, own))
    return looks


def bounds_of_total(
    strata: Strata, looks: Sequence[Look], whole: bool = True, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Bounds of the sum of all values; each holds with this confidence, however often one looks.

    Those sums remain against which there is too little evidence. ``whole``: all values are whole numbers. Where both
    bounds err so that they would cross, both are the lower one.
    """
    low = 0 - _most_of_total(strata.mirrored(), [look.mirrored() for look in looks], whole, confidence)
    return low, max(low, _most_of_total(strata, looks, whole, confidence))


def _most_of_total(strata: Strata, looks: Sequence[Look], whole: bool, confidence: float) -> float:
    sizes = strata.sizes.astype(np.float64)
    least, most = float((strata.low * sizes).sum()), float((strata.high * sizes).sum())
    for look in looks:
        groups = strata.of_example[look.block.examples]
        least += float((look.values - strata.low[groups]).sum())
        most -= float((strata.high[groups] - look.values).sum())
    for _ in range(_ROUNDS if most > least else 0):
        totals = np.linspace(least, most, _POINTS)
        wealth = Wealth(strata, totals)
        for look in looks:
            wealth.add(look)
        open_ones = np.flatnonzero(wealth.most < -math.log(1 - confidence))
        last = int(open_ones[-1]) if len(open_ones) else 0
        if last == len(totals) - 1:
            break
        least, most = float(totals[last]), float(totals[last + 1])
    return float(math.floor(most + _SMALL)) if whole else most
