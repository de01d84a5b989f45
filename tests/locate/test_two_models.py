"""A quantised model beside its float one: how good each layer is, and what it gains where it stays in float."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import evaltools as et
from evaltools.locate import layers
from tests import locate_models
from tests.command import Completed, evaltools_here
from tests.interpreters import make_interpreter, run
from tests.locate.reading import read
from tests.locate_models import NET_SHAPE, NET_TENSORS, net_quantization, net_tensors, net_weights
from tests.tflite_writer import Graph, Quantization

Array = npt.NDArray[Any]
WITH_WEIGHTS = ("stem", "spread", "project", "logits")
INPUTS = 12
NO_LAYER_ALONE = "--max_compiles=1"
"""Weights are compared in the files; the layers need not run."""


@pytest.fixture
def images(tmp_path: Path) -> list[Array]:
    """Pictures in int8, as files that both models are fed with."""
    random = np.random.default_rng(4)
    found = [random.integers(-127, 128, NET_SHAPE, np.int8) for _ in range(INPUTS)]
    (tmp_path / "images").mkdir()
    for number, values in enumerate(found):
        np.save(tmp_path / "images" / f"{number}.npy", values)
    return found


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / f"{name}.tflite"
    path.write_bytes(content)
    return path


def locate(folder: Path, tested: bytes, other: bytes, *flags: str) -> tuple[Completed, dict[str, Any]]:
    """What is found of two models on the pictures of the folder, on the CPU's plain kernels."""
    models = written(folder, "tested", tested), written(folder, "other", other)
    completed = evaltools_here(
        "locate", str(models[0]), f"--reference_model_file={models[1]}", f"--input_files={folder / 'images'}",
        f"--num_inputs={INPUTS}", "--kernels=builtin", "--progress=none", f"--output={folder / 'found.json'}", *flags,
    )  # fmt: skip
    assert completed.code == 0, completed.err
    return completed, read(folder / "found.json")


def reals(images: list[Array]) -> list[Array]:
    return [values.astype(np.float64) * float(np.float32(1 / 127)) for values in images]


def rounded(values: Array, stored: Quantization) -> Array:
    """Real numbers as int8 holds them."""
    whole = np.clip(np.rint(values / stored.scale) + stored.zero_point, -128, 127)
    found: Array = (whole - stored.zero_point) * stored.scale
    return found


def sqnr_db(given: list[Array], expected: list[Array]) -> float:
    """Signal to noise over all inputs together."""
    noise = sum(float(np.square(one - other).sum()) for one, other in zip(given, expected, strict=True))
    return 10 * math.log10(sum(float(np.square(other).sum()) for other in expected) / noise)


def logits_of(content: bytes, images: list[Array]) -> list[Array]:
    """What a model that ends in "logits" gives in a bare interpreter, in real numbers."""
    scale, zero_point = net_quantization()["logits"].scale, net_quantization()["logits"].zero_point
    interpreter = make_interpreter("ai_edge_litert", content)
    return [(run(interpreter, [values]).astype(np.float64) - zero_point) * scale for values in images]


@pytest.mark.parametrize("coarse", ["spread", "project", "logits"])
def test_a_layer_quantised_badly_comes_first_with_the_gain_of_a_run_of_its_own(
    coarse: str, images: list[Array], tmp_path: Path
) -> None:
    """The saved copy runs in a bare interpreter; what is right is worked out in NumPy."""
    bad = locate_models.quantized_net(coarse=coarse, ends_in="logits")
    bundle = tmp_path / "bundle"
    completed, found = locate(tmp_path, bad, locate_models.net(ends_in="logits"), f"--bundle={bundle}")
    best, place = found["tried_in_float"][0], NET_TENSORS.index(coarse)
    assert found["in_float"]["measured_in"] == "'logits'"
    assert found["keep_in_float"][0] == best["index"] == place
    expected = [net_tensors(image, net_weights())["logits"] for image in reals(images)]
    before = sqnr_db(logits_of(bad, images), expected)
    after = sqnr_db(logits_of((bundle / "float_layer.tflite").read_bytes(), images), expected)
    assert found["in_float"]["sqnr_db"] == pytest.approx(before, abs=1e-3)
    assert best["in_float_sqnr_db"] == pytest.approx(after, abs=1e-3)
    assert best["in_float_gain_db"] == pytest.approx(after - before, abs=2e-3)
    assert after - before > 2
    assert f"SQNR at 'logits': {before:.1f} dB; keep these in float, best first (7 of 7 quantised" in completed.out
    line = f"  #{place} {found['operators'][place]['operator']} -> '{coarse}': {after:.1f} dB, "
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    interval = rows[1 + place]["figures"]["in_float_gain_db"]["interval"]
    gain = best["in_float_gain_db"]
    assert 0 < interval["low"] < gain < interval["high"]
    assert f"{line}{gain:.1f} dB better (95 %: {interval['low']:.1f} to " in completed.out
    assert f"float_layer.tflite: the model with #{place}" in completed.out
    assert found["bundle"]["files"] == "float_layer.tflite"


