"""Measures how much time each stage of a pass takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

Bound = Literal["input", "inference", "metrics", "journal"]

READ: Final = "read"
DECODE: Final = "decode"
RESIZE: Final = "resize"
PREPARATION: Final = "prepare"
INFERENCE: Final = "inference"
METRICS: Final = "metrics"
JOURNAL: Final = "journal"
INPUT_STAGES: Final = (READ, DECODE, RESIZE, PREPARATION)
STAGES: Final = (*INPUT_STAGES, INFERENCE, METRICS, JOURNAL)


class Span(NamedTuple):
    """One piece of work.

    ``stage`` is its kind, ``start_ns`` when it began and ``duration_ns`` how long it took, both by
    ``time.perf_counter_ns``; ``worker`` is the number of the worker that did it.
    """

    stage: str
    start_ns: int
    duration_ns: int
    worker: int
    label: str


@dataclass
class StageTimes:
    """Seconds of work per stage, over all workers."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))

    def add(self, spans: Iterable[Span]) -> None:
        """Add pieces of work."""
        for span in spans:
            self.seconds[span.stage] = self.seconds.get(span.stage, 0.0) + span.duration_ns / 1e9

    @property
    def bound(self) -> Bound | None:
        """The kind of work that takes most of the time; None where none was done."""
        work: dict[Bound, float] = {
            "input": sum(self.seconds[stage] for stage in INPUT_STAGES),
            "inference": self.seconds[INFERENCE],
            "metrics": self.seconds[METRICS],
            "journal": self.seconds[JOURNAL],
        }
        return max(work.items(), key=lambda kind: kind[1])[0] if any(work.values()) else None
