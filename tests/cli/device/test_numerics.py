"""``evaltools device run inference-diff`` with LiteRT's numerics checks, on the real daemon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.device.runs import run
from tests.command import Completed
from tests.device.fixtures import Devices
from tests.device.numerics_stand_in import GPU_TOOK, NPU_TOOK, write_model, write_numerics_check
from tests.device.real_device import Network

pytestmark = pytest.mark.once
CPU = [0.25, 0.5, 0.125, 1.0]
CLOSE = [0.25, 0.5, 0.1250001, 1.5]
SAME = [2.0, 3.0]
GPU = ("--use_gpu=true", "--gpu_precision_loss_allowed=false")


def check(network: Network, devices: Devices, binary: Path, model: Path, *words: str) -> Completed:
    place = (f"--adb={network.adb}", f"--serials={devices[0].serial}", f"--native_binary={binary}")
    return run(["device", "run", "inference-diff", str(model), *place, *words])


def compared(path: Path) -> tuple[Any, Any]:
    """The result, and the comparison in it."""
    result = json.loads(path.read_text())
    return result, result["part"]["comparisons"][0]


def test_a_check_of_a_gpu_is_read_into_the_result(network: Network, devices: Devices, tmp_path: Path) -> None:
    model, output = write_model(tmp_path / "m.tflite"), tmp_path / "out.json"
    binary = write_numerics_check(tmp_path, "gpu", [(CPU, CLOSE), (SAME, SAME)], GPU_TOOK, fails=True)
    done = check(network, devices, binary, model, *GPU, "--epsilon=0.01", "--verbose", f"--output_file_path={output}")
    assert done.code == 0, done.err
    result, found = compared(output)
    narrow, wide = found["numerics"]
    assert (wide["max_diff"], wide["min_diff"], wide["mean_diff"], wide["mse"]) == (0.5, 0.0, 0.125, 0.0625)
    assert (wide["different"], wide["elements"], wide["epsilon"]) == (1, 4, 0.01)
    assert (narrow["max_diff"], narrow["different"], narrow["elements"]) == (0.0, 0, 2)
    assert [error["avg_error"] for error in found["native_errors"]] == [0.0, 0.125]
    test = next(entry for entry in result["configurations"] if entry["role"] == "test")
    assert (test["status"], test["inference_latency"]) == ("measured", None)
    assert [(used["name"], used["nodes"]) for used in test["delegates"]] == [("GPU", 3)]
    assert test["verdicts"][0]["kind"] == "not judged"
    assert "Total 1 out of 4 are different elements, for output #0, threshold - 0.01" in done.out
    assert "1 of 4 elements (0.25) differ by more than 0.01" in done.err


def test_a_gpu_that_took_no_nodes_is_not_measured(network: Network, devices: Devices, tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.tflite")
    binary = write_numerics_check(tmp_path, "gpu", [(CPU, CPU), (SAME, SAME)], GPU_TOOK[:2])
    done = check(network, devices, binary, model, *GPU)
    assert done.code == 3
    assert "GPU was asked for, but no line of the log says that it took nodes" in " ".join(done.err.split())


def test_a_check_of_an_npu_gets_its_libraries_and_inputs(network: Network, devices: Devices, tmp_path: Path) -> None:
    model, compiled = write_model(tmp_path / "m.tflite"), write_model(tmp_path / "npu.tflite", "DISPATCH_OP")
    libraries, inputs, output = tmp_path / "libraries", tmp_path / "raw", tmp_path / "out.json"
    libraries.mkdir()
    inputs.mkdir()
    (libraries / "libLiteRtDispatch_Qualcomm.so").write_bytes(b"a library")
    (inputs / "x.raw").write_bytes(np.zeros(4, np.float32).tobytes())
    binary = write_numerics_check(tmp_path, "npu", [(CPU, CLOSE), (SAME, SAME)], NPU_TOOK, inputs={"x.raw": 16})
    words = [
        f"--npu_model={compiled}", "--use_npu=true", "--npu_vendor=qualcomm",
        "--qualcomm_htp_performance_mode=burst", f"--output_file_path={output}",
    ]  # fmt: skip
    done = check(network, devices, binary, model, *words)
    assert done.code == 2
    assert "npu_numerics_check needs the vendor's dispatch library" in done.err
    words += [f"--device_libraries={libraries}", f"--input_dir={inputs}"]
    done = check(network, devices, binary, model, *words)
    assert done.code == 0, done.err
    result, found = compared(output)
    assert found["numerics"][1]["different"] == 1
    test = next(entry for entry in result["configurations"] if entry["role"] == "test")
    assert [(used["name"], used["nodes"]) for used in test["delegates"]] == [("NPU", 1)]
    assert {used["source"] for used in result["part"]["inputs"]} == {"files of --input_dir"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--use_xnnpack=true"], "gpu_numerics_check compares the CPU with the GPU, and this asks for XNNPACK"),
        ([*GPU, "--max_delegated_partitions=2"], "gpu_numerics_check has nothing of --max_delegated_partitions"),
        ([*GPU, "--input_dir=."], "gpu_numerics_check has nothing of --input_dir; leave it out"),
        ([*GPU, "--num_runs=3"], "--num_runs=3: gpu_numerics_check compares one run; leave it out"),
        ([*GPU, "--epsilon=-1"], "--epsilon=-1: use 0 or more, such as 1e-4"),
    ],
)
def test_what_the_program_lacks_is_refused_before_a_device_is_asked(
    words: list[str], message: str, network: Network, devices: Devices, tmp_path: Path
) -> None:
    model = write_model(tmp_path / "m.tflite")
    binary = write_numerics_check(tmp_path, "gpu", [], ())
    done = check(network, devices, binary, model, *words)
    assert done.code == 2
    assert message in " ".join(done.err.split())
