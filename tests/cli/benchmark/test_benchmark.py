"""``evaltools benchmark`` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltools.benchmark.flags import REFUSED
from evaltools.datasets import sample
from evaltools.metrics.latency import whole_us
from evaltools.native.logs.benchmark import parse_benchmark_log
from evaltools.native.logs.delegates import delegate_lines, read_delegate_log
from evaltools.result_file import read_result
from tests.command import Completed, evaltools_here

pytestmark = pytest.mark.once
pytest.importorskip("ai_edge_litert", reason="the runtime litert is not installed")

INT8, FLOAT = str(sample.model_file("int8")), str(sample.model_file("float32"))
QUICK = ("--num_runs=5", "--min_secs=0", "--warmup_runs=2", "--warmup_min_secs=0", "--runtime=litert")


def benchmark(*arguments: str, cwd: Path | None = None) -> Completed:
    return evaltools_here("benchmark", *arguments, cwd=cwd)


def rows_of(path: Path) -> Any:
    """The rows of a result that fits its types."""
    read_result(path)
    return json.loads(path.read_text())["rows"]


def test_the_lines_are_the_native_ones_with_our_figures(tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    done = benchmark(f"--graph={INT8}", *QUICK, "--use_xnnpack=true", f"--output_file_path={output}")
    assert done.code == 0, done.err
    log = parse_benchmark_log(done.out)
    assert log.parameters["Graph"] == INT8
    assert log.parameters["Min num runs"] == "5"
    assert log.parameters["Use xnnpack"] == "1"
    (row,) = rows_of(output)
    assert log.round is not None
    assert log.round.warm_up is not None
    regular, figures = log.round.regular, {name: figure["value"] for name, figure in row["figures"].items()}
    assert (regular.count, log.round.warm_up.count) == (5, 2)
    assert row["counts"] == {"rounds": 1, "runs": 5}
    assert regular.min_us == whole_us(min(row["series"]["invoke_us"]))
    assert log.round.init_us == pytest.approx(1000 * figures["load_ms"])
    assert log.round.first_inference_us == whole_us(1000 * figures["first_run_ms"])
    assert f"The input model file size (MB): {Path(INT8).stat().st_size / 1e6:g}\n" in done.out
    taken = row["delegates"][0]
    whole = (taken["nodes"], taken["partitions"]) == (row["delegation"]["total_nodes"], 1)
    applied = read_delegate_log(delegate_lines(done.out)).applied[0]
    assert applied[:2] == ("XNNPACK", "full" if whole else "partial")
    assert "test " in done.err
    assert "median" in done.err


def test_every_model_is_measured_with_every_configuration_and_the_summary_is_sorted(tmp_path: Path) -> None:
    output, plot, trace = tmp_path / "r.json", tmp_path / "p.svg", tmp_path / "t.json"
    files = (f"--output_file_path={output}", f"--plot={plot}", f"--trace={trace}")
    done = benchmark(
        f"--graph={INT8}", f"--graph={FLOAT}", *QUICK, "--rounds=2", "--sweep=use_xnnpack=true,false", *files,
        "--compat=native",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = rows_of(output)
    assert [(row.get("model", 0), row["name"]) for row in rows] == [
        (model, f"use_xnnpack={value}") for model in (0, 1) for value in ("true", "false")
    ]
    assert all(row["counts"]["rounds"] == 2 for row in rows)
    summary = done.out[done.out.index("Summary of All Runs") :].splitlines()[1:]
    averages = [float(line.split("avg=")[1].split()[0]) for line in summary]
    assert len(averages) == 4
    assert averages == sorted(averages)
    assert "<svg" in plot.read_text()
    assert json.loads(trace.read_text())["traceEvents"]


def test_all_options_of_the_native_list_with_reasons_for_those_that_fail(tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    more = ("--rounds=1", "--perf_options_list=all", f"--output_file_path={output}", "--compat=native")
    done = benchmark(f"--graph={INT8}", *QUICK, *more)
    assert done.code == 0, done.err
    assert "The list of TFLite runtime options to be benchmarked: [all]" in done.out
    rows = {row["name"]: row for row in rows_of(output)}
    assert sum(name.startswith("cpu w/") for name in rows) == 6
    for name, row in rows.items():
        assert row["status"] == "measured" or not name.startswith("cpu")
        if row["status"] == "not measured":
            assert row["reason"]
            assert [line for line in done.err.splitlines() if name in line and ": not measured: " in line]
            assert f"{name}:  failed!" in done.out
    assert rows["nnapi(w/o accel name)"]["status"] == "not measured"


def test_of_several_configurations_stdout_has_no_lines_and_a_file_has_them(tmp_path: Path) -> None:
    several, file = ("--rounds=1", "--sweep=threads:1,2"), tmp_path / "lines.txt"
    assert benchmark(INT8, *QUICK, *several).out == ""
    done = benchmark(INT8, *QUICK, *several, f"--native_lines={file}", "--quiet")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("The fastest is num_threads=")
    assert len(done.err.splitlines()) == 1
    assert file.read_text().count("INFO: STARTING!") == 2
    assert "Summary of All Runs" in file.read_text()


def test_the_lines_of_one_configuration_in_a_file_are_those_of_stdout(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    done = benchmark(INT8, *QUICK, f"--native_lines={file}", f"--result_file_path={tmp_path / 'r.pb'}")
    assert (done.code, done.out) == (0, "")
    assert parse_benchmark_log(file.read_text()).round is not None
    assert file.read_text().endswith(f"INFO: Saved benchmark result to: {tmp_path / 'r.pb'}\n")


def test_accuracy_stands_beside_latency(tmp_path: Path) -> None:
    accuracy, output = tmp_path / "accuracy.json", tmp_path / "result.json"
    found = evaltools_here(
        "imagenet",
        f"--model_file={INT8}",
        f"--ground_truth_images_path={sample.images_dir()}",
        f"--ground_truth_labels={sample.ground_truth_file()}",
        f"--model_output_labels={sample.labels_file()}",
        "--num_images=30",
        "--config=xnnpack: use_xnnpack=true",
        f"--output_file_path={accuracy}",
    )
    assert found.code == 0, found.err
    config = ("--config", "xnnpack: use_xnnpack=true", "--config", "other: use_xnnpack=false")
    done = benchmark(f"--graph={INT8}", *QUICK, *config, f"--accuracy={accuracy}", f"--output_file_path={output}")
    rows = {row["name"]: row for row in rows_of(output)}
    measured = json.loads(accuracy.read_text())["rows"]
    expected = next(entry["figures"]["top1"]["value"] for entry in measured if entry["name"] == "xnnpack")
    assert rows["xnnpack"]["figures"]["top1"]["value"] == pytest.approx(expected)
    assert rows["xnnpack"]["counts"]["on_latency_front"] == 1
    assert "top-1" in done.err


@pytest.mark.parametrize("name", REFUSED)
def test_native_flags_without_use_here_are_refused_by_name(name: str) -> None:
    done = benchmark(f"--graph={INT8}", f"--{name}=1")
    assert done.code == 2
    assert f"--{name} is not supported: {REFUSED[name]}" in done.err
