"""What is known of one configuration, as limits need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from evaltools.result.evidence import OutputFigures, ScoreMean
from evaltools.result.verdict import Reason
from evaltools.stats.latency import LatencyRatio
from evaltools.stats.power import Change, Share


class Evidence(Struct, frozen=True):
    """One configuration.

    ``not_measured`` says why it has no figures that count: not measured, fell back, or ended early; ``cannot_exist``
    that this machine cannot have what it asks for; ``not_clean`` why its figures are no clean pass.
    ``reference_not_measured`` says why there is nothing to hold it against. ``figures`` has single numbers by name,
    None where there is none; ``outputs`` those of each output, with the names that it goes by. ``shares`` are the
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
    means: Mapping[str, ScoreMean] = field(default_factory=dict)
    changes: Mapping[str, Change] = field(default_factory=dict)
    ratio: LatencyRatio | None = None
    not_clean: str = ""
