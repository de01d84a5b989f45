"""A metric: everything that limits and documents need to know about a figure, in one object.

Those of any configuration are in ``evaltools/result/metrics.py``, those of a task in the module that its command names:
a new one is an object, and one line in such a list. The mean of a score is ``et.mean(...)`` in the task itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal

from msgspec import Struct

from evaltools.metrics.interval import Interval
from evaltools.metrics.means import MeanOfScores, ScoreBounds
from evaltools.metrics.power import Change, Share


class Absent(Enum):
    """Says that a result, or an output, has no such figure at all."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
Figure = float | None | Absent
"""None where a figure has no number, such as that of an output with NaN."""
Better = Literal["higher", "lower"]
OutputNames = tuple[str, ...]
"""The names that an output goes by."""


class Metric(Struct, frozen=True):
    """A figure of a configuration.

    ``read`` takes a result and one of its configurations, and so do all other functions. ``is_share``: 0..1.
    ``of_reference``: it says nothing without a reference. ``of_outputs`` gives the figure of each output, with the
    names that the output goes by; ``read`` then gives the worst of them.

    ``share`` gives the counts behind a share of examples, ``mean`` the mean of scores with their spread, ``change`` how
    the figure differs from the reference's; all make limits with a confidence possible. ``each`` gives the score of
    each example in order, where all were recorded, ``draws`` the figure over draws of the examples, which are the same
    for all configurations. ``ranked``: the figure is the share of examples whose right label is among so many best.

    ``margin`` is the change that counts as none where the metric has one of its own, ``bounds`` are those of a score.

    ``heading``: that of its column in the task's table, empty where it has none; ``interval`` gives its 95 % interval.

    ``is_of_own_task``: more of it than its name is known only by the task's result.

    >>> Metric("flips", "examples that changed sides", lambda result, configuration: 3.0, better="lower").name
    'flips'
    """

    name: str
    meaning: str
    read: Callable[..., Figure]
    unit: str = ""
    better: Better | None = None
    is_share: bool = False
    may_be_negative: bool = False
    of_reference: bool = False
    is_ratio: bool = False
    is_of_own_task: bool = False
    aliases: tuple[str, ...] = ()
    heading: str = ""
    interval: Callable[[Any, Any], Interval | None] | None = None
    share: Callable[[Any, Any], Share | None] | None = None
    mean: Callable[[Any, Any], MeanOfScores | None] | None = None
    change: Callable[[Any, Any], Change | None] | None = None
    each: Callable[[Any, Any], Sequence[float]] | None = None
    draws: Callable[[Any, Any], Sequence[float | None]] | None = None
    of_outputs: Callable[[Any, Any], Sequence[tuple[OutputNames, Figure]]] | None = None
    ranked: int | None = None
    margin: float | None = None
    bounds: ScoreBounds | None = None

    @property
    def is_per_output(self) -> bool:
        """Whether each output has such a figure."""
        return self.of_outputs is not None

    @property
    def can_drop(self) -> bool:
        """Whether the change against the reference has an interval, so that a limit on a drop can have a confidence."""
        return self.change is not None


def metric_of_own_task(name: str) -> Metric:
    """A metric of that name which a task of one's own may have.

    >>> metric_of_own_task("iou").is_of_own_task
    True
    """
    return Metric(
        name, "a metric of a task of your own", lambda *_of: ABSENT, may_be_negative=True, is_of_own_task=True
    )


def present(figures: Mapping[str, Figure]) -> dict[str, float | None]:
    """The figures that a result has, without those that are :data:`ABSENT`.

    >>> present({"top1": 0.5, "agreement": ABSENT, "ap": None})
    {'top1': 0.5, 'ap': None}
    """
    return {name: value for name, value in figures.items() if value is not ABSENT}
