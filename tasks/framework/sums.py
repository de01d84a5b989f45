"""What a pass measured, and the sums over its records that every result has, whatever the task."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.engine.facts import PassFacts
from evaltools.engine.ledger import PassOutcome
from evaltools.engine.quiet_latency import QuietTimes
from evaltools.engine.steps import Record
from evaltools.metrics.latency import LatencyRatio, NativeTimes, drift, latency_ratio, summarise_latency
from evaltools.report.words.facts import drift_in_words
from evaltools.result.execution import ExecutionUsed
from evaltools.result.facts import FailedExample
from evaltools.result.metrics import figures_of, latency_figures
from evaltools.result.result import DRIFT, INVOKE, PREPROCESSING, Row


class MeasuredPass(Struct, frozen=True):
    """The outcome of a pass, and the facts about how it went and what was measured after it.

    ``merged`` is the number of journals that the records come from, 0 for one alone.
    """

    outcome: PassOutcome[Any]
    facts: PassFacts = PassFacts()
    merged: int = 0

    @property
    def quiet(self) -> QuietTimes | None:
        """The latencies of the quiet phase."""
        return self.facts.quiet


def describe_execution(measured: MeasuredPass) -> ExecutionUsed:
    """How the evaluation was carried out."""
    facts, quiet, stages = measured.facts, measured.quiet, measured.facts.stages
    return ExecutionUsed(
        workers=facts.workers,
        examples_run=facts.examples_run,
        quiet_latency_examples=None if quiet is None else quiet.examples,
        one_worker=facts.one_worker,
        startup_seconds=dict(facts.startup_seconds),
        stage_seconds=dict(stages.seconds),
        bound=stages.bound,
        worker_seconds=[stages.by_worker[worker] for worker in sorted(stages.by_worker)],
        inference_seconds=dict(stages.inference),
        memory=list(facts.memory),
    )


Pair = tuple[str, str]
"""The names of two configurations, ``(baseline, other)``."""


class ConfigurationSums(Struct):
    """The sums over the records of one configuration that every task needs; ``names`` are those of the examples.

    ``invokes_us`` are the times of each ``invoke``, ``first_us`` those of the first one of each of ``examples``,
    ``run_and_read_us`` those from the last ``invoke`` of an example until its outputs are read.
    """

    names: Sequence[str]
    finished: int = 0
    examples: array[int] = field(default_factory=lambda: array("q"))
    first_us: array[float] = field(default_factory=lambda: array("d"))
    failures: list[FailedExample] = field(default_factory=list)
    invokes_us: array[float] = field(default_factory=lambda: array("d"))
    run_and_read_us: array[float] = field(default_factory=lambda: array("d"))

    def add(self, record: Record[Any]) -> None:
        """Count one record."""
        if record.invokes_us:
            self.examples.append(record.example)
            self.first_us.append(record.invokes_us[0])
        self.invokes_us.extend(record.invokes_us)
        if record.read_us is not None:
            self.run_and_read_us.append(record.invokes_us[-1] + record.read_us)
        if record.failure is None:
            self.finished += 1
        else:
            name = None if record.failure.stage == "input" else record.configuration
            self.failures.append(
                FailedExample(self.names[record.example], name, record.failure.stage, record.failure.reason)
            )


class PairTimes(Struct):
    """The times of the first ``invoke`` of each example that both configurations ran, in the same order.

    ``processes`` numbers the pairs of processes that ran them.
    """

    baseline_us: array[float] = field(default_factory=lambda: array("d"))
    other_us: array[float] = field(default_factory=lambda: array("d"))
    processes: list[tuple[int, int]] = field(default_factory=list)

    def add(self, baseline_us: Sequence[float], other_us: Sequence[float], processes: tuple[int, int] = (0, 0)) -> None:
        """Add one example, which may have failed on either side."""
        if baseline_us and other_us:
            self.baseline_us.append(baseline_us[0])
            self.other_us.append(other_us[0])
            self.processes.append(processes)


class RunSums(Struct, frozen=True):
    """The sums over all records of a run. Times are those of the quiet phase, if there was one."""

    measured: MeasuredPass
    configurations: Mapping[str, ConfigurationSums]
    pairs: Mapping[Pair, PairTimes]

    @property
    def preprocessing(self) -> NativeTimes:
        """What the native tools say of the times of making inputs, which all configurations share."""
        return summarise_latency(self.measured.outcome.preprocessing_us).native

    def invokes_us(self, configuration: str) -> Sequence[float]:
        """The times that a configuration's latency sums up."""
        quiet = self.measured.quiet
        return self.configurations[configuration].invokes_us if quiet is None else quiet.invokes_us(configuration)

    def run_and_read_us(self, configuration: str) -> Sequence[float]:
        """The times from the last ``invoke`` of an example until its outputs are read."""
        quiet = self.measured.quiet
        if quiet is not None:
            return quiet.run_and_read_us(configuration)
        return self.configurations[configuration].run_and_read_us

    def latency_ratio(self, pair: Pair) -> LatencyRatio | None:
        """How many times as long the second configuration of a pair takes.

        None where no example was timed on both.
        """
        times = self.pairs[pair]
        return latency_ratio(times.baseline_us, times.other_us, times.processes)

    def failed_examples(self) -> list[FailedExample]:
        """Each failure once: an input that cannot be made fails for all configurations together."""
        failures = (failure for sums in self.configurations.values() for failure in sums.failures)
        failed: dict[tuple[str, str | None], FailedExample] = {}
        for failure in failures:
            failed.setdefault((failure.example, failure.configuration), failure)
        return list(failed.values())

    def with_figures(self, entry: Row) -> Row:
        """A configuration with how many examples it finished, and its times; without figures, how many failed."""
        sums = self.configurations.get(entry.name)
        if sums is None:
            return entry
        figures = entry.figures | figures_of({"failed_examples": len(sums.failures)})
        if entry.status == "not measured":
            return replace(entry, figures=figures)
        figures |= figures_of({"examples": sums.finished})
        times = {PREPROCESSING: self.preprocessing, **entry.times}
        if entry.is_emulated:
            return replace(entry, figures=figures, times=times)
        latency = summarise_latency(self.invokes_us(entry.name))
        times = {INVOKE: latency.native, **times}
        return replace(entry, figures=figures | latency_figures(latency), times=times)


