"""What a task says of one configuration beside its figures, for limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from evaltools.metrics.interval import Interval
from evaltools.metrics.means import MeanOfScores
from evaltools.metrics.power import Change, Share


class ScoreMean(Struct, frozen=True):
    """The mean of ``count`` scores with their standard deviation; ``better`` is the direction that is wished for.

    ``unequal``, ``low``, ``high`` and ``is_bounded`` are as in :class:`~evaltools.metrics.means.MeanOfScores`.
    ``scores`` are those of each example in order, where all were recorded. ``margin`` is the change that counts as none
    where the metric has one of its own, ``bounds`` are those that it states. ``interval`` is that of the mean, None for
    none.
    """

    mean: float
    deviation: float
    count: int
    better: Literal["higher", "lower"]
    scores: list[float] = field(default_factory=list)
    margin: float | None = None
    unequal: int = 0
    low: float = 0.0
    high: float = 0.0
    is_bounded: bool = False
    bounds: tuple[float, float] | None = None
    interval: Interval | None = None

    @property
    def of_scores(self) -> MeanOfScores:
        """The mean with its bounds."""
        return MeanOfScores(self.mean, self.deviation, self.count, self.unequal, self.low, self.high, self.is_bounded)


OutputFigures = tuple[Sequence[str], Mapping[str, float | None]]
"""The figures of one output, with the names that it goes by."""


class Judged(Struct, frozen=True):
    """What a task says of one configuration beside its figures.

    ``outputs`` has the figures of each output, ``shares`` the counts behind figures that are shares, ``means`` the
    figures that are means of scores, ``changes`` those against the reference. ``ranks`` has the rank of the right
    label of each recorded example, from 0, None where it is not among the best; ``resampled`` figures over resamples of
    the examples, which are the same for all configurations. ``times_us`` are the single times behind the latency, in
    the order of the examples, where the result holds them.
    """

    outputs: Sequence[OutputFigures] = ()
    shares: Mapping[str, Share] = field(default_factory=dict)
    means: Mapping[str, ScoreMean] = field(default_factory=dict)
    changes: Mapping[str, Change] = field(default_factory=dict)
    ranks: Sequence[int | None] = ()
    resampled: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    times_us: Sequence[float] = ()
