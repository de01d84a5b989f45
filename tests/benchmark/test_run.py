"""Real models measured with real configurations, each in a process of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import evaltools as et
from evaltools.benchmark.fresh_process import Watcher
from evaltools.benchmark.inputs import make_inputs
from evaltools.benchmark.loop import PhaseLimits
from evaltools.benchmark.request import BenchmarkOptions, Candidate
from evaltools.benchmark.rows import rows_of
from evaltools.benchmark.run import Benchmarked, run_benchmark
from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.metrics.op_profile import Opening, OpProfile
from evaltools.model import ModelFile, read_model
from evaltools.result.result import Row
from evaltools.result.rounds import Measured, Phase, Round

pytest.importorskip("ai_edge_litert", reason="the runtime litert is not installed")

FEW = BenchmarkOptions(PhaseLimits(2, 0.0, 60.0), PhaseLimits(5, 0.0, 60.0))


class Told(Watcher):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def begins(self, candidate: Candidate, round_number: int) -> None:
        self.log.append(f"{candidate.configuration.name} {round_number}")

    def opened(self, row: Row, opening: Opening) -> None:
        assert opening.total_us > 0
        self.log.append(f"opened {row.name}")

    def warmed_up(self, phase: Phase) -> None:
        self.log.append(f"warm {len(phase.invokes_us)}")

    def measured(self, found: Round) -> None:
        self.log.append(f"measured {len(found.regular.invokes_us)}")

    def finished(self) -> None:
        self.log.append("finished")

    def failed(self, candidate: Candidate, reason: str) -> None:
        self.log.append(f"failed {candidate.configuration.name}: {reason}")

    def profiled(self, profile: OpProfile, opening: Opening) -> None:
        self.log.append(f"profiled {profile.runs}")


def measure(
    options: BenchmarkOptions, *texts: str, told: Told | None = None, model: ModelFile | None = None
) -> Benchmarked:
    model = model or read_model(sample.model_file("int8"))
    candidates = [Candidate(0, model, Configuration.from_text(f"c{number}", text)) for number, text in enumerate(texts)]
    inputs, _ = make_inputs(model, ())
    return run_benchmark(candidates, options, [inputs], told or Told())


def measured(found: Benchmarked) -> list[Measured]:
    return found.records.measured


def test_configurations_take_turns_in_fresh_processes() -> None:
    told = Told()
    found = measure(replace(FEW, rounds=2), "use_xnnpack=true", "use_xnnpack=false", told=told)
    assert [entry for entry in told.log if entry[0] == "c"] == ["c0 0", "c1 0", "c0 1", "c1 1"]
    assert told.log[:4] == ["c0 0", "opened c0", "warm 2", "measured 5"]
    for each, row in zip(measured(found), rows_of(measured(found)), strict=True):
        assert row.status == "measured"
        assert row.counts == {"rounds": 2, "runs": 10}
        assert row.value("first_run_ms") == pytest.approx(
            sum(entry.warm_up.invokes_us[0] for entry in each.rounds) / 2000
        )
        for entry in each.rounds:
            assert len(entry.warm_up.invokes_us) == 2
            moments = [*entry.warm_up.starts_us, *entry.regular.starts_us]
            assert moments == sorted(moments)
            memory = entry.memory
            assert memory.peak_kb is not None
            assert memory.peak_init_kb is not None
            assert memory.steady_kb is not None
            assert memory.start_kb is not None
            assert memory.start_kb < memory.steady_kb <= memory.peak_kb
            assert memory.peak_init_kb <= memory.peak_kb
    assert [[entry.turn for entry in each.rounds] for each in measured(found)] == [[0, 2], [1, 3]]
    first, second = rows_of(measured(found))
    ratio = second.figures["latency_ratio"]
    assert (ratio.count, ratio.interval, ratio.withheld) == (2, None, "few")
    assert "latency_ratio" not in first.figures
    assert first.delegation is not None
    assert first.delegation.delegated_nodes > 0
    assert second.delegates == []
    assert not found.records.stopped


def test_a_second_model_is_timed_by_the_first_in_the_same_configuration() -> None:
    names = ("int8", "float32")
    tests = {"plain": et.Configuration(kernels="builtin"), "xnnpack": et.Configuration(use_xnnpack=True)}
    models = [sample.model_file(name) for name in names]
    found = et.benchmark(models, tests=tests, num_runs=5, min_secs=0.0, warmup_min_secs=0.0, rounds=2)
    first, second, third, fourth = found.result.rows
    assert "latency_ratio" not in first.figures
    for row, base in ((second, first), (third, first), (fourth, third)):
        medians = [each.value("latency_ms") or 0.0 for each in (row, base)]
        assert row.value("latency_ratio") == pytest.approx(medians[0] / medians[1], rel=0.5)


@pytest.mark.usefixtures("busy_machine")
def test_a_busy_machine_is_a_warning_of_a_benchmark() -> None:
    found = et.benchmark(sample.model_file("int8"), tests={"cpu": et.Configuration()}, num_runs=2, min_secs=0.0)
    assert found.result.environment.load is not None
    assert found.result.environment.load.others_running == 100_000
    assert [text for text in found.warnings if text.startswith("the machine was busy: 100000 other processes on ")]
    assert found.result.rows[0].load == found.result.environment.load


def test_one_that_fails_costs_only_itself_and_is_not_tried_again() -> None:
    told = Told()
    found = measure(replace(FEW, rounds=2), "use_nnapi=true", "use_xnnpack=true", told=told)
    assert [each.row.status for each in measured(found)] == ["not measured", "measured"]
    assert measured(found)[0].row.cannot_exist
    assert "NNAPI" in str(measured(found)[0].row.reason)
    assert sum(entry.startswith("failed c0") for entry in told.log) == 1
    assert len(measured(found)[1].rounds) == 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("fail:abort", "the process of this configuration died during a call (SIGABRT)"),
        ("fail:prepare", "cannot load the model with the external delegate"),
    ],
)
def test_native_code_that_dies_costs_only_its_row(rounding_delegate: Path, options: str, reason: str) -> None:
    bad = f"external_delegate_path={rounding_delegate} external_delegate_options={options} use_xnnpack=false"
    model = read_model(sample.model_file("float32"))
    found = measure(FEW, bad, "use_xnnpack=true", model=model)
    assert [each.row.status for each in measured(found)] == ["not measured", "measured"]
    assert reason in str(measured(found)[0].row.reason)
    assert not measured(found)[0].rounds


def test_runs_that_fail_are_counted_and_the_row_has_failed(rounding_delegate: Path) -> None:
    bad = f"external_delegate_path={rounding_delegate} external_delegate_options=fail:invoke use_xnnpack=false"
    options = BenchmarkOptions(PhaseLimits(0, -1.0, 60.0), PhaseLimits(5, 0.0, 60.0))
    found = measure(options, bad, model=read_model(sample.model_file("float32")))
    (row,) = rows_of(measured(found))
    assert row.status == "not measured"
    assert "5 of 5 runs failed" in row.reason
    assert row.counts["runs"] == 5


@pytest.mark.usefixtures("time_out_of_runs")
def test_a_run_that_hangs_is_ended(rounding_delegate: Path) -> None:
    bad = f"external_delegate_path={rounding_delegate} external_delegate_options=fail:hang use_xnnpack=false"
    options = BenchmarkOptions(PhaseLimits(1, 0.0, 0.5), PhaseLimits(5, 0.0, 0.5), timeout_s=3.0)
    found = measure(options, bad, model=read_model(sample.model_file("float32")))
    assert "no answer within 3.5 s during a call" in str(measured(found)[0].row.reason)


def test_a_dry_run_only_opens() -> None:
    (row,) = rows_of(measured(measure(replace(FEW, dry_run=True, keep_outputs=True), "")))
    assert row.status == "measured"
    assert row.counts == {"rounds": 1, "runs": 0}


def test_full_delegation_can_be_demanded() -> None:
    options = replace(FEW, require_full_delegation=True)
    found = measure(options, "use_xnnpack=true", "", "use_xnnpack=false")
    statuses = [each.row.status for each in measured(found)]
    proof = measured(found)[0].row.delegation
    assert proof is not None
    is_full = proof.delegated_nodes == proof.total_nodes
    assert statuses == ["measured" if is_full else "not measured", "not measured", "not measured"]
    assert "Disallowed CPU fallback detected" in str(measured(found)[2].row.reason)
    assert "no delegate was asked for" in str(measured(found)[1].row.reason)


def test_outputs_are_those_of_the_model_on_the_benchmarks_inputs() -> None:
    from evaltools.runtime import open_session

    model = read_model(sample.model_file("int8"))
    found = measure(replace(FEW, keep_outputs=True), "kernels=builtin", model=model)
    inputs, _ = make_inputs(model, ())
    session = open_session(model, Configuration.from_text("c", "kernels=builtin"))
    expected = session.run(inputs).outputs
    session.close()
    assert found.outputs[0] is not None
    for mine, theirs in zip(found.outputs[0], expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_monitored_memory_is_at_least_that_of_the_moments() -> None:
    (each,) = measured(measure(replace(FEW, memory_interval_ms=1), ""))
    memory = each.rounds[0].memory
    assert memory.monitored_peak_kb is not None
    assert memory.steady_kb is not None
    assert memory.peak_kb is not None
    assert memory.steady_kb * 0.9 <= memory.monitored_peak_kb <= memory.peak_kb
