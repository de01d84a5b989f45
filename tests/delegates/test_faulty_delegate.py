"""The delegate that is wrong on purpose: it is right where it is not to be wrong, and evaltools notices the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import verdicts
from tests import tiny_models
from tests.command import evaltools_here

MODELS = Path(__file__).resolve().parents[2] / "datasets" / "sample" / "models"


@pytest.mark.parametrize(
    ("model", "unseen"),
    [
        ("float32", {"channel_larger": "bf16", "channel_zero": "bf16"}),
        ("int8", {"scaled": "int8", "channel_larger": "int8", "channel_zero": "int8", "one_nan": "not judged"}),
    ],
)
def test_what_it_spoils_is_noticed(model: str, unseen: dict[str, str], faulty_delegate: Path) -> None:
    """What is not: a channel that is near 0, and a scale that int8 explains; whole numbers have no NaN."""
    options = ["--num_runs=12", "--noise_floor_runs=12"]
    found = verdicts.delegate_verdicts(MODELS / f"{model}.tflite", options, str(faulty_delegate), 12)
    assert found is not None
    assert found.pop("none") == verdicts.NO_CHANGE
    others = {name: verdict.kind for name, verdict in found.items() if verdict.kind != "diverged"}
    assert others.keys() <= unseen.keys()
    assert {"scaled", "one_nan", "one_zero", "one_stale", "stale", "frozen", "saturated", "offset"} <= {
        *found.keys() - others.keys(),
        *unseen,
    }


@pytest.mark.parametrize("runtime", ["litert", "tflite_runtime"])
@pytest.mark.parametrize("name", ["float32", "int8", "float16", "dynamic_range"])
def test_without_a_fault_the_outputs_are_those_of_the_cpu(
    runtime: str, name: str, faulty_delegate: Path, tmp_path: Path
) -> None:
    model, result = MODELS / f"{name}.tflite", tmp_path / "result.json"
    flags = (f"--external_delegate_path={faulty_delegate}", "--use_xnnpack=false", f"--runtime={runtime}")
    told = evaltools_here(
        "diff", f"--model_file={model}", "--num_runs=3", *flags, f"--reference=kernels=builtin runtime={runtime}",
        f"--output_file_path={result}",
    )  # fmt: skip
    assert told.code == 0, told.err
    (comparison,) = json.loads(result.read_text())["part"]["comparisons"]
    assert comparison["outputs"][0]["difference"]["different"] == 0
    assert "EXTERNAL 1 of " in told.err


@pytest.mark.parametrize("runtime", ["litert", "tflite_runtime"])
def test_a_node_that_needs_temporary_memory_keeps_it(runtime: str, faulty_delegate: Path, tmp_path: Path) -> None:
    """A convolution whose filter is larger than a pixel spreads the picture out before it multiplies."""
    model, result = tmp_path / "model.tflite", tmp_path / "result.json"
    model.write_bytes(tiny_models.conv())
    told = evaltools_here(
        "diff", f"--model_file={model}", "--num_runs=3", f"--external_delegate_path={faulty_delegate}",
        "--use_xnnpack=false", f"--runtime={runtime}", f"--reference=kernels=builtin runtime={runtime}",
        f"--output_file_path={result}",
    )  # fmt: skip
    assert told.code == 0, told.err
    (comparison,) = json.loads(result.read_text())["part"]["comparisons"]
    assert comparison["outputs"][0]["difference"]["different"] == 0


def test_an_offset_is_that_share_of_what_the_output_spans(faulty_delegate: Path, tmp_path: Path) -> None:
    """Three times inputs from 0 to 1 span nearly 3: a quarter of that is 0.75 on every element."""
    model, result = tmp_path / "model.tflite", tmp_path / "result.json"
    model.write_bytes(tiny_models.add_chain((1, 8, 8, 3), 2))
    options = "--external_delegate_options=fault:offset;amount:0.25;every:3"
    told = evaltools_here(
        "diff", f"--model_file={model}", "--num_runs=4", "--warmup_runs=0", "--noise_floor_runs=0",
        "--input_range=input:0:1", f"--external_delegate_path={faulty_delegate}", options, "--use_xnnpack=false",
        f"--output_file_path={result}",
    )  # fmt: skip
    assert told.code == 0, told.err
    difference = json.loads(result.read_text())["part"]["comparisons"][0]["outputs"][0]["difference"]
    assert difference["different"] == difference["elements"] // 4, "the third of four runs"
    assert difference["max"] == pytest.approx(0.75, rel=0.05)
    assert difference["p90"] == pytest.approx(difference["max"], rel=0.02)


@pytest.mark.parametrize("text", ["fault:wrong", "amount:much", "every:0", "channel:-1", "speed:3"])
def test_options_that_it_does_not_know_are_refused(text: str, faulty_delegate: Path) -> None:
    flags = (f"--external_delegate_path={faulty_delegate}", f"--external_delegate_options={text}")
    told = evaltools_here("diff", f"--model_file={MODELS / 'float32.tflite'}", "--num_runs=1", *flags)
    assert told.code == 3
    assert "faulty_delegate: option" in told.err
