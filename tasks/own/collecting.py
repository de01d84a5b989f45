"""What a metric with a part of the result of its own gets of a run, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from evaltools.engine.run import PassOutcome
from evaltools.result.verdict import Verdict
from evaltools.tasks.shared.figures import Accumulator, Pair, PairAccumulator


class RecordsOfRun(Struct, frozen=True):
    """The records of a run, for a metric that concludes a part of the result of them.

    ``examples`` are the task's; ``measured`` the configurations with figures, of which ``pairs`` are compared and
    ``reference`` may be one. ``margin`` is the change that counts as none. ``keeps_examples``: what was found in each
    example is wanted in the result. ``has_page``: a page is made of it, which shows some examples.
    """

    examples: Sequence[Any]
    outcome: PassOutcome[Any]
    measured: Sequence[str]
    pairs: Sequence[Pair] = ()
    reference: str | None = None
    margin: float = 0.005
    keeps_examples: bool = False
    has_page: bool = False


class Concluded(Struct, frozen=True):
    """What a metric makes of all records: its part of the result, verdicts by configuration, warnings."""

    part: Any
    verdicts: Mapping[str, list[Verdict]]
    warnings: Sequence[str] = ()


class Collected(Protocol):
    """Takes the records of a run one by one, those of configurations and of pairs, and concludes of them in the end."""

    @property
    def own(self) -> Mapping[str, Sequence[Accumulator[Any]]]:
        """What takes the records of each configuration."""

    @property
    def paired(self) -> Mapping[Pair, Sequence[PairAccumulator[Any]]]:
        """What takes the records of each pair."""

    def conclude(self) -> Concluded:
        """The figures of all records that were taken."""
