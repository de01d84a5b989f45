"""A metric: what help, documents and the check of limits need to know of a figure before there is any.

Those of any configuration are in ``evaltools/result/metrics.py``, those of a task in the module that its command names.
The mean of a score is ``et.mean(...)`` in the task itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

Better = Literal["higher", "lower"]
SHARE: Final = (0.0, 1.0)
"""The bounds of a metric that is a share."""


class Metric(Struct, frozen=True):
    """What a figure of that name means.

    ``is_share``: 0..1. ``of_reference``: it says nothing without a reference. ``is_per_output``: each output of the
    model has one; that of a configuration is the worst of them. ``bounds`` says what makes limits with a confidence
    possible: counts of examples, or draws of them. ``is_of_own_task``: a task's function says more than its name.
    ``read``, of a metric of another package, takes a result and one of its configurations; it gives a number, or None.

    >>> Metric("flips", "examples that changed sides", better="lower").can_drop
    False
    """

    name: str
    meaning: str
    unit: str = ""
    better: Better | None = None
    is_share: bool = False
    may_be_negative: bool = False
    of_reference: bool = False
    is_ratio: bool = False
    is_of_own_task: bool = False
    is_per_output: bool = False
    aliases: tuple[str, ...] = ()
    heading: str = ""
    bounds: Literal["", "counts", "draws"] = ""
    read: Callable[[Any, Any], float | None] | None = None

    @property
    def can_drop(self) -> bool:
        """Whether the change against the reference has an interval, so that a limit on a drop can have a confidence."""
        return bool(self.bounds)


def metric_of_own_task(name: str) -> Metric:
    """A metric of that name which a task of one's own may have.

    >>> metric_of_own_task("iou").is_of_own_task
    True
    """
    return Metric(name, "a metric of a task of your own", may_be_negative=True, is_of_own_task=True)
