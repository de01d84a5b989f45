"""The files of ``evaltools benchmark``, and what becomes of them where something cannot be written."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from evaltools.datasets import sample
from evaltools.native.lines.profile import INITIALIZATION_HEADER, RUNS_HEADER
from evaltools.proto import PROFILING, message_class
from tests import tflite_writer
from tests.command import Completed, evaltools_here

pytestmark = pytest.mark.once
pytest.importorskip("ai_edge_litert", reason="the runtime litert is not installed")

INT8 = str(sample.model_file("int8"))
FEW_RUNS = ("--num_runs=5", "--min_secs=0", "--warmup_runs=2", "--warmup_min_secs=0")
QUICK = (*FEW_RUNS, "--runtime=litert")
TWO = ("--config=a b: use_xnnpack=true runtime=litert", "--config=cpu: use_xnnpack=false runtime=litert")
MISSING = "--config=phone: use_nnapi=true runtime=litert"
PROFILED = ("--enable_op_profiling=true", "--op_profiling_runs=3", "--rounds=1")
CSV_HEAD = "node type, first, avg_ms, %, cdf%, mem KB, times called, name"


def benchmark(*arguments: str) -> Completed:
    return evaltools_here("benchmark", f"--graph={INT8}", *arguments)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def validated(path: Path) -> Any:
    """The document, which keeps the schema that comes with the package."""
    document = json.loads(path.read_text())
    schema = json.loads(files("evaltools.result").joinpath("result.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    return document


@pytest.mark.parametrize(
    ("flags", "head"),
    [
        (("--op_profiling_output_file={}",), "[node type]"),
        (("--op_profiling_output_mode=csv", "--op_profiling_output_file={}"), CSV_HEAD),
        (("--profiling_output_csv_file={}",), CSV_HEAD),
    ],
)
def test_each_configuration_has_a_table_of_its_operators(flags: tuple[str, ...], head: str, tmp_path: Path) -> None:
    target = tmp_path / "ops.txt"
    done = benchmark(*FEW_RUNS, *TWO, *PROFILED, *(flag.format(target) for flag in flags))
    assert done.code == 0, done.err
    assert names_in(tmp_path) == ["ops.cpu.txt", "ops.txt"]
    assert RUNS_HEADER not in done.out
    for name, has_delegate in (("ops.txt", True), ("ops.cpu.txt", False)):
        text = (tmp_path / name).read_text()
        assert text.index(INITIALIZATION_HEADER) < text.index(RUNS_HEADER)
        assert text.count(head) == 4
        assert ("Delegate/Convolution" in text, "DEPTHWISE_CONV_2D" in text) == (has_delegate, not has_delegate)


def test_each_measured_configuration_has_its_protobufs_and_failed_ones_have_none(tmp_path: Path) -> None:
    ops, proto, output = tmp_path / "ops.pb", tmp_path / "r.pb", tmp_path / "r.json"
    written = (f"--op_profiling_output_file={ops}", f"--result_file_path={proto}", f"--output_file_path={output}")
    done = benchmark(*FEW_RUNS, *TWO, MISSING, *PROFILED, "--op_profiling_output_mode=proto", *written)
    assert done.code == 3, done.err
    assert names_in(tmp_path) == ["ops.cpu.pb", "ops.pb", "r.cpu.pb", "r.json", "r.pb"]
    rows = validated(output)["rows"]
    assert [(row["name"], row.get("reason", "") != "") for row in rows] == [
        ("a b", False),
        ("cpu", False),
        ("phone", True),
    ]
    kind = message_class("BenchmarkProfilingData", PROFILING)
    for path, row in zip((ops, tmp_path / "ops.cpu.pb"), rows, strict=False):
        message = kind.FromString(path.read_bytes())
        (graph,) = message.runtime_profile.subgraph_profiles
        expected = [(op["name"], sum(op["series"]["times_us"])) for op in row["rows"]]
        assert [(op.node_type, op.inference_microseconds.sum) for op in graph.per_op_profiles] == expected
        assert {op.inference_microseconds.count for op in graph.per_op_profiles} == {3}
    assert "phone" not in "".join(line for line in done.out.splitlines() if "Saved benchmark result" in line)


def test_outputs_are_those_of_the_last_run_of_a_model_with_a_state(tmp_path: Path) -> None:
    """The model sums up its inputs, so that the seventh run in a process, after two to warm up, gives 7 * 1.5."""
    graph = tflite_writer.Graph()
    fed, state = graph.tensor("fed", (1, 1)), graph.tensor("state", (1, 16), variable=True)
    feature = graph.constant("feature", np.ones((1, 1), np.float32))
    over_time = graph.constant("time", np.ones((1, 16), np.float32))
    total = graph.tensor("total", (1, 1))
    graph.node("SVDF", [fed, feature, over_time, -1, state], total, "SVDFOptions", Rank=1)
    model, value, outputs = tmp_path / "m.tflite", tmp_path / "fed.bin", tmp_path / "out.bin"
    model.write_bytes(graph.to_bytes([fed], [total]))
    value.write_bytes(np.array([1.5], np.float32).tobytes())
    layer = ("--input_layer=fed", "--input_layer_shape=1,1", f"--input_layer_value_files=fed:{value}")
    done = evaltools_here(
        "benchmark", f"--graph={model}", *QUICK, "--rounds=2", "--use_xnnpack=false", *layer,
        f"--output_filepath={outputs}",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert np.frombuffer(outputs.read_bytes(), np.float32).tolist() == [10.5]


@pytest.mark.parametrize(("redirection", "code"), [(">/dev/full", 5), ("| true", 0)])
def test_the_result_is_written_whatever_becomes_of_stdout(redirection: str, code: int, tmp_path: Path) -> None:
    """A full disk is an error; a reader that has gone is none."""
    output = tmp_path / "result.json"
    words = [sys.executable, "-m", "evaltools.cli.main", "benchmark", f"--graph={INT8}", *QUICK]
    script = f"set -o pipefail; \"$@\" --output_file_path='{output}' {redirection}"
    done = subprocess.run(["bash", "-c", script, "bash", *words], stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert ("stdout cannot be written" in done.stderr) == (code == 5)
    assert validated(output)["rows"][0]["counts"]["runs"] == 5


def test_a_file_that_cannot_be_written_costs_no_other(tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    done = benchmark(*QUICK, f"--output_file_path={output}", "--result_file_path=/dev/full")
    assert done.code == 5
    assert "/dev/full cannot be written: No space left on device" in done.err
    assert "Saved benchmark result" not in done.out
    assert validated(output)["rows"][0]["figures"]["latency_ms"]["value"] > 0
