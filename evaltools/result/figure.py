"""A number of a result with all that is known of it: interval, change, spread, single scores."""

from __future__ import annotations

import math
from typing import Any, Final

from msgspec import Struct, field

from evaltools.metrics.interval import Interval
from evaltools.metrics.metric import Better, Metric

ANSWERS: Final = "answers"
"""The figure of an output of scores: how many answers both have."""
CHANGED_ANSWERS: Final = "answers_changed"
"""How many of them are others, ties apart."""


class Spread(Struct, frozen=True, omit_defaults=True):
    """How numbers of examples differ: what the bounds of their mean follow from.

    ``deviation`` is the standard deviation, ``skewness`` how much they lean to one side. ``unequal`` of them are not
    the most frequent one, of differences not 0. ``by_two`` is the share, 0..1, that the two furthest from the mean have
    of all squares. ``bounds`` are the smallest and the largest that there can be, null where the metric states none.
    """

    deviation: float
    unequal: int = 0
    skewness: float = 0.0
    by_two: float = 0.0
    bounds: tuple[float, float] | None = None


class Change(Struct, frozen=True, omit_defaults=True):
    """How a figure differs from that of the row ``against``: ``value`` is this row's minus the other's.

    Both are of the same ``count`` examples. ``lost`` and ``gained`` count, of a share, the examples that changed sides.
    ``spread`` is that of the differences of single examples, of a mean. ``interval`` is the 95 % interval,
    ``guaranteed`` the wider one that holds for any scores within the bounds that the metric states, and ``p_value`` the
    one of the test, corrected for several comparisons with one row.
    """

    against: str
    value: float
    interval: Interval | None = None
    count: int = 0
    lost: int | None = None
    gained: int | None = None
    spread: Spread | None = None
    p_value: float | None = None
    guaranteed: Interval | None = None


class Figure(Struct, frozen=True, omit_defaults=True):
    """A number of a row, with all that is known of it; ``value`` is null where there is no number for it.

    ``interval`` is the 95 % interval; ``withheld`` says why there is none. The value is that of ``count`` examples,
    runs or pairs. A share has that many examples behind it, of which ``round(value * count)`` count; a mean has the
    ``spread`` of its scores; of a figure that is neither, ``draws`` are what it is over draws of the examples, the same
    draws in each row. ``scores`` are those of each example in order, where they were recorded; of a figure of all
    examples together, ``contributions`` are what each adds to it, with that mean, which is no score. ``better`` is
    empty where neither direction is. ``margin`` is the change that counts as none, where the figure has one of its own.
    ``is_best``: there is no number since nothing can be better, such as the signal to noise of outputs that are equal.
    ``heading`` is that of its column, empty where it is its name. ``at_least`` names a figure that it is never below.
    """

    value: float | None
    unit: str = ""
    better: Better | None = None
    interval: Interval | None = None
    withheld: str = ""
    count: int | None = None
    is_share: bool = False
    is_best: bool = False
    heading: str = ""
    at_least: str = ""
    margin: float | None = None
    spread: Spread | None = None
    change: Change | None = None
    draws: list[float | None] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    contributions: list[float | None] = field(default_factory=list)

    @property
    def of_examples(self) -> list[float | None]:
        """The number of each example, score or contribution, where they were recorded."""
        return self.scores or self.contributions

    @property
    def number(self) -> float | None:
        """The value, infinite where nothing can be better; None where there is none.

        >>> Figure(None, better="higher", is_best=True).number
        inf
        """
        if self.value is not None or not self.is_best:
            return self.value
        return math.inf if self.better == "higher" else -math.inf


def contribution_to(metric: str) -> str:
    """The name of what single examples add to a figure of all of them.

    >>> contribution_to("auc")
    'auc_contribution'
    """
    return f"{metric}_contribution"


class Part(Struct, frozen=True, omit_defaults=True):
    """A part of a row with figures of its own: an output of the model, a category.

    ``aliases`` are other names that limits may call it by. ``texts`` are facts in words by name, ``series`` numbers by
    name, in order.
    """

    name: str
    aliases: list[str] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    series: dict[str, list[float | None]] = field(default_factory=dict)

    def value(self, name: str) -> float | None:
        """The number of a figure; None where there is none, or no such figure."""
        found = self.figures.get(name)
        return None if found is None else found.value

    @property
    def names(self) -> list[str]:
        """All names that it goes by, the one that is shown first."""
        return [self.name, *self.aliases]


def figure_of(metric: Metric, value: float | None, **known: Any) -> Figure:
    """The figure of a metric; ``known`` is what else is known of it, as the fields of a figure.

    >>> figure_of(Metric("top1", "", better="higher", is_share=True), 0.5, count=4).count
    4
    """
    return Figure(value, metric.unit, metric.better, is_share=metric.is_share, heading=metric.heading, **known)
