"""Limits on benchmarks, on rows of suites, and on runs that gave no result."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.gates.check import hold_all, unjudged
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import RunRows, evidence_of, parts_of
from evaltools.gates.gate_file import Gate
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import LatencyRatio
from evaltools.result.facts import Load
from evaltools.result.figure import Figure
from evaltools.result.result import Row, standing_alone
from evaltools.suite.conclude import conclude
from tests.report.benchmark_samples import Sample, benchmark, row
from tests.report.page.samples import classifier
from tests.results import part

QUIET = Load(2, 0.0, 0.0)


def gate(*limits: str, run: str = "", task: str = "", model: str = "", configuration: str = "*") -> Gate:
    return Gate(run, task, model, configuration, tuple(map(parse_criterion, limits)))


def test_figures_and_ratio_of_a_row_are_evidence() -> None:
    ratio = Figure(0.5, interval=Interval(0.4, 0.6), count=3)
    made = Row("x", figures={"latency_ms": Figure(2.0), "latency_ratio": ratio}, counts={"rounds": 3}, load=QUIET)
    found = evidence_of(RunRows(rows=[made]), made)
    assert found.ratio == LatencyRatio(3, 0.5, Interval(0.4, 0.6), 3)
    assert found.figures == {"latency_ms": Figure(2.0)}


@pytest.mark.parametrize(
    ("entry", "stopped", "said"),
    [
        (row("a", 1, status="not measured", reason="no NNAPI", cannot_exist=True), "", "no NNAPI; allow_missing"),
        (row("a", 1, fallback="no GPU"), "", "it was measured on the CPU instead"),
        (row("a", 1), "interrupted", "the run ended early (interrupted)"),
    ],
)
def test_a_benchmark_that_did_not_run_as_asked_keeps_no_limit(entry: Sample, stopped: str, said: str) -> None:
    [report] = hold_all([gate("latency_ms <= 99")], parts_of("fast", benchmark(entry, stopped=stopped)))
    [decision] = report.decisions
    assert decision.verdict == "not measured"
    assert decision.reason.startswith(said)


def test_each_model_of_a_benchmark_is_a_run_of_its_own() -> None:
    made = benchmark(row("x", 1000), row("x", 3000, model=1), sizes=(1, 1))
    reports = hold_all(
        [gate("latency_ms <= 2", run="fast"), gate("latency_ms <= 2", model="a.tflite", task="benchmark")],
        parts_of("fast", made),
    )
    assert [(each.run, each.model, each.decisions[0].verdict) for each in reports] == [
        ("fast/a", "a.tflite", "pass"),
        ("fast/b", "b.tflite", "fail"),
        ("fast/a", "a.tflite", "pass"),
    ]


def test_a_configuration_of_a_suite_is_judged_as_that_of_an_evaluation() -> None:
    made = classifier()
    rows = [replace(row, job="job") for row in standing_alone(made)]
    found = parts_of("night", conclude(made.environment, [made.model], rows))
    [report] = hold_all([gate("top1 >= 10 %", task="imagenet", model=Path(made.model.file).name)], found)
    [alone] = hold_all([gate("top1 >= 10 %")], parts_of("night", made))
    assert report.run == f"night/{Path(made.model.file).stem}/job"
    assert report.decisions == alone.decisions


def test_rows_of_a_suite_of_benchmarks_are_configurations() -> None:
    rows = [
        Row(
            "fast",
            job="m",
            command="benchmark",
            figures={"latency_ms": Figure(1.5), "delegated_share": Figure(0.75)},
            load=QUIET,
        ),
        Row("gpu", job="m", command="benchmark", status="not measured", reason="no GPU"),
    ]
    limits = ("latency_ms <= 2", "delegated_share >= 80 %", "latency_p99_ms <= 9")
    made = classifier()
    [report] = hold_all(
        [gate(*limits, task="benchmark")], parts_of("night", conclude(made.environment, [made.model], rows))
    )
    found = [(each.configuration, each.verdict) for each in report.decisions]
    assert found[:3] == [("fast", "pass"), ("fast", "fail"), ("fast", "not measured")]
    assert found[3:] == [("gpu", "not measured")] * 3


FAILED = RunRows(failure="no result (exit code 2): no such file")


def test_a_run_without_a_result_keeps_no_limit_that_may_be_about_it() -> None:
    known = RunRows(
        "imagenet", "imagenet", "m.tflite", [Row("fast", status="not measured", reason="it died")], "it died"
    )
    results: dict[str, RunRows] = {"a": FAILED, "b": known, "good": part(classifier())}
    gates = [gate("top1 >= 10 %", task="imagenet"), gate("max_error <= 1", run="b", task="inference_diff")]
    first, second, third, fourth = hold_all(gates, results)
    assert first.decisions == (Decision("*", "top1 >= 10 %", "not measured", reason=FAILED.failure),)
    assert [(each.configuration, each.verdict) for each in second.decisions] == [("fast", "not measured")]
    assert (third.run, third.decisions[0].verdict) == ("good", "pass")
    assert fourth.decisions[0].reason.startswith("no result is about it; there are ")


def test_what_no_gate_is_about_is_not_measured() -> None:
    other = RunRows("benchmark", "benchmark", "m.tflite", [Row("fast")])
    results: dict[str, RunRows] = {"a": other, "good": part(classifier())}
    reports = unjudged([gate("top1 >= 10 %", task="imagenet")], results)
    assert [(each.run, each.decisions[0].verdict) for each in reports] == [("a", "not measured")]
    [report] = hold_all([gate("latency_ms <= 1", configuration="slow", run="a")], results)
    assert report.decisions[0].reason == "no configuration is named 'slow' in a; there are fast"
