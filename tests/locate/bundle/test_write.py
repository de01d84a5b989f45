from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.errors import OutputError
from evaltools.locate.bundle.write import node_data, output_of, write_bundle
from evaltools.locate.parts.part import Case
from evaltools.model import read_model
from evaltools.model.contents import read_contents
from evaltools.model.cut import CuttableModel, Form
from evaltools.result.locate import Errors, Evidence, Operator
from tests.locate.bundle.cases import SmallModel, addition, case_of, large_sum, neighbour_of, result_of
from tests.runtime.openers import gpu_or_skip
from tests.tflite_writer import Graph

EVERY_FILE = ("README.md", "failing.tflite", "inputs.npz", "node_data.json", "reproduce.py", "result.json")
FP16 = "runtime=compiled use_xnnpack=true xnnpack_force_fp16=true"


def run_script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "reproduce.py", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def changed(case: Case, **fields: Any) -> Case:
    """The same case with other fields, which reads its arrays anew."""
    return replace(case, **fields)


@pytest.mark.parametrize(
    ("runtime", "fault", "tolerance", "words"),
    [
        ("litert", "scale;amount:2", 1e-5, "largest difference 114 at (1, 3): CPU 114.0, delegate 228.0"),
        ("tflite_runtime", "scale;amount:2", 1e-5, "largest difference 114 at (1, 3): CPU 114.0, delegate 228.0"),
        ("litert", "nan", 1e30, "largest difference inf"),
    ],
)
def test_a_fault_of_an_external_delegate_is_reproduced(
    runtime: str, fault: str, tolerance: float, words: str, faulty_delegate: Path, tmp_path: Path
) -> None:
    flags = f"runtime={runtime} external_delegate_path={faulty_delegate} external_delegate_options=fault:{fault}"
    case = case_of(addition(), flags, tmp_path, tolerance=tolerance)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case, None)
    assert bundle.reproduced
    assert bundle.files == EVERY_FILE
    assert bundle.folder == str(tmp_path / "bundle")
    assert f"failing.tflite: wrong in 3 of 3 runs (tolerance {tolerance:g})" in bundle.printed
    assert words in bundle.printed
    assert bundle.printed.splitlines()[-1] == "reproduced"
    readme = (tmp_path / "bundle" / "README.md").read_text()
    assert readme.startswith(f"# {case.operator} gives wrong values with ")
    assert bundle.printed in readme
    again = run_script(tmp_path / "bundle", "--runs=1")
    assert (again.returncode, "wrong in 1 of 1 runs" in again.stdout) == (1, True)


def test_elsewhere_the_script_asks_where_the_library_is(faulty_delegate: Path, tmp_path: Path) -> None:
    library = tmp_path / "faulty.so"
    shutil.copy(faulty_delegate, library)
    flags = f"external_delegate_path={library} external_delegate_options=fault:scale;amount:2"
    case = case_of(addition(), flags, tmp_path)
    bundle = tmp_path / "bundle"
    assert write_bundle(bundle, result_of(case), case, None).reproduced
    library.unlink()
    lost = run_script(bundle)
    assert (lost.returncode, lost.stdout) == (2, "")
    assert f"no such file here: {library}; say where yours is, --library=PATH" in lost.stderr
    twice = run_script(bundle, "--library=a.so", "--library=b.so")
    assert twice.returncode == 2
    assert f"--library must be given once for each of {library}; got 2" in twice.stderr
    given = run_script(bundle, f"--library={faulty_delegate}")
    assert (given.returncode, given.stdout.splitlines()[-1]) == (1, "reproduced")


def test_a_sum_beyond_fp16_is_reproduced_with_compiled_model(tmp_path: Path) -> None:
    case = case_of(large_sum(), FP16, tmp_path, tolerance=100.0)
    assert case.expected.item() > 120_000
    assert not abs(case.given.item() - case.expected.item()) < 50_000  # 65 504 or infinity
    small = neighbour_of(addition("total"), tmp_path)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case, small)
    assert bundle.reproduced, bundle.printed
    assert "passing.tflite" in bundle.files
    assert "passing.tflite: wrong in 0 of 3 runs" in bundle.printed
    assert "SUM gives wrong values with XNNPACK in fp16" in (tmp_path / "bundle" / "reproduce.py").read_text()


