"""The inference diff against what the native C++ tool printed and wrote for every model of the collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaltools.cli.main import main
from evaltools.proto import message_class
from tests.realdata.conftest import zoo_models

NEWER_BUILTIN_KERNELS = {
    "automl_labeler_model",
    "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29",
    "model_ToyCar_quant_fullint",
    "str_ww_ref_model",
    "tf2_mobilenet_v2_1.0_224_ptq",
}
"""Where ai-edge-litert's builtin kernels are newer than the recorded tool's; tflite-runtime 2.14 has the same."""

KERNEL_SETS = {"default": ["--runtime=litert"], "use_xnnpack_false": ["--runtime=litert", "--use_xnnpack=false"]}


def native_run(zoo: Path, model: str, output: Path, *flags: str) -> int:
    return main(
        [
            "inference-diff",
            f"--model_file={zoo / model}.tflite",
            "--compat=native",
            "--reference=runtime=litert",
            f"--output_file_path={output}",
            *flags,
        ]
    )


def differences(text: str) -> list[str]:
    return [line for line in text.splitlines() if "OutputDiff" in line or "Num evaluation" in line]


def errors(path: Path) -> list[tuple[float, ...]]:
    message: Any = message_class("EvaluationStageMetrics").FromString(path.read_bytes())
    found = message.process_metrics.inference_profiler_metrics.output_errors
    return [(entry.max_value, entry.min_value, entry.avg_value, entry.std_deviation) for entry in found]


@pytest.mark.parametrize("kernels", KERNEL_SETS)
@pytest.mark.parametrize("model", zoo_models())
def test_differences_equal_the_native_tools(
    shared: Path, zoo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, kernels: str
) -> None:
    recorded = shared / "oracle" / "inference_diff" / kernels / model
    output = tmp_path / "out.pb"
    flags = KERNEL_SETS[kernels]
    if kernels == "use_xnnpack_false" and model in NEWER_BUILTIN_KERNELS:
        flags = ["--runtime=tflite_runtime", "--use_xnnpack=false"]
    code = native_run(zoo, model, output, *flags)
    printed = capsys.readouterr()
    if (recorded / "rc.txt").read_text().strip() != "0":
        assert code != 0
        assert printed.out == ""
        return
    assert code == 0, printed.err
    assert differences(printed.out) == differences((recorded / "stdout.txt").read_text())
    assert errors(output) == errors(recorded / "out.pb")


@pytest.mark.parametrize("model", sorted(NEWER_BUILTIN_KERNELS))
def test_the_other_runtime_is_needed_only_where_its_kernels_differ(
    shared: Path, zoo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    recorded = shared / "oracle" / "inference_diff" / "use_xnnpack_false" / model
    assert native_run(zoo, model, tmp_path / "out.pb", *KERNEL_SETS["use_xnnpack_false"]) == 0
    assert differences(capsys.readouterr().out) != differences((recorded / "stdout.txt").read_text())
