"""The inference diff against what the native C++ tool printed and wrote for every model of the collection."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.cli.main import main
from evaltools.model import read_model
from evaltools.model.contents import read_contents
from evaltools.model.kind import FLOAT32, quantization_kind
from evaltools.proto import message_class
from tests.realdata.conftest import zoo_models

NEWER_BUILTIN_KERNELS = {
    "automl_labeler_model",
    "model_ToyCar_quant_fullint",
    "str_ww_ref_model",
}
"""Where ai-edge-litert's builtin kernels are newer than the recorded tool's; tflite-runtime 2.14 has the same."""

KERNEL_SETS = {"default": ["--runtime=litert"], "use_xnnpack_false": ["--runtime=litert", "--use_xnnpack=false"]}
WITHOUT_XNNPACK = (
    "ad01_int8",
    "automl_labeler_model",
    "dtln_noise_suppression",
    "kws_ref_model_float32",
    "litert_multi_signatures",
    "mobilenet_v1_0.25_128_quant",
    "model_ToyCar_quant_fullint",
    "simple_32_in_32_out",
    "str_ww_ref_model",
    "text_classification",
    "vww_96_float",
    "vww_96_int8",
)
"""Of each kind one or two are compared with builtin kernels, too: floats, 8 bits, many outputs, newer kernels."""

FLOAT_TOLERANCE = 0.05
"""Relative. Builtin float kernels and XNNPACK differ by rounding alone, and how each rounds depends on the processor:
an AMD EPYC gives another third digit than the machine of the recordings. Whole numbers are summed alike everywhere."""


def models_and_kernels() -> list[tuple[str, str]]:
    models = zoo_models()
    builtin = [(model, "use_xnnpack_false") for model in WITHOUT_XNNPACK if model in models]
    return [*((model, "default") for model in models), *builtin]


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


def numbers(lines: list[str]) -> list[float]:
    return [float(number) for line in lines for number in re.findall(r"[=:] ?([-+.e\d]+)", line)]


def depends_on_the_processor(zoo: Path, model: str, kernels: str) -> bool:
    if kernels != "use_xnnpack_false":
        return False
    contents = read_contents(read_model(zoo / f"{model}.tflite"))
    return quantization_kind(contents.graphs).kind == FLOAT32


def errors(path: Path) -> list[tuple[float, ...]]:
    message: Any = message_class("EvaluationStageMetrics").FromString(path.read_bytes())
    found = message.process_metrics.inference_profiler_metrics.output_errors
    return [(entry.max_value, entry.min_value, entry.avg_value, entry.std_deviation) for entry in found]


@pytest.mark.parametrize(("model", "kernels"), models_and_kernels())
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
    found, expected = differences(printed.out), differences((recorded / "stdout.txt").read_text())
    if depends_on_the_processor(zoo, model, kernels):
        assert [line.partition("=")[0] for line in found] == [line.partition("=")[0] for line in expected]
        assert numbers(found) == pytest.approx(numbers(expected), rel=FLOAT_TOLERANCE)
        assert np.array(errors(output)) == pytest.approx(np.array(errors(recorded / "out.pb")), rel=FLOAT_TOLERANCE)
        return
    assert found == expected
    assert errors(output) == errors(recorded / "out.pb")
