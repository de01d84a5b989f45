"""The inference diff on every model of the collection, broken ones included."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.result.figure import Part
from evaltools.result_file import read_result
from tests.command import Completed, evaltools_here, one_test
from tests.realdata.conftest import zoo_models

REFUSED = {"litert_test_model_broken": 2, "litert_double_flex": 3, "model_invoking_error": 3, "person_detect": 3}
DAMAGES_MEMORY = "keyword_scrambled_8bit"
OF_EACH_KIND = (
    "3in3out_model_swaps_input_2_and_0",
    "ad01_fp32",
    "automl_labeler_model",
    "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "dilated_conv",
    "dtln_noise_suppression",
    "feedback_tensor_test_model",
    "kws_ref_model_float32",
    "litert_multi_signatures",
    "litert_multi_subgraphs_while",
    "mobilenet_v1_0.25_224_float",
    "split_concat",
    "text_classification",
    "trained_lstm",
    "vww_96_int8",
)
"""Floats and 8 bits; one input and several; loops, states, signatures; pictures, sounds, words."""

AMPLIFYING = ("automl_labeler_model", "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29", "vww_96_int8")
"""In these models of eight bits kernels and rounding make so much of a difference that a fault could hide there."""
SEEING_NOTHING = ("deeplabv3_mnv2_dm05_pascal_quant",)
"""In noise and in one picture of the sample these find no object: all of their output is 0."""

SLOW = ("deeplabv3_mnv2_dm05_pascal_quant",)
"""A run of these with the plainest kernels takes seconds, so that they get noise alone."""

OPEN = {"dilated_conv": "--input_shape=input_1:1,8,8,3"}
"""Height and width of these must be stated."""


def run_diff(zoo: Path, model: str, output: Path, *flags: str) -> Completed:
    return evaltools_here(
        "inference-diff", f"--model_file={zoo / model}.tflite", f"--output_file_path={output}", *one_test(*flags)
    )


def parts_of(output: Path, configuration: str) -> list[Part]:
    return next(entry.parts for entry in read_result(output).rows if entry.name == configuration)


def lines_of(output: Path, title: str) -> str:
    return str([section.blocks for section in read_result(output).blocks if section.title == title])


@pytest.mark.parametrize("model", [name for name in OF_EACH_KIND if name in zoo_models()])
def test_kernels_nobody_doubts_are_equivalent_or_within_precision(zoo: Path, tmp_path: Path, model: str) -> None:
    output = tmp_path / "result.json"
    both = ("--config=litert: runtime=litert", "--config=tflite: runtime=tflite_runtime use_xnnpack=false")
    runs = 1 if model in SLOW else 2
    shape = [OPEN[model]] if model in OPEN else []
    completed = run_diff(zoo, model, output, f"--num_runs={runs}", "--noise_floor_runs=1", *both, *shape)
    assert completed.code == 0, completed.err
    expected = {"identical", "equivalent", "fp16", "bf16", "int8"}
    if model in AMPLIFYING + SEEING_NOTHING:
        expected.add("not decided")
    for name in ("litert", "tflite"):
        verdict = next(entry.verdict for entry in read_result(output).rows if entry.name == name)
        assert verdict is not None
        assert verdict.kind in expected, verdict.texts
        assert parts_of(output, name)
        assert f"of='{name}', text='repeatable" in lines_of(output, "Outputs")
    assert not [text for text in read_result(output).warnings if "not measured" in text]


@pytest.mark.parametrize("model", ["mobilenet_v1_0.25_128_quant", "pretrainedResnet_quant"])
def test_operators_show_that_kernels_are_right_where_a_model_amplifies_rounding(
    zoo: Path, tmp_path: Path, model: str
) -> None:
    output = tmp_path / "result.json"
    flags = ("--use_xnnpack=true", "--num_runs=10", "--noise_floor_runs=4")
    assert run_diff(zoo, model, output, *flags).code == 0
    (verdict,) = read_result(output).rows[1].verdicts
    assert verdict.kind == "equivalent", verdict.texts
    assert "operators by itself is within rounding" in verdict.texts[0]


@pytest.mark.parametrize("model", REFUSED)
def test_broken_models_are_refused_with_a_reason(zoo: Path, tmp_path: Path, model: str) -> None:
    completed = run_diff(zoo, model, tmp_path / "result.json")
    assert completed.code == REFUSED[model]
    assert completed.out == ""
    assert "Traceback" not in completed.err
    assert "evaltools: " in completed.err or "not measured: " in completed.err


def test_a_model_that_ruins_its_memory_takes_its_own_process_only(zoo: Path, tmp_path: Path) -> None:
    """When and where the process of a configuration dies is a matter of chance, at its end too; some always does."""
    completed = run_diff(zoo, DAMAGES_MEMORY, tmp_path / "result.json", "--num_runs=20")
    assert completed.code in (0, 3, 4)
    assert "Traceback" not in completed.err
    assert "the process of this configuration died" in completed.err
    assert [entry.name for entry in read_result(tmp_path / "result.json").rows] == ["reference", "test"]


@pytest.mark.parametrize("model", ["vww_96_int8", "ad01_int8", "tf2_mobilenet_v2_1.0_224_ptq"])
def test_int8_kernels_differ_by_few_quanta_beside_a_noise_floor(zoo: Path, tmp_path: Path, model: str) -> None:
    output = tmp_path / "result.json"
    flags = ("--use_xnnpack=true", "--reference=runtime=litert", "--num_runs=10", "--noise_floor_runs=4")
    assert run_diff(zoo, model, output, *flags).code == 0
    equal, by_one, _, by_more = (share or 0.0 for share in parts_of(output, "test")[0].series["quanta"])
    assert equal > by_one > by_more


def test_detectors_are_compared_by_their_boxes(shared: Path, zoo: Path, tmp_path: Path) -> None:
    pictures = shared / "realdata" / "coco" / "images"
    output = tmp_path / "result.json"
    model = "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29"
    assert run_diff(zoo, model, output, f"--input_images={pictures}", "--num_runs=8", "--noise_floor_runs=4").code == 0
    boxes = parts_of(output, "test")[-1]
    assert boxes.name == "boxes"
    assert (boxes.value("matched") or 0) >= 70, "of those that score enough to matter"
    assert (boxes.value("lost") or 0) <= 2
    assert boxes.texts["verdict"]