def with_a_damaged_scale() -> bytes:
    """The whole numbers of one layer are the right ones, its scale is eight times what it was."""
    good = locate_models.quantized_net()
    scale = np.float32(np.abs(net_weights()["spread weights"]).max() / 127)
    assert good.count(scale.tobytes()) == 1
    return good.replace(scale.tobytes(), np.float32(scale * 8).tobytes())


@pytest.mark.parametrize(
    ("tested", "start", "end"),
    [
        (
            locate_models.quantized_net(coarse="project", times=64),
            "the weights of 1 of 4 layers are rounded coarsely (#2 CONV_2D: ",
            "): few bits, or scales that are too large",
        ),
        (
            locate_models.quantized_net(seed=1),
            "the weights of 4 of 4 layers differ from the other model's by more than rounding (#",
            " and 1 more): another training, or damaged scales",
        ),
        (
            with_a_damaged_scale(),
            "the weights of 1 of 4 layers differ from the other model's by more than rounding (#1 DEPTHWISE_CONV_2D: ",
            "-16.9 dB): another training, or damaged scales",
        ),
    ],
    ids=["coarse", "another training", "a damaged scale"],
)
def test_weights_that_are_not_the_other_models_are_said_first(
    tested: bytes, start: str, end: str, images: list[Array], tmp_path: Path
) -> None:
    completed, found = locate(tmp_path, tested, locate_models.net(), NO_LAYER_ALONE)
    warning = found["warnings"][0]
    assert warning.startswith(start)
    assert warning.endswith(end)
    assert completed.err.startswith(f"warning: {warning[:40]}")
    assert ("training" in completed.out) == ("training" in end)
    if "#1 DEPTHWISE" in start:
        operator = found["operators"][1]
        assert (operator["weights_relative"], operator["weights"]) == (pytest.approx(7, rel=1e-3), "others")


@pytest.mark.parametrize("by_channel", [False, True])
def test_the_error_of_weights_is_that_of_their_rounding(by_channel: bool, images: list[Array], tmp_path: Path) -> None:
    tested = locate_models.quantized_net(by_channel=by_channel)
    _, found = locate(tmp_path, tested, locate_models.net(), NO_LAYER_ALONE)
    assert found["warnings"] == []
    for operator in found["operators"]:
        if operator["tensor"] not in WITH_WEIGHTS:
            assert "weights" not in operator
            continue
        weights = net_weights()[f"{operator['tensor']} weights"].astype(np.float64)
        axis = weights.ndim - 1 if len(weights) == 1 else 0
        others = tuple(each for each in range(weights.ndim) if each != axis) if by_channel else None
        scales = np.abs(weights).max(others, keepdims=True) / 127
        error = np.rint(weights / scales) * scales - weights
        expected = np.sqrt(np.square(error).mean() / np.square(weights).mean())
        found_error = (operator["weights_relative"], operator["weights"])
        assert found_error == (pytest.approx(expected, rel=1e-3), "rounded")


def test_a_layer_alone_is_fed_with_the_numbers_of_the_float_model(images: list[Array], tmp_path: Path) -> None:
    """The last layer with weights, worked out in NumPy: rounded inputs and weights, then a rounded output."""
    _, found = locate(tmp_path, locate_models.quantized_net(coarse="stem"), locate_models.net())
    flat, logits = net_quantization()["flat"], net_quantization()["logits"]
    weights = net_weights()
    scale = np.abs(weights["logits weights"]).max() / 127
    stored = np.rint(weights["logits weights"] / scale) * scale
    worst = 0.0
    for image in reals(images):
        right = net_tensors(image, weights)
        given = rounded(rounded(right["flat"], flat) @ stored.T + weights["logits bias"], logits)
        worst = max(worst, np.sqrt(np.square(given - right["logits"]).mean() / np.square(right["logits"]).mean()))
    operator = found["operators"][6]
    assert operator["single_relative"] == pytest.approx(worst, rel=0.1)
    assert operator["accumulated_relative"] > 1.2 * operator["single_relative"]


