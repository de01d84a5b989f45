"""``evaltools locate`` on real models: planted faults are named, and nothing where nothing is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.model.contents import read_graphs
from evaltools.model.cut import CuttableModel
from tests.command import evaltools_here
from tests.locate.reading import read

FLOAT = "mobilenet_v1_0.25_224_float"
DETECTOR = "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29"


def locate(model: Path, folder: Path, *flags: str) -> dict[str, Any]:
    output = folder / "found.json"
    completed = evaltools_here("locate", str(model), "--progress=none", f"--output={output}", *flags)
    assert completed.code == 0, completed.err
    return read(output)


@pytest.mark.parametrize(
    ("name", "place", "fault"),
    [
        (FLOAT, 9, "fault:step;amount:0.003;every:20"),
        (DETECTOR, 21, "fault:scale;amount:1.2"),
    ],
)
def test_a_planted_fault_is_named(
    name: str, place: int, fault: str, zoo: Path, faulty_delegate: Path, tmp_path: Path
) -> None:
    model = zoo / f"{name}.tflite"
    parts = CuttableModel(model.read_bytes())
    tensor = parts.name(parts.made_by(place)[0])
    options = f'--external_delegate_options=tensor:"{tensor}";{fault}'
    found = locate(
        model, tmp_path, "--num_inputs=2", "--num_runs=40",
        f"--external_delegate_path={faulty_delegate}", options, "--use_xnnpack=false",
        f"--operators={place - 4}-{place + 4}",
    )  # fmt: skip
    assert found["kind"] == "operator at fault"
    assert found["at_fault"] == [place]


@pytest.mark.parametrize(
    "name",
    [
        "kws_ref_model",
        "trained_lstm",
        "split_concat",
        "text_classification",
    ],
)
def test_xnnpack_has_no_operator_at_fault(name: str, zoo: Path, tmp_path: Path) -> None:
    found = locate(zoo / f"{name}.tflite", tmp_path, "--use_xnnpack", "--num_inputs=2", "--num_runs=4", "--seed=3")
    assert found["kind"] in ("no difference", "small differences add up")
    assert found["suspects"] == []


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("pretrainedResnet_quant", "pretrainedResnet"),
        ("ad01_int8", "ad01_fp32"),
    ],
)
def test_layers_of_models_that_were_quantised_well(name: str, other: str, zoo: Path, tmp_path: Path) -> None:
    """Each pair is one network: its weights are a rounding apart, and no layer alone spoils it."""
    found = locate(zoo / f"{name}.tflite", tmp_path, f"--reference_model_file={zoo / f'{other}.tflite'}")
    assert found["warnings"] == []
    weights = [operator["weights_relative"] for operator in found["operators"] if "weights" in operator]
    assert len(weights) >= 7
    assert max(weights) < 0.1
    assert all("single" in operator for operator in found["operators"])
    layers = found["tried_in_float"]
    assert len(layers) == min(20, found["in_float"]["candidates"])
    assert layers[0]["in_float_gain_db"] < 2


def test_a_layer_of_a_real_model_that_is_quantised_badly_comes_first(zoo: Path, tmp_path: Path) -> None:
    """The weights of one convolution lose 3 bits: they are rounded to multiples of 8."""
    content = (zoo / "pretrainedResnet_quant.tflite").read_bytes()
    graph = read_graphs(memoryview(content))[0]
    weights = graph.tensors[graph.nodes[9].inputs[1]]
    coarse = np.clip(np.rint(weights.values("int8").astype(float) / 8) * 8, -120, 120).astype(np.int8)
    assert weights.constant is not None
    model = tmp_path / "coarse.tflite"
    model.write_bytes(content.replace(bytes(weights.constant), coarse.tobytes()))
    found = locate(
        model, tmp_path, f"--reference_model_file={zoo / 'pretrainedResnet.tflite'}", "--num_inputs=20", "--seed=2"
    )
    assert found["keep_in_float"][0] == 9
