"""What is known of one configuration, in the words of limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evaltools.stats.changes import Change, Share
from evaltools.stats.interval import Interval


@dataclass(frozen=True)
class Evidence:
    """One configuration.

    ``not_measured`` says why its figures are none of its own; ``cannot_exist`` that this machine cannot have what it
    asks for. ``reference_not_measured`` says why there is nothing to hold it against. ``figures`` has single numbers by
    name, None where there is none; ``outputs`` those of each output, with the names that it goes by. ``shares`` are the
    counts behind figures that are shares. ``ratio`` is the latency ratio.
    """

    configuration: str
    not_measured: str | None = None
    cannot_exist: bool = False
    reference_not_measured: str | None = None
    figures: Mapping[str, float | None] = field(default_factory=dict)
    outputs: Sequence[tuple[Sequence[str], Mapping[str, float | None]]] = ()
    shares: Mapping[str, Share] = field(default_factory=dict)
    changes: Mapping[str, Change] = field(default_factory=dict)
    ratio: tuple[float, Interval | None] | None = None