@pytest.mark.parametrize("exact", [True, False])
def test_what_a_gpu_gives_is_reproduced_as_far_as_it_is_wrong(exact: bool, tmp_path: Path) -> None:
    (tmp_path / "probe.tflite").write_bytes(addition().content)
    gpu_or_skip(read_model(tmp_path / "probe.tflite"))
    flags = f"runtime=compiled use_gpu=true gpu_precision_loss_allowed={'false' if exact else 'true'}"
    case = case_of(large_sum(), flags, tmp_path, tolerance=100.0)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case, neighbour_of(addition(), tmp_path))
    assert bundle.reproduced != exact, bundle.printed
    assert "failing.tflite: fully accelerated: True" in bundle.printed


def test_what_is_within_the_tolerance_is_called_not_reproduced(rounding_delegate: Path, tmp_path: Path) -> None:
    flags = f"runtime=litert external_delegate_path={rounding_delegate}"
    case = case_of(addition(), flags, tmp_path, tolerance=1000.0)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case, None)
    assert not bundle.reproduced
    assert bundle.printed.splitlines()[-1] == "not reproduced"
    assert run_script(tmp_path / "bundle").returncode == 0
    assert "np.zeros_like" not in (tmp_path / "bundle" / "reproduce.py").read_text()


def test_a_fault_of_some_runs_is_run_often(faulty_delegate: Path, tmp_path: Path) -> None:
    options = "fault:offset;amount:3;every:10"
    flags = f"runtime=litert external_delegate_path={faulty_delegate} external_delegate_options={options}"
    case = case_of(addition(), flags, tmp_path, runs=10)
    result = result_of(case, [Evidence("single operator", "operator 0", True, 1, 10)])
    bundle = write_bundle(tmp_path / "bundle", result, case, None)
    assert "wrong in 5 of 50 runs" in bundle.printed
    assert bundle.reproduced


def test_a_part_with_a_state_is_run_once(faulty_delegate: Path, tmp_path: Path) -> None:
    graph = Graph()
    fed, state = graph.tensor("fed", (1, 4)), graph.tensor("state", (1, 4), variable=True)
    graph.node("ADD", [fed, state], graph.tensor("sum", (1, 4)), "AddOptions")
    model = SmallModel(graph.to_bytes([fed], [2]), (np.ones((1, 4), np.float32),), "ADD", "sum")
    flags = f"runtime=litert external_delegate_path={faulty_delegate} external_delegate_options=fault:scale"
    case = case_of(model, flags, tmp_path)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case, None)
    assert "wrong in 1 of 1 runs" in bundle.printed


@pytest.mark.parametrize("fault", ["stale", "frozen"])
def test_an_output_of_another_run_is_reproduced_with_runs_in_between(
    fault: str, faulty_delegate: Path, tmp_path: Path
) -> None:
    flags = f"runtime=litert external_delegate_path={faulty_delegate} external_delegate_options=fault:{fault}"
    case = case_of(addition(), flags, tmp_path)
    arrays: dict[str, Any] = dict(case.loaded) | {"given": np.zeros_like(case.expected)}
    np.savez(case.arrays, **arrays)
    case = changed(case)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case, None)
    assert bundle.reproduced, bundle.printed
    assert "np.zeros_like" in (tmp_path / "bundle" / "reproduce.py").read_text()


