"""Changes from one run to another: two samples of examples, and times of two moments of a machine."""

from __future__ import annotations

import math
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import LatencyRatio
from evaltools.metrics.means import MeanOfScores
from evaltools.metrics.power import Share
from evaltools.metrics.proportions import wilson_interval

RUNS_APART: Final = 1.5
"""By this factor medians of two runs may differ where nothing changed: other processes, other memory, another clock.

Of 12 repeats on a quiet machine of 2 cores, those of an evaluation of a model of 0.07 ms differed by up to 1.64, those
of a diff of one of 0.08 ms by up to 1.2.
"""
_WAKING_US: Final = 20.0
"""What waking a process up adds to one median and not to the other: much of the time of a tiny model."""
UNKNOWN_LOAD: Final = 2.0
"""How much longer a run may have taken where nobody measured what else ran."""
_LEAST_FREE: Final = 0.1
_SHORTEST_US: Final = 0.001


class IndependentShares(Struct, frozen=True):
    """The change of a share from one sample of examples to another.

    >>> change = IndependentShares(Share(56, 70), Share(48, 80))
    >>> round(change.change, 2), round(change.bound(0.975, upper=False), 4)
    (-0.2, -0.3339)
    """

    before: Share
    after: Share

    @property
    def change(self) -> float:
        """The later share minus the earlier one."""
        return self.after.successes / self.after.count - self.before.successes / self.before.count

    def bound(self, confidence: float, upper: bool) -> float:
        """One-sided bound by the Wilson intervals of both (R. G. Newcombe 1998, method 10)."""
        both = 2 * confidence - 1
        before, after = (wilson_interval(each.successes, each.count, both) for each in (self.before, self.after))
        then, now = (each.successes / each.count for each in (self.before, self.after))
        if upper:
            return self.change + math.hypot(after.high - now, then - before.low)
        return self.change - math.hypot(now - after.low, before.high - then)

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> None:  # noqa: ARG002
        """None: recorded examples decide with far fewer."""
        return


class IndependentMeans(Struct, frozen=True):
    """The change of a mean from one sample of scores to another."""

    before: MeanOfScores
    after: MeanOfScores
    sign: float = 1.0

    @property
    def says_enough(self) -> bool:
        """Whether there are bounds of the change: both means have some."""
        return self.before.says_enough and self.after.says_enough

    @property
    def rests_on_two(self) -> bool:
        """Whether two examples make too much of the spread of either."""
        return self.before.rests_on_two or self.after.rests_on_two

    @property
    def change(self) -> float:
        """The later mean minus the earlier one; of what is better when lower with the other sign."""
        return self.sign * (self.after.mean - self.before.mean)

    def bound(self, confidence: float, upper: bool) -> float:
        """One-sided bound: the root of the squares of how far those of both means reach; NaN where one has none."""
        if not self.says_enough:
            return math.nan
        is_up = upper if self.sign > 0 else not upper
        reach = math.hypot(
            self.after.bound(confidence, is_up) - self.after.mean,
            self.before.bound(confidence, not is_up) - self.before.mean,
        )
        return self.change + reach if upper else self.change - reach

    def guaranteed(self, confidence: float, upper: bool) -> float:
        """One-sided bound that holds whatever the scores are, half of the error for each; NaN without bounds."""
        half = (1 + confidence) / 2
        is_up = upper if self.sign > 0 else not upper
        return self.sign * (self.after.guaranteed(half, is_up) - self.before.guaranteed(half, not is_up))

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> None:  # noqa: ARG002
        """None: recorded examples decide with far fewer."""
        return

    def reversed(self) -> IndependentMeans:
        """The change with the other sign."""
        return replace(self, sign=-self.sign)


class PlainChange(Struct, frozen=True):
    """A change of which only the size is known, and no bounds."""

    change: float

    def bound(self, confidence: float, upper: bool) -> float:  # noqa: ARG002
        """NaN: no bound is known."""
        return math.nan

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> None:  # noqa: ARG002
        """None: it is not known."""
        return


class Timed(Struct, frozen=True):
    """The times of one configuration in one run.

    ``median_us`` with its ``interval``, None where it is not known; ``crowding`` is how many times longer a run may
    take than on a quiet machine, since others use its cores (:func:`crowding_of`).
    """

    median_us: float
    interval: Interval | None
    crowding: float


def crowding_of(cpu_count: int, running: float | None, used: float | None, threads: int) -> float:
    """How many times longer work on so many ``threads`` may take, where others are ``running`` and ``used`` cores.

    The larger one of what either says, 1 where the machine is quiet: all that run share the cores, or what others used
    was not free. Both are None where nobody measured, and ``threads`` is -1 for all cores.

    >>> crowding_of(2, 0.2, 0.1, 1), crowding_of(2, 19.0, 1.5, 1), crowding_of(8, None, None, 4)
    (1.0, 10.0, 2.0)
    """
    if running is None and used is None:
        return UNKNOWN_LOAD
    wanted = min(cpu_count, threads) if threads > 0 else cpu_count
    shared = (wanted + (running or 0.0)) / cpu_count
    return max(1.0, shared, wanted / max(_LEAST_FREE, cpu_count - (used or 0.0)))


def ratio_between_runs(before: Timed, now: Timed) -> LatencyRatio | None:
    """How many times as long it takes now, with an interval for runs of two moments; None for times of 0.

    The interval holds what both medians are uncertain by, what runs apart differ by (:data:`RUNS_APART`), and what each
    run may have lost to others on the machine.

    >>> quiet = Timed(1000.0, Interval(990.0, 1010.0), 1.0)
    >>> found = ratio_between_runs(quiet, Timed(2000.0, Interval(1980.0, 2020.0), 1.0))
    >>> found.ratio, round(found.interval.low, 2), round(found.interval.high, 2)
    (2.0, 1.29, 3.12)
    """
    if before.median_us <= 0 or now.median_us <= 0:
        return None
    old, new = (each.interval or Interval(each.median_us, each.median_us) for each in (before, now))
    low = max(0.0, new.low - _WAKING_US) / max(old.high, _SHORTEST_US) / RUNS_APART / now.crowding
    high = new.high / max(old.low - _WAKING_US, _SHORTEST_US) * RUNS_APART * before.crowding
    return LatencyRatio(0, now.median_us / before.median_us, Interval(low, high))
