"""Limits on benchmarks, on rows of suites, and on runs that gave no result."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import Evidence
from evaltools.gates.gate_file import Gate
from evaltools.gates.other_results import (
    AnyResult,
    OtherResult,
    hold_all,
    part_of_suite,
    parts_of_benchmark,
    unjudged,
)
from evaltools.gates.suite_result import SuiteEntry, SuiteRow
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import LatencyRatio, summarise_latency
from evaltools.result.benchmark import BenchmarkRow, LoggedFigures, LoggedMemory, LoggedRound, Phase, StatFigures
from evaltools.result.evaluation import DelegateUsed, DelegationProof, Load
from tests.report.benchmark_samples import a_round, benchmark, row
from tests.report.page.samples import classifier

QUIET = Load(2, 0.0, 0.0)


def gate(*limits: str, run: str = "", task: str = "", model: str = "", configuration: str = "*") -> Gate:
    return Gate(run, task, model, configuration, tuple(map(parse_criterion, limits)))


def figures_of(entry: BenchmarkRow, **facts: object) -> Evidence:
    [part] = parts_of_benchmark("fast", replace(benchmark(entry), **facts)).values()
    return part.found[0]


def measured(runs: int) -> BenchmarkRow:
    base = row("xnnpack", 2000)
    assert base.figures is not None
    figures = replace(
        base.figures,
        init=summarise_latency([7000.0]),
        inference=summarise_latency([2000.0] * runs),
        percentiles={"50": 2000.0, "90": 2500.0, "99": 3000.0},
    )
    return replace(base, figures=figures)


@pytest.mark.parametrize(
    ("runs", "percentiles"),
    [(9, {}), (10, {"latency_p90_ms": 2.5}), (100, {"latency_p90_ms": 2.5, "latency_p99_ms": 3.0})],
)
def test_a_percentile_is_a_figure_where_there_are_runs_beyond_it(runs: int, percentiles: dict[str, float]) -> None:
    assert figures_of(measured(runs)).figures == {"latency_ms": 2.0, "load_ms": 7.0} | percentiles


def test_memory_delegation_and_ratio_of_a_benchmark_are_figures() -> None:
    ratio = LatencyRatio(0, 0.5, Interval(0.4, 0.6), 3)
    entry = replace(
        measured(10),
        rounds=[a_round(Phase(), Phase())],
        delegation=DelegationProof(8, 7, {}),
        delegates=[DelegateUsed("XNNPACK", True, {}, 7, 2)],
        versus_first=ratio,
    )
    found = figures_of(entry)
    assert found.ratio == ratio
    assert found.figures["peak_memory_mb"] == 1800 / 1024
    assert (found.figures["delegated_share"], found.figures["partitions"]) == (7 / 8, 2.0)


def test_what_another_program_measured_is_read_from_its_log() -> None:
    stats = StatFigures(4, 1, 1, 1, 1, 1.0, 0)
    rounds = [
        LoggedRound(init, None, None, stats, LoggedMemory(1.0, 2.0, peak))
        for init, peak in ((4000, 30.0), (6000, 40.0))
    ]
    logged = LoggedFigures(rounds, 8, 1, 3, 2.0, 2500.0, None)
    entry = replace(row("phone", 1), figures=None, logged=logged)
    assert figures_of(entry).figures == {"latency_ms": 2.5, "load_ms": 5.0, "peak_memory_mb": 40.0}


@pytest.mark.parametrize(
    ("entry", "stopped", "said"),
    [
        (replace(row("a", 1), status="failed", reason="no NNAPI", cannot_exist=True), None, "no NNAPI; allow_missing"),
        (
            replace(row("a", 1), fallback="no GPU"),
            None,
            "it was measured on the CPU instead",
        ),
        (row("a", 1), "interrupted", "the run ended early (interrupted)"),
    ],
)
def test_a_benchmark_that_did_not_run_as_asked_keeps_no_limit(
    entry: BenchmarkRow, stopped: str | None, said: str
) -> None:
    [part] = parts_of_benchmark("fast", replace(benchmark(entry), stopped=stopped)).values()
    [report] = hold_all([gate("latency_ms <= 99")], {"fast": part})
    [decision] = report.decisions
    assert decision.verdict == "not measured"
    assert decision.reason.startswith(said)


def test_each_model_of_a_benchmark_is_a_run_of_its_own() -> None:
    made = benchmark(row("x", 1000), row("x", 3000, model=1), sizes=(1, 1))
    reports = hold_all(
        [gate("latency_ms <= 2", run="fast"), gate("latency_ms <= 2", model="a.tflite", task="benchmark")],
        parts_of_benchmark("fast", made),
    )
    assert [(each.run, each.model, each.decisions[0].verdict) for each in reports] == [
        ("fast/a", "a.tflite", "pass"),
        ("fast/b", "b.tflite", "fail"),
        ("fast/a", "a.tflite", "pass"),
    ]


def suite_entry(*rows: SuiteRow, command: str = "imagenet", **facts: object) -> SuiteEntry:
    made = SuiteEntry("m", "models/m.tflite", "00", "job", ["evaltools", *command.split()], "done", rows=list(rows))
    return replace(made, **facts)


def test_the_evaluation_of_a_suite_is_judged_as_any_other() -> None:
    made = classifier()
    assert part_of_suite(suite_entry(command="imagenet m.tflite", evaluation=made)) is made


def test_rows_of_a_suite_of_benchmarks_are_configurations() -> None:
    rows = [
        SuiteRow("fast", "test", [], "measured", p50_us=1500.0, delegated_nodes=3, total_nodes=4, load=QUIET),
        SuiteRow("gpu", "test", [], "not measured", "no GPU"),
    ]
    limits = ("latency_ms <= 2", "delegated_share >= 0.8", "latency_p99_ms <= 9")
    part = part_of_suite(suite_entry(*rows, command="benchmark m.tflite"))
    [report] = hold_all([gate(*limits, task="benchmark")], {"night/m": part})
    found = [(each.configuration, each.verdict) for each in report.decisions]
    assert found[:3] == [("fast", "pass"), ("fast", "fail"), ("fast", "not measured")]
    assert found[3:] == [("gpu", "not measured")] * 3


FAILED = OtherResult("", "", "", failure="no result (exit code 2): no such file")


def test_a_run_without_a_result_keeps_no_limit_that_may_be_about_it() -> None:
    known = OtherResult("imagenet", "imagenet", "m.tflite", (Evidence("fast", "it died"),), "it died")
    results: dict[str, AnyResult] = {"a": FAILED, "b": known, "good": classifier()}
    gates = [gate("top1 >= 0.1", task="imagenet"), gate("max_error <= 1", run="b", task="inference_diff")]
    first, second, third, fourth = hold_all(gates, results)
    assert first.decisions == (Decision("*", "top1 >= 0.1", "not measured", reason=FAILED.failure),)
    assert [(each.configuration, each.verdict) for each in second.decisions] == [("fast", "not measured")]
    assert (third.run, third.decisions[0].verdict) == ("good", "pass")
    assert fourth.decisions[0].reason.startswith("no result is about it; there are ")


def test_what_no_gate_is_about_is_not_measured() -> None:
    other = OtherResult("benchmark", "benchmark", "m.tflite", (Evidence("fast"),))
    results: dict[str, AnyResult] = {"a": other, "good": classifier()}
    reports = unjudged([gate("top1 >= 0.1", task="imagenet")], results)
    assert [(each.run, each.decisions[0].verdict) for each in reports] == [("a", "not measured")]
    [report] = hold_all([gate("latency_ms <= 1", configuration="slow", run="a")], results)
    assert report.decisions[0].reason == "no configuration is named 'slow' in a; there are fast"
