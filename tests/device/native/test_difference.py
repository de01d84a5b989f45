"""Native inference_diff runs as our typed result."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.device.native_inputs import prepare_diff
from evaltools.native.lines.evaluation import native_lines, native_proto
from evaltools.native.logs.figures import NativeFigures, read_figures
from evaltools.proto import message_class
from evaltools.report.words.numbers import in_times
from tests.device.native.runs import (
    PLAIN,
    NativeRun,
    assembled,
    entry_of,
    run_stand_in,
    stand_ins,
    through_every_rendering,
)
from tests.device.native.test_inputs import diff_request


def diff_inputs(**changes: Any) -> Any:
    return prepare_diff(diff_request(**changes))


@pytest.mark.once
def test_inference_diff_from_the_program_to_the_tables(tmp_path: Path) -> None:
    inputs = diff_inputs(max_avg_error=("0.01",))
    builtin = Configuration("builtin", kernels="builtin")
    same, other = stand_ins(tmp_path, inputs, PLAIN, builtin)
    result = assembled(inputs, same, other)
    assert [(entry.name, entry.role, entry.status) for entry in result.rows] == [
        ("reference", "reference", "measured"),
        ("test", "test", "measured"),
        ("builtin", "test", "measured"),
    ]
    reference = entry_of(result, "reference")
    assert reference.latency is not None
    written = [figures_of(run) for run in (same, other)]
    averages = [figures.reference.avg_us for figures in written]
    assert min(averages) <= reference.latency.avg_us <= max(averages)
    verdicts = [entry.verdict for entry in result.rows[1:]]
    assert [verdict and (verdict.kind, verdict.against) for verdict in verdicts] == [
        ("identical", "reference"), ("not judged", "reference"),
    ]  # fmt: skip
    assert result.limits_broken
    error = written[1].errors[0].avg_error
    assert result.rows[2].value("avg_error") == pytest.approx(error)
    assert verdicts[1] is not None
    assert verdicts[1].why.startswith(f"output_0: avg_error {error:g} in raw numbers")
    table = through_every_rendering(result, tmp_path)
    assert "LIMIT BROKEN --max_avg_error=0.01" in table
    assert re.search(rf"builtin, output 0 \S+: avg_error {error:.4g}, between runs", table)


def test_the_protobuf_of_a_single_configuration_is_the_tools_own(tmp_path: Path) -> None:
    inputs = diff_inputs()
    run = run_stand_in(tmp_path / "run", inputs, Configuration("builtin", kernels="builtin"))
    result = assembled(inputs, run)
    assert native_proto(result, entry_of(result, "builtin")) == run.proto
    figures = [line for line in run.log.splitlines() if line.startswith("INFO: ") and "Created" not in line]
    assert native_lines(result) == figures


def test_inference_diff_has_one_reference_inside(tmp_path: Path) -> None:
    inputs = diff_inputs()
    run = run_stand_in(tmp_path / "run", inputs, PLAIN)
    failed = run.as_if(code=1, out="ERROR: Could not run the task evaluation!\n")
    result = assembled(inputs, failed)
    assert [entry.status for entry in result.rows] == ["not measured", "not measured"]
    assert [verdict.kind for verdict in result.rows[1].verdicts] == ["not compared"]
    through_every_rendering(result, tmp_path)


def slowed(run: NativeRun, factor: int, place: str) -> NativeRun:
    """The same run at a place where both sides take so many times as long, without the text."""
    message = message_class("EvaluationStageMetrics").FromString(run.proto)
    metrics = message.process_metrics.inference_profiler_metrics
    for latency in (metrics.reference_latency, metrics.test_latency):
        for name in ("last_us", "max_us", "min_us", "sum_us", "avg_us"):
            setattr(latency, name, factor * getattr(latency, name))
    return replace(run.as_if(output=message.SerializeToString(), out=""), place=place)


def figures_of(run: NativeRun) -> NativeFigures:
    assert run.proto is not None
    return read_figures(run.proto)


def test_every_place_has_the_reference_that_ran_there(tmp_path: Path) -> None:
    inputs = diff_inputs()
    made = run_stand_in(tmp_path / "run", inputs, PLAIN)
    near, far = slowed(made, 1, "near"), slowed(made, 100, "far")
    result = assembled(inputs, near, far)
    assert [(entry.name, entry.role, entry.place) for entry in result.rows] == [
        ("reference@near", "reference", "near"),
        ("test@near", "test", "near"),
        ("reference@far", "reference", "far"),
        ("test@far", "test", "far"),
    ]
    for run in (near, far):
        latency = entry_of(result, f"reference@{run.place}").latency
        assert latency is not None
        assert (latency.avg_us, latency.count) == (figures_of(run).reference.avg_us, 15)
        assert native_proto(result, entry_of(result, f"test@{run.place}")) == run.proto
    table = through_every_rendering(result, tmp_path)
    ratio = figures_of(made).reference.avg_us / figures_of(made).inference.avg_us
    rows = [
        re.split("  +", line)
        for line in table.splitlines()
        if line.startswith(("test@", "reference@")) and " ms " in line
    ]
    assert {row[0]: row[3] for row in rows if row[0].startswith("test") and "average" in row[2]} == {
        "test@near": in_times(1 / ratio),
        "test@far": in_times(1 / ratio),
    }


def test_a_place_where_no_run_came_to_its_end_has_no_reference(tmp_path: Path) -> None:
    inputs = diff_inputs()
    run = run_stand_in(tmp_path / "run", inputs, PLAIN)
    lost = replace(run.as_if(failure="the device was lost"), place="far")
    result = assembled(inputs, replace(run, place="near"), lost)
    assert [(entry.name, entry.status) for entry in result.rows] == [
        ("reference@near", "measured"),
        ("test@near", "measured"),
        ("reference@far", "not measured"),
        ("test@far", "not measured"),
    ]


def test_inference_diff_of_another_model_is_not_measured(tmp_path: Path) -> None:
    inputs = diff_inputs()
    run = run_stand_in(tmp_path / "run", inputs, PLAIN)
    detector = prepare_diff(diff_request(model_file=sample.detection_model_file("float32")))
    (reason,) = {entry.reason for entry in assembled(detector, run).rows if entry.role == "test"}
    assert re.fullmatch("the native tool compared 1 outputs, .* has 4", reason)
