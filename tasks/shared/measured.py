"""What a pass gave, and how it was carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaltools.engine import Execution, Outcome, QuietTimes, Stop
from evaltools.result.evaluation import ExecutionUsed, Restarted
from evaltools.runtime.process.restarting import Restarts


@dataclass(frozen=True)
class Measured:
    """What a pass gave, and how it was carried out.

    ``quiet`` has the latencies of the quiet phase, None where there was none: with one worker the pass itself is quiet.
    ``interrupted``: Ctrl-C ended that phase.
    ``not_traced`` says why the trace could not be written. ``peak_memory_kb`` is the largest resident memory of a
    process of each configuration, in units of 1024 bytes.
    """

    outcome: Outcome[Any]
    workers: int = 1
    quiet: QuietTimes | None = None
    restarts: Mapping[str, Restarts] = field(default_factory=dict)
    merged_shards: int = 0
    startup_seconds: Mapping[str, float] = field(default_factory=dict)
    not_traced: str | None = None
    peak_memory_kb: Mapping[str, int] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def stopped(self) -> Stop | None:
        """Why it ended before the last example or latency, if it did."""
        return self.outcome.stopped or ("interrupted" if self.interrupted else None)


def nothing_measured(configurations: Mapping[str, object]) -> Measured:
    """That of a pass that cannot be."""
    return Measured(Outcome({name: [] for name in configurations}))


def describe_execution(execution: Execution, measured: Measured) -> ExecutionUsed:
    """How the evaluation was carried out."""
    quiet, stages = measured.quiet, measured.outcome.stages
    return ExecutionUsed(
        workers=measured.workers,
        examples_run=measured.outcome.examples_run,
        shard=str(execution.shard) if execution.shard.count > 1 else None,
        merged_shards=measured.merged_shards,
        quiet_latency_examples=None if quiet is None else quiet.examples,
        restarts={name: Restarted(found.count, found.first_reason) for name, found in measured.restarts.items()},
        not_traced=measured.not_traced,
        startup_seconds=dict(measured.startup_seconds),
        stage_seconds=dict(stages.seconds),
        bound=stages.bound,
    )