@pytest.mark.parametrize("ends_in", ["scores", "best"])
def test_behind_scores_and_choices_the_gain_is_measured_before_them(
    ends_in: str, images: list[Array], tmp_path: Path
) -> None:
    tested = locate_models.quantized_net(coarse="project", ends_in=ends_in)
    _, found = locate(tmp_path, tested, locate_models.net(ends_in=ends_in))
    assert found["in_float"]["measured_in"] == "'logits'"
    assert found["keep_in_float"][0] == 2
    last = next(layer for layer in found["tried_in_float"] if layer["operator"] == "SOFTMAX")
    assert last["in_float_gain_db"] == 0


def test_a_model_beside_itself_has_nothing_to_gain(images: list[Array], tmp_path: Path) -> None:
    _, found = locate(tmp_path, locate_models.quantized_net(), locate_models.quantized_net())
    assert "in_float" not in found
    assert {each["weights_relative"] for each in found["operators"] if "weights" in each} == {0}


def dense(in_8_bits: bool) -> bytes:
    """A FULLY_CONNECTED of 4 numbers; in 8 bits it takes and gives floats all the same, under names of their own."""
    graph, shape = Graph(), (1, 4)
    weights = np.random.default_rng(2).uniform(-1, 1, (4, 4)).astype(np.float32)
    given = graph.tensor("given", shape)
    if not in_8_bits:
        constant = graph.constant("weights", weights)
        made = graph.node(
            "FULLY_CONNECTED", [given, constant, -1], graph.tensor("made", shape), "FullyConnectedOptions"
        )
        return graph.to_bytes([given], [made])
    fed = graph.node("QUANTIZE", [given], graph.tensor("fed", shape, "int8", Quantization(1 / 64, 0)))
    constant = graph.constant("weights", np.rint(weights * 127).astype(np.int8), Quantization(1 / 127, 0))
    total = graph.tensor("total", shape, "int8", Quantization(1 / 32, 0))
    graph.node("FULLY_CONNECTED", [fed, constant, -1], total, "FullyConnectedOptions")
    made = graph.node("DEQUANTIZE", [total], graph.tensor("made", shape), version=2)
    return graph.to_bytes([given], [made])


def test_layers_between_conversions_are_those_of_the_float_model(tmp_path: Path) -> None:
    models = [written(tmp_path, str(in_8_bits), dense(in_8_bits)) for in_8_bits in (True, False)]
    found = et.locate(models[0], reference_model_file=models[1], num_inputs=3)
    assert "3 of 3 operators have a tensor of the same name there (2 of them by their place)" in found.verdict.texts[0]
    assert [operator.texts["status"] for operator in found.operators] == ["compared"] * 3
    assert all("single" in operator.figures for operator in found.operators)
    assert ["weights_relative" in operator.figures for operator in found.operators] == [False, True, False]
    assert [each.counts["index"] for each in found.operators if "in_float_gain_db" in each.figures] == [1]


def test_a_float_model_has_nothing_to_keep_in_float(images: list[Array], tmp_path: Path) -> None:
    completed, found = locate(tmp_path, locate_models.net(), locate_models.quantized_net())
    assert "in_float" not in found
    assert "in float" not in completed.out + completed.err
    assert all("single" in operator for operator in found["operators"])


def test_of_many_layers_those_with_the_largest_error_alone_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "MOST_IN_FLOAT", 2)
    tested = written(tmp_path, "tested", locate_models.quantized_net(coarse="spread"))
    other = written(tmp_path, "other", locate_models.net())
    found = et.locate(tested, reference_model_file=other, num_inputs=2)
    (summary,) = [row for row in found.result.rows[0].rows if row.role == "in_float"]
    assert summary.counts == {"candidates": 8, "tried": 2}
    alone = {each.name: each.value("single_relative") or 0.0 for each in found.operators}
    tried = {each.name for each in found.operators if "in_float_gain_db" in each.figures}
    assert tried == set(sorted(alone, key=lambda name: -alone[name])[:2])
    assert any("2 of 8 quantised layers tried" in line for line in found.in_words)
    assert found.to_dataframe()["weights_sqnr_db"].notna().sum() == 4


def test_a_limit_leaves_what_is_known(images: list[Array], tmp_path: Path) -> None:
    completed, found = locate(tmp_path, locate_models.quantized_net(), locate_models.net(), "--max_compiles=4")
    assert "none of 8 quantised layers was tried in float" in completed.out
    assert found["stopped"] == "--max_compiles=4 was reached"
    assert ["single" in operator for operator in found["operators"]] == [True] * 3 + [False] * 5
    assert found["tried_in_float"] == []
    assert all("accumulated" in operator for operator in found["operators"])
