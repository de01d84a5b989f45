"""Real models on the emulated NPU of a phone's chip, beside the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.result_file import read_result
from tests.command import evaltools
from tests.runtime.emulated.bare import emulator_or_skip

pytestmark = pytest.mark.once
NPU = "use_npu=true npu_vendor=qualcomm npu_soc=SM8650"


def test_convolutions_of_floats_with_8_bit_weights_stay_on_the_cpu_and_the_rest_is_right(
    zoo: Path, tmp_path: Path
) -> None:
    """Five of 13 operators, so that values are handed over and back five times."""
    emulator_or_skip()
    output = tmp_path / "result.json"
    model = zoo / "kws_ref_model_float32.tflite"
    done = evaltools("diff", str(model), "--num_runs=3", f"--config=npu: {NPU}", f"--output={output}")
    assert done.code == 0, done.err
    npu = read_result(output).rows[1]
    assert npu.delegation is not None
    assert (npu.delegation.delegated_nodes, npu.delegation.cpu_operators) == (8, {"CONV_2D": 5})
    assert npu.delegates[0].partitions == 5
    assert npu.verdict is not None
    assert npu.verdict.kind in ("equivalent", "within expected precision of fp16")
    inspected = evaltools("inspect", str(model), "--npu_soc=SM8650", "--run=false")
    assert "CPU keeps CONV_2D x5" in inspected.out
    assert "(float32, int8, float32 -> float32)" in inspected.out


def test_a_folded_relu_costs_a_detector_its_accuracy_which_is_warned_of_and_given_back(
    shared: Path, zoo: Path, tmp_path: Path
) -> None:
    emulator_or_skip()
    coco, output = shared / "realdata" / "coco", tmp_path / "result.json"
    done = evaltools(
        "coco",
        str(zoo / "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite"),
        f"--images={coco / 'images'}",
        f"--ground_truth={coco / 'instances.json'}",
        f"--labels={coco / 'labelmap_91_background_first.txt'}",
        "--num_images=10",
        "--class_offset=+1",
        f"--config=folded: {NPU}",
        f"--config=kept: {NPU} qualcomm_use_fold_relu=false",
        f"--output={output}",
    )
    assert done.code == 0, done.err
    result = read_result(output)
    cpu, folded, kept = (entry.value("ap") or 0.0 for entry in result.rows)
    assert abs(kept - cpu) < 0.01
    assert folded < cpu - 0.02
    assert any("folded: its runtime warns" in text and "fold_relu=false" in text for text in result.warnings)
    assert all(entry.latency is None for entry in result.rows[1:])