def sum_up(measured: MeasuredPass, pairs: Sequence[Pair]) -> RunSums:
    """Go through the records of each configuration once."""
    records = measured.outcome.records
    sums = {name: ConfigurationSums(measured.outcome.names) for name in records}
    for name, own in records.items():
        for record in own:
            sums[name].add(record)
    paired = {pair: _quiet_times(measured, pair) for pair in pairs}
    if measured.quiet is None:
        paired = {pair: _times_of_pass(*(sums[name] for name in pair)) for pair in pairs if {*pair} <= {*sums}}
    return RunSums(measured, sums, paired)


def _times_of_pass(baseline: ConfigurationSums, other: ConfigurationSums) -> PairTimes:
    """The times of the first ``invoke`` of each example that both ran."""
    times = PairTimes()
    theirs = dict(zip(other.examples, other.first_us, strict=True))
    for example, first_us in zip(baseline.examples, baseline.first_us, strict=True):
        if example in theirs:
            times.add([first_us], [theirs[example]])
    return times


def _quiet_times(measured: MeasuredPass, pair: Pair) -> PairTimes:
    """The times of the quiet phase of a configuration; empty where there was none."""
    times = PairTimes()
    if measured.quiet is not None:
        own, theirs = ({each.example: each for each in measured.quiet.taken.get(name, [])} for name in pair)
        for example, baseline in own.items():
            other = theirs.get(example)
            if other is not None:
                times.add(baseline.invokes_us, other.invokes_us, (baseline.process, other.process))
    return times


def latency_ratios(sums: RunSums) -> dict[Pair, LatencyRatio]:
    """The latency ratio of each pair that ran here, on the examples that both ran."""
    found = {pair: sums.latency_ratio(pair) for pair in sums.pairs}
    return {pair: ratio for pair, ratio in found.items() if ratio is not None}


def with_conditions(configurations: Sequence[Row], sums: RunSums) -> list[Row]:
    """The configurations with the trend of their latencies in words, and their peak memory.

    Shards have neither: their times have no common order, and their memory was that of other hosts.
    """
    found = []
    for entry in configurations:
        is_known = entry.name in sums.configurations and entry.status == "measured" and not sums.measured.merged
        if is_known and not entry.is_emulated:
            peak_kb = sums.measured.facts.peak_memory_kb.get(entry.name)
            memory = figures_of({"peak_memory_mb": None if peak_kb is None else round(peak_kb / 1024, 1)})
            trend = drift_in_words(drift(sums.invokes_us(entry.name)))
            texts = entry.texts | ({DRIFT: trend} if trend else {})
            entry = replace(entry, figures=entry.figures | memory, texts=texts)
        found.append(entry)
    return found


def judge_records(described: Row, outcome: PassOutcome[Any]) -> Row:
    """The configuration, ``not measured`` where its records give no figures."""
    name = described.name
    if described.status == "not measured":
        return described
    if name not in outcome.given_up and any(record.failure is None for record in outcome.records[name]):
        return described
    return replace(described, status="not measured", reason=described.reason or _why_no_figures(outcome, described))


def _why_no_figures(outcome: PassOutcome[Any], described: Row) -> str:
    name = described.name
    if name in outcome.given_up:
        end = outcome.given_up[name]
        return f"its process died or hung too often in a row (--max_crashes); the last time: {end.reason}"
    if outcome.examples_done:
        first = next((record.failure for record in outcome.records[name] if record.failure is not None), None)
        return f"not one example succeeded{f': {first.reason}' if first else ''}"
    if outcome.stopped:
        return "no example was finished"
    is_reference = described.role == "reference"
    return "not run, since no other configuration can" if is_reference else "there is no example"
