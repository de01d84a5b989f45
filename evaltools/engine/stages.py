"""Measures how much time each stage of a pass takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from msgspec import Struct, field

from evaltools.engine.steps import INFERENCE, INPUT_STAGES, JOURNAL, METRICS, STAGES
from evaltools.result.evaluation import InferenceSeconds

Bound = Literal["input", "inference", "metrics", "journal"]


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


class StageTimes(Struct):
    """Seconds of work per stage: over all workers, by worker, and those of inference by configuration."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    by_worker: dict[int, dict[str, float]] = field(default_factory=dict)
    inference: dict[str, InferenceSeconds] = field(default_factory=dict)

    def add(self, spans: Iterable[Span], inference: Mapping[str, InferenceSeconds]) -> None:
        """Add pieces of work; those of the journal belong to no worker. ``inference`` is by configuration."""
        for span in spans:
            spent = {span.stage: span.duration_ns / 1e9}
            _add(self.seconds, spent)
            if span.worker >= 0:
                _add(self.by_worker.setdefault(span.worker, {}), spent)
        for name, more in inference.items():
            before = self.inference.get(name, InferenceSeconds(0.0, 0.0, 0.0))
            self.inference[name] = InferenceSeconds(
                before.copy + more.copy, before.run + more.run, before.read_back + more.read_back
            )

    @property
    def bound(self) -> Bound | None:
        """The kind of work that takes most of the time; None where none was done."""
        work: dict[Bound, float] = {
            "input": sum(self.seconds.get(stage, 0.0) for stage in INPUT_STAGES),
            "inference": self.seconds[INFERENCE],
            "metrics": self.seconds[METRICS],
            "journal": self.seconds[JOURNAL],
        }
        return max(work.items(), key=lambda kind: kind[1])[0] if any(work.values()) else None


def _add(seconds: dict[str, float], more: Mapping[str, float]) -> None:
    for stage, spent in more.items():
        seconds[stage] = seconds.get(stage, 0.0) + spent