def test_a_neighbour_that_cannot_be_run_spoils_nothing(faulty_delegate: Path, tmp_path: Path) -> None:
    graph = Graph()
    graph.node("Unknown", [graph.tensor("x", (2, 4))], graph.tensor("sum", (2, 4)), b"options")
    flags = f"runtime=litert external_delegate_path={faulty_delegate} external_delegate_options=fault:zero"
    case = case_of(addition(), flags, tmp_path)
    unknown = tmp_path / "unknown.tflite"
    unknown.write_bytes(graph.to_bytes([0], [1]))
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case, replace(case, model=unknown))
    assert bundle.reproduced
    assert "passing.tflite" not in bundle.printed


@pytest.mark.parametrize(
    "flags",
    [
        *("runtime=litert use_xnnpack=true", "runtime=tflite_runtime", "runtime=compiled"),
        pytest.param(
            "runtime=compiled use_npu=true npu_vendor=intel_openvino intel_openvino_graph_backends=cpu",
            marks=pytest.mark.skipif(importlib.util.find_spec("openvino") is None, reason="OpenVINO is not installed"),
        ),
    ],
)
def test_scripts_of_configurations_without_a_fault_run(flags: str, tmp_path: Path) -> None:
    case = case_of(addition(), flags, tmp_path)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case, neighbour_of(addition("sum", (4,)), tmp_path))
    assert bundle.printed.splitlines()[-1] == "not reproduced", bundle.printed
    assert "passing.tflite: wrong in 0 of 3 runs" in bundle.printed


def test_a_delegate_that_cannot_be_loaded_reproduces_nothing(rounding_delegate: Path, tmp_path: Path) -> None:
    library = tmp_path / "gone.so"
    library.write_bytes(rounding_delegate.read_bytes())
    case = case_of(addition(), f"runtime=litert external_delegate_path={library}", tmp_path)
    library.unlink()
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case, None)
    assert not bundle.reproduced
    assert "gone.so" in bundle.printed
    assert run_script(tmp_path / "bundle").returncode == 2


