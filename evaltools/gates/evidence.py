"""What is known of one configuration, in the words of limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evaltools.result.verdict import Reason
from evaltools.stats.changes import Change, Share
from evaltools.stats.latency_ratio import LatencyRatio


@dataclass(frozen=True)
class Mean:
    """The mean of ``count`` scores with their standard deviation; ``better`` is the direction that is wished for.

    ``scores`` are those of each example in order, where all were recorded. ``margin`` is the change that counts as none
    where the metric has one of its own.
    """

    mean: float
    deviation: float
    count: int
    better: Literal["higher", "lower"]
    scores: list[float] = field(default_factory=list)
    margin: float | None = None


OutputFigures = tuple[Sequence[str], Mapping[str, float | None]]
"""The figures of one output, with the names that it goes by."""


@dataclass(frozen=True)
class Judged:
    """What a task says of one configuration beside its figures.

    ``outputs`` has the figures of each output, ``shares`` the counts behind figures that are shares, ``means`` the
    figures that are means of scores, ``changes`` those against the reference. ``ranks`` has the place of the right
    label of each recorded example, from 0, None where it is not among the best; ``resampled`` figures over resamples of
    the examples, which are the same for all configurations.
    """

    outputs: Sequence[OutputFigures] = ()
    shares: Mapping[str, Share] = field(default_factory=dict)
    means: Mapping[str, Mean] = field(default_factory=dict)
    changes: Mapping[str, Change] = field(default_factory=dict)
    ranks: Sequence[int | None] = ()
    resampled: Mapping[str, Sequence[float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """One configuration.

    ``not_measured`` says why its figures are none of its own; ``cannot_exist`` that this machine cannot have what it
    asks for. ``reference_not_measured`` says why there is nothing to hold it against. ``figures`` has single numbers by
    name, None where there is none; ``outputs`` those of each output, with the names that it goes by. ``shares`` are the
    counts behind figures that are shares, ``means`` the figures that are means of scores. ``ratio`` is the latency
    ratio.
    """

    configuration: str
    not_measured: Reason | None = None
    cannot_exist: bool = False
    reference_not_measured: Reason | None = None
    figures: Mapping[str, float | None] = field(default_factory=dict)
    outputs: Sequence[OutputFigures] = ()
    shares: Mapping[str, Share] = field(default_factory=dict)
    means: Mapping[str, Mean] = field(default_factory=dict)
    changes: Mapping[str, Change] = field(default_factory=dict)
    ratio: LatencyRatio | None = None
