"""``evaltools inspect`` on real models: none stops it, and kinds are those that the files' makers state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import evaltools_here
from tests.realdata.conftest import zoo_models
from tests.runtime.emulated.bare import emulator_or_skip

NO_MODEL = "litert_test_model_broken"
KINDS = {
    "ad01_fp32": "float32",
    "ad01_int8": "full integer",
    "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29": "full integer",
    "deeplabv3_257_float": "float32",
    "keyword_scrambled_8bit": "full integer",
    "mobilenet_v1_0.25_128_quant": "full integer",
    "mobilenet_v1_0.25_224_float": "float32",
    "mobilenet_v1_0.5_160_quant": "full integer",
    "model_ToyCar_quant_fullint": "full integer",
    "litert_string_input_model": "neither float nor quantised",
    "tf2_mobilenet_v2_1.0_224_ptq": "full integer",
    "vww_96_float": "float32",
    "vww_96_int8": "full integer",
}


@pytest.mark.parametrize("name", zoo_models())
def test_every_model_is_inspected_or_refused(zoo: Path, tmp_path: Path, name: str) -> None:
    output = tmp_path / "out.json"
    completed = evaltools_here("inspect", str(zoo / f"{name}.tflite"), f"--output_file_path={output}")
    assert "Traceback" not in completed.err
    if name == NO_MODEL:
        assert (completed.code, completed.out, output.exists()) == (2, "", False)
        return
    assert completed.code == 0, completed.err
    found = json.loads(output.read_text())
    model, *runs = found["rows"]
    assert model["texts"]["kind"] == KINDS.get(name, model["texts"]["kind"])
    for run in runs:
        check_run(run)


@pytest.mark.parametrize("name", [name for name in zoo_models() if name != NO_MODEL])
def test_what_an_npu_takes_and_leaves_is_the_whole_graph(zoo: Path, tmp_path: Path, name: str) -> None:
    emulator_or_skip()
    output = tmp_path / "out.json"
    flags = ("--run=false", "--npu_soc=SM8750", f"--save_compiled={tmp_path}", f"--output_file_path={output}")
    done = evaltools_here("inspect", str(zoo / f"{name}.tflite"), *flags)
    assert done.code == 0, done.err
    (chip,) = [row for row in json.loads(output.read_text())["rows"] if row["role"] == "chip"]
    check_run(chip)
    if "saved_as" in chip["texts"]:
        again = evaltools_here("inspect", chip["texts"]["saved_as"], "--run=false")
        assert "compiled    for the NPU of Qualcomm SM8750 (by its SDK 2." in again.out


def check_run(run: dict[str, Any]) -> None:
    """What was taken and what was left make up the whole, or there is a reason."""
    if run["texts"]["basis"] not in ("tested here", "compiled here"):
        assert run["reason"]
        return
    proof, (used,) = run["delegation"], run["delegates"]
    left = sum(row["counts"]["nodes"] for row in run.get("rows", []) if row["role"] == "operator")
    assert used["nodes"] + left == proof["total_nodes"]
    assert (used["partitions"] > 0) == (used["nodes"] > 0)