def test_a_process_that_dies_reproduces_a_crash(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = "#include <stdlib.h>\nvoid *tflite_plugin_create_delegate(void) { abort(); }"
    library = tmp_path / "crashing.so"
    build = [compiler, "-x", "c", "-", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run(build, input=source, text=True, check=True)
    case = case_of(addition(), "runtime=litert kernels=builtin", tmp_path)
    inputs: dict[str, Any] = {name: values for name, values in case.loaded.items() if name not in ("given", "before")}
    np.savez(case.arrays, **inputs)
    configuration = Configuration.from_text("crash", f"runtime=litert external_delegate_path={library}")
    crash = changed(case, configuration=configuration)
    bundle = write_bundle(tmp_path / "bundle", result_of(crash), crash, None)
    assert bundle.reproduced
    assert "(its process was ended by SIGABRT)" in bundle.printed
    assert str(tmp_path) not in bundle.printed
    assert "ADD crashes with crashing.so" in (tmp_path / "bundle" / "reproduce.py").read_text()


def test_arrays_and_models_are_those_of_the_case(faulty_delegate: Path, tmp_path: Path) -> None:
    flags = f"runtime=litert external_delegate_path={faulty_delegate} external_delegate_options=fault:zero"
    case = case_of(addition(), flags, tmp_path)
    write_bundle(tmp_path / "bundle", result_of(case), case, None)
    assert (tmp_path / "bundle" / "failing.tflite").read_bytes() == case.model.read_bytes()
    with np.load(tmp_path / "bundle" / "inputs.npz", allow_pickle=False) as archive:
        assert sorted(archive.files) == ["expected", "given", "input_0", "input_1"]
        np.testing.assert_array_equal(archive["input_1"], case.inputs[1])
        np.testing.assert_array_equal(archive["given"], case.given)
    result = json.loads((tmp_path / "bundle" / "result.json").read_bytes())
    assert result["bundle"]["reproduced"] is True
    assert result["bundle"]["files"] == list(EVERY_FILE)


def test_names_of_a_model_do_no_harm(faulty_delegate: Path, tmp_path: Path) -> None:
    name = 'a"""b\n`c``d|é<script>@someone #1 \\ $x {y} \udcff'.encode("utf-8", "replace").decode()
    flags = f"runtime=litert external_delegate_path={faulty_delegate} external_delegate_options=fault:zero"
    case = case_of(addition(name), flags, tmp_path)
    odd = changed(case, operator=name)
    folder = tmp_path / 'odd "folder" é $x'
    bundle = write_bundle(folder, result_of(odd), odd, None)
    assert bundle.reproduced, bundle.printed


def test_without_a_case_there_is_nothing_to_reproduce(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle", result_of(None), None, None)
    assert bundle.files == ("node_data.json", "result.json")
    assert (bundle.reproduced, bundle.printed) == (False, "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle").chmod(0o500)
    with pytest.raises(OutputError, match="cannot be written"):
        write_bundle(tmp_path / "bundle", result_of(None), None, None)


def colours(*operators: Operator, graph: str = "") -> dict[str, Any]:
    content = json.loads(node_data(operators, graph), parse_constant=pytest.fail)
    assert isinstance(content, dict)
    return content


def measured(index: int, worst: float, tolerance: float) -> Operator:
    errors = Errors(worst=worst, median=0.0, relative=0.0, runs=1, beyond=0)
    return Operator(index, "ADD", "x", "absolute", "right", local=errors, tolerance=tolerance)


def test_errors_are_shares_of_the_tolerance_as_model_explorer_reads_them() -> None:
    """As ``GraphNodeData`` of ``model_explorer.node_data_builder`` has it, version 0.1.34."""
    operators = (measured(0, 1.0, 0.5), measured(3, 0.0, 0.0), Operator(4, "MUL", "y", "absolute", "not tried"))
    assert list(colours(*operators, graph='odd "né')) == ['odd "né']
    graph = colours(*operators)["main"]
    assert set(graph) == {"results", "name", "thresholds"}
    assert graph["results"] == {"0": {"value": 2.0}, "3": {"value": 0.0}}
    values = [threshold["value"] for threshold in graph["thresholds"]]
    assert values == sorted(values)
    assert all(set(threshold) == {"value", "bgColor"} for threshold in graph["thresholds"])


@pytest.mark.parametrize(("worst", "tolerance"), [(math.inf, 1.0), (math.nan, 1.0), (1.0, 0.0), (1e300, 1e-300)])
def test_what_json_cannot_hold_has_the_last_colour(worst: float, tolerance: float) -> None:
    graph = colours(measured(0, worst, tolerance))["main"]
    assert graph["results"]["0"]["value"] == graph["thresholds"][-1]["value"]


def test_outputs_are_found_by_name_then_kind(tmp_path: Path) -> None:
    graph = Graph()
    left = graph.tensor("x", (2,))
    for shape in ((2,), (2, 1)):
        axes = graph.constant("shape", np.array(shape, np.int32))
        graph.node("RESHAPE", [left, axes], graph.tensor("same", shape), "ReshapeOptions")
    (tmp_path / "part.tflite").write_bytes(graph.to_bytes([left], [2, 4]))
    found = read_contents(read_model(tmp_path / "part.tflite")).main
    assert output_of(found, "same", np.zeros(2, np.float32)) == 0
    assert output_of(found, "same", np.zeros((2, 1), np.float32)) == 1
    assert output_of(found, "same", np.zeros(7, np.int8)) == 0
    assert output_of(found, "unknown", np.zeros(2, np.float32)) == 1


def test_a_tap_counts_as_its_tensor(tmp_path: Path) -> None:
    cut = CuttableModel(addition("sum").content).cut(0, 0, {n: Form((2, 4), "float32") for n in range(3)}, taps=[2])
    (tmp_path / "part.tflite").write_bytes(cut.content)
    found = read_contents(read_model(tmp_path / "part.tflite")).main
    assert [found.tensors[place].name for place in found.outputs] == ["sum", "sum/tap"]
    assert output_of(found, "sum", np.zeros((2, 4), np.float32)) == 0
