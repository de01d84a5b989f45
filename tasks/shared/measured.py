"""The outcome of a pass, with the latency measured after it and how both were carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from evaltools.engine.execution import Execution
from evaltools.engine.quiet_latency import QuietTimes
from evaltools.engine.run import PassOutcome
from evaltools.result.evaluation import ExecutionUsed, ProcessMemory
from evaltools.runtime.session import Crashes


class MeasuredPass(Struct, frozen=True):
    """The outcome of a pass, with the latency measured after it and how both were carried out.

    ``quiet`` has the latencies of the quiet phase, None if there was none: with one worker the pass itself is quiet.
    ``crashes`` and ``peak_memory_kb`` are by configuration; the latter is the largest resident memory of one of its
    processes, in units of 1024 bytes. ``not_clean`` says by configuration what went wrong while a session was released,
    be it a crash or not.
    ``merged_shards`` is the number of run folders that the records come from, 0 if the pass was run here.
    ``startup_seconds`` are the phases before the pass. ``not_traced`` says why the trace could not be written, None if
    it was or none was wanted. ``memory`` is that of the processes during the pass. ``one_worker``: more are refused.
    """

    outcome: PassOutcome[Any]
    workers: int = 1
    quiet: QuietTimes | None = None
    crashes: Mapping[str, Crashes] = field(default_factory=dict)
    merged_shards: int = 0
    startup_seconds: Mapping[str, float] = field(default_factory=dict)
    not_traced: str | None = None
    one_worker: bool = False
    peak_memory_kb: Mapping[str, int] = field(default_factory=dict)
    memory: Sequence[ProcessMemory] = ()
    not_clean: Mapping[str, str] = field(default_factory=dict)


def nothing_measured(configurations: Mapping[str, object]) -> MeasuredPass:
    """What is measured where no test configuration can run: no records of any configuration."""
    return MeasuredPass(PassOutcome({name: [] for name in configurations}))


def describe_execution(execution: Execution, measured: MeasuredPass) -> ExecutionUsed:
    """The result's account of how the evaluation was carried out."""
    quiet, stages = measured.quiet, measured.outcome.stages
    return ExecutionUsed(
        workers=measured.workers,
        examples_run=measured.outcome.examples_run,
        shard=str(execution.shard) if execution.shard.count > 1 else None,
        merged_shards=measured.merged_shards,
        quiet_latency_examples=None if quiet is None else quiet.examples,
        not_traced=measured.not_traced,
        one_worker=measured.one_worker,
        startup_seconds=dict(measured.startup_seconds),
        stage_seconds=dict(stages.seconds),
        bound=stages.bound,
        worker_seconds=[stages.by_worker[worker] for worker in sorted(stages.by_worker)],
        inference_seconds=dict(stages.inference),
        memory=list(measured.memory),
    )
