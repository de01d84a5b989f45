"""Real models on every accelerator that this machine has, each with its proof, in one run beside the CPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaltools.result.result import Result, Row
from evaltools.result_file import read_result
from tests.command import evaltools

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        "EVALTOOLS_EXPECT_GPU" not in os.environ,
        reason="this machine is not said to have a GPU, in software or not",
    ),
]
CONFIGURATIONS = {
    "tflite": "runtime=tflite_runtime kernels=builtin",
    "xnnpack": "runtime=litert use_xnnpack=true",
    "xnnpack fp16": "use_xnnpack=true xnnpack_force_fp16=true",
    "gpu fp16": "use_gpu=true",
    "gpu fp32": "use_gpu=true gpu_precision_loss_allowed=false",
}
IN_HALF_PRECISION = ("xnnpack fp16", "gpu fp16")


def flags(rounding_delegate: Path) -> list[str]:
    own = f"runtime=litert use_xnnpack=false external_delegate_path={rounding_delegate}"
    texts = {**CONFIGURATIONS, "own": f"{own} external_delegate_options=precision:fp16"}
    return [part for name, text in texts.items() for part in ("--config", f"{name}: {text}")]


def by_name(result: Result) -> dict[str, Row]:
    return {entry.name: entry for entry in result.rows}


def test_a_float_model_differs_as_the_precision_of_each_explains(
    zoo: Path, rounding_delegate: Path, tmp_path: Path
) -> None:
    output = tmp_path / "result.json"
    model = zoo / "vww_96_float.tflite"
    completed = evaltools(
        "inference-diff",
        f"--model_file={model}",
        "--num_runs=4",
        "--noise_floor_runs=1",
        f"--output_file_path={output}",
        *flags(rounding_delegate),
    )
    assert completed.code == 0, completed.err
    found = by_name(read_result(output))
    assert all(entry.status == "measured" for entry in found.values())
    for name in ("xnnpack", "xnnpack fp16", "gpu fp16", "gpu fp32"):
        (delegate,) = found[name].delegates
        assert delegate.nodes == 31, name
    for name in ("gpu fp16", "gpu fp32"):
        assert found[name].delegates[0].device
        assert "31 of 31" in found[name].delegates[0].evidence or "without the CPU" in found[name].delegates[0].evidence
    errors = {
        name: float(line.split("avg_error=")[1].split(",")[0])
        for name, line in zip(
            [*CONFIGURATIONS, "own"], [line for line in completed.out.splitlines() if "avg_error=" in line], strict=True
        )
    }
    for name in ("tflite", "xnnpack", "gpu fp32"):
        assert errors[name] < 1e-6, errors
    for name in (*IN_HALF_PRECISION, "own"):
        assert 1e-6 < errors[name] < 5e-3, errors


def test_an_int8_classifier_keeps_its_answers(photos: Path, zoo: Path, rounding_delegate: Path, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    completed = evaltools(
        "imagenet",
        f"--model_file={zoo / 'mobilenet_v1_0.25_128_quant.tflite'}",
        f"--ground_truth_images_path={photos / 'images'}",
        f"--ground_truth_labels={photos / 'validation_labels_wnid.txt'}",
        f"--model_output_labels={photos / 'model_labels_1001_wnid.txt'}",
        "--num_images=10",
        f"--output_file_path={output}",
        *flags(rounding_delegate),
    )
    assert completed.code == 3, "the example delegate takes no quantised operator, fp16 changes none"
    found = by_name(read_result(output))
    for name, reason in (("own", "took none of the 31 nodes"), ("xnnpack fp16", "had nothing to do")):
        assert found[name].status == "not measured"
        assert reason in (found[name].reason or "")
    for name in ("gpu fp16", "gpu fp32"):
        assert found[name].status == "measured", found[name].reason
        assert found[name].delegates[0].nodes == 31
    reference = found["reference"].value("top5")
    assert reference is not None
    for name in CONFIGURATIONS.keys() - {"xnnpack fp16"}:
        own = found[name].value("top5")
        assert own is not None
        assert abs(own - reference) <= 0.1001, name


def test_a_detector_finds_its_objects_on_the_gpu(shared: Path, zoo: Path, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    completed = evaltools(
        "coco",
        f"--model_file={zoo / 'coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite'}",
        f"--ground_truth_images_path={shared / 'realdata' / 'coco' / 'images'}",
        "--num_images=1",
        f"--output_file_path={output}",
        "--config",
        "gpu fp16: use_gpu=true",
        "--config",
        "xnnpack: runtime=litert use_xnnpack=true",
    )
    found = by_name(read_result(output))
    assert found["gpu fp16"].status == "measured", completed.err
    assert found["gpu fp16"].delegates[0].nodes == 63
    assert found["gpu fp16"].delegation is not None
    assert found["gpu fp16"].delegation.cpu_operators == {"TFLite_Detection_PostProcess": 1}


@pytest.mark.parametrize(("model", "operator"), [("micro_speech_quantized", "2-2"), ("pretrainedResnet_quant", "6-6")])
def test_a_known_fault_of_the_gpu_is_named(zoo: Path, model: str, operator: str) -> None:
    """Both in fp16, in which the tolerances are wide."""
    found = evaltools("locate", str(zoo / f"{model}.tflite"), "--use_gpu", f"--operators={operator}")
    assert found.code == 0
    assert "  cause: a known fault of the GPU: " in found.out
