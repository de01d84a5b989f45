"""What a pass gave, and how it was carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaltools.engine import Execution, Outcome, QuietTimes
from evaltools.engine.describe import why_no_figures, without_figures
from evaltools.result.evaluation import ConfigurationResult, ExecutionUsed, Restarted
from evaltools.runtime.restarting import Restarts


@dataclass(frozen=True)
class Measured:
    """What a pass gave, and how it was carried out.

    ``quiet`` has the latencies of the quiet phase, None where there was none: with one worker the pass itself is quiet.
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

    def invokes_us(self, configuration: str) -> list[int]:
        """The times that a configuration's latency sums up."""
        if self.quiet is not None:
            return self.quiet.invokes_us(configuration)
        return [time for record in self.outcome.records[configuration] for time in record.invokes_us]

    def run_and_read_us(self, configuration: str) -> list[int]:
        """The times from the last ``invoke`` of an example until its outputs are read."""
        if self.quiet is not None:
            return self.quiet.run_and_read_us(configuration)
        records = self.outcome.records[configuration]
        return [record.invokes_us[-1] + record.read_us for record in records if record.read_us is not None]

    def first_us(self, configuration: str) -> dict[int, int]:
        """The time of the first ``invoke`` of each example that the latency is of, by its number."""
        if self.quiet is not None:
            taken = [(each.example, each.invokes_us) for each in self.quiet.taken.get(configuration, [])]
        else:
            records = self.outcome.records.get(configuration, [])
            taken = [(record.example.index, record.invokes_us) for record in records]
        return {example: invokes_us[0] for example, invokes_us in taken if invokes_us}


def nothing_measured(configurations: Mapping[str, object]) -> Measured:
    """That of a pass that cannot be."""
    return Measured(Outcome({name: [] for name in configurations}))


def lost_configuration(described: ConfigurationResult, outcome: Outcome[Any]) -> ConfigurationResult | None:
    """The configuration without figures, where it has none; None where it has some."""
    if described.status == "not measured":
        return described
    records = outcome.records[described.name]
    failed = sum(record.failure is not None for record in records)
    if described.name in outcome.given_up:
        end = outcome.given_up[described.name]
        reason = f"its process died or hung too often in a row (--max_crashes); the last time: {end.reason}"
        return without_figures(described, failed, reason)
    if failed == len(records):
        return without_figures(described, failed, why_no_figures(outcome, described.name))
    return None


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
