"""Why a layer of one model is off beside another's: each cause made in a small pair of models, and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

import evaltools as et
from evaltools.model.contents import GraphTensor
from evaltools.tasks.inference_diff.stored_ranges import Range, limits_of, range_of
from tests import locate_models
from tests.tflite_writer import Graph, Quantization

SHAPE = (1, 8, 8, 2)
INPUT = Quantization(1 / 16, 0)
PICTURES = Path(__file__).resolve().parents[2] / "datasets" / "sample" / "images"
STEP = GraphTensor(0, "x", "int8", (4,), (4,), (0.5,), (0,))


class Stored:
    """Tensors of a graph in floats, or in int8 with the scale that is stated."""

    def __init__(self, in_8_bits: bool) -> None:
        self.graph = Graph()
        self.in_8_bits = in_8_bits

    def tensor(self, name: str, shape: tuple[int, ...], scale: Quantization) -> int:
        if self.in_8_bits:
            return self.graph.tensor(name, shape, "int8", scale)
        return self.graph.tensor(name, shape)


def summed(in_8_bits: bool, output: Quantization) -> bytes:
    """An input added to itself, up to 16."""
    stored = Stored(in_8_bits)
    fed = stored.tensor("fed", SHAPE, INPUT)
    total = stored.tensor("total", SHAPE, output)
    stored.graph.node("ADD", [fed, fed], total, "AddOptions")
    return stored.graph.to_bytes([fed], [total])


def joined(in_8_bits: bool) -> bytes:
    """Numbers from -16 to 16 beside scores, under the scale of the former."""
    stored, scores = Stored(in_8_bits), Quantization(1 / 256, -128)
    fed = stored.tensor("fed", SHAPE, INPUT)
    narrow = stored.tensor("score", SHAPE, scores)
    stored.graph.node("LOGISTIC", [fed], narrow)
    wide = Quantization(1.0, 0)
    boxes, together = stored.tensor("boxes", SHAPE, wide), stored.tensor("both", (1, 8, 8, 4), wide)
    stored.graph.node("ADD", [fed, fed], boxes, "AddOptions")
    same = narrow
    if in_8_bits:
        same = stored.tensor("score of that scale", SHAPE, wide)
        stored.graph.node("QUANTIZE", [narrow], same)
    stored.graph.node("CONCATENATION", [boxes, same], together, "ConcatenationOptions", Axis=3)
    return stored.graph.to_bytes([fed], [together])


def resized(half_pixels: bool) -> bytes:
    graph = Graph()
    fed = graph.tensor("fed", SHAPE)
    size = graph.constant("size", np.array([20, 20], np.int32))
    given = graph.tensor("given", (1, 20, 20, 2))
    graph.node("RESIZE_BILINEAR", [fed, size], given, "ResizeBilinearOptions", HalfPixelCenters=half_pixels)
    return graph.to_bytes([fed], [given])


def pooled(activation: int) -> bytes:
    graph = Graph()
    fed = graph.tensor("fed", SHAPE)
    given = graph.tensor("given", (1, 4, 4, 2))
    fields = {"StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2, "Padding": tflite.Padding.VALID}
    graph.node("AVERAGE_POOL_2D", [fed], given, "Pool2DOptions", **fields, FusedActivationFunction=activation)
    return graph.to_bytes([fed], [given])


def located(folder: Path, tested: bytes, other: bytes, **options: Any) -> tuple[str, dict[str, str]]:
    """The sentence, and the causes by name."""
    paths = []
    for name, content in (("tested", tested), ("other", other)):
        paths.append(folder / f"{name}.tflite")
        paths[-1].write_bytes(content)
    found = et.locate(paths[0], reference_model_file=paths[1], num_inputs=2, **options)
    causes = {part.name: part for row in found.result.rows for part in row.rows if part.role == "cause"}
    return found.verdict.texts[0], {name: part.texts["shown_by"] for name, part in causes.items()}


def test_values_that_are_cut_are_told_with_the_range(tmp_path: Path) -> None:
    sentence, causes = located(tmp_path, summed(True, Quantization(6 / 255, -128)), summed(False, INPUT))
    assert list(causes) == ["values cut at the end of a range"]
    (text,) = causes.values()
    assert "of 'total' are cut at an end of its range, 0 to 6; the other model has -1" in text
    assert sentence.startswith(f"compared by name: {text}; 1 of 1 operators")


def test_a_range_that_holds_them_is_no_cause(tmp_path: Path) -> None:
    sentence, causes = located(tmp_path, summed(True, Quantization(1 / 8, 0)), summed(False, INPUT))
    assert causes == {}
    assert sentence.endswith("; the error grows much at none of them")


def test_a_scale_for_other_ranges_leaves_few_steps(tmp_path: Path) -> None:
    sentence, causes = located(tmp_path, summed(True, Quantization(8.0, 0)), summed(False, INPUT))
    assert list(causes) == ["a range that is too wide"]
    assert "the scale of 'total' leaves 5 of 256 steps to its values" in sentence
    assert "by itself #0 ADD -> 'total' is furthest off" in sentence


def test_what_is_joined_under_one_scale_is_told(tmp_path: Path) -> None:
    sentence, causes = located(tmp_path, joined(True), joined(False))
    text = causes["one scale for unlike ranges"]
    assert text in sentence
    assert "leaves 2 of 256 steps to its values" in text
    assert "CONCATENATION joins it with 'boxes'" in text


def test_options_that_differ_are_told_by_name(tmp_path: Path) -> None:
    _, causes = located(tmp_path, resized(True), resized(False))
    assert causes == {
        "other options": "#0 RESIZE_BILINEAR is told otherwise in the two models: half_pixel_centers is True here and "
        "False there"
    }
    _, causes = located(tmp_path, pooled(tflite.ActivationFunctionType.RELU6), pooled(0))
    assert causes["other options"].endswith("fused_activation_function is RELU6 here and NONE there")


def test_the_scale_of_an_input_that_leaves_few_steps_comes_first(tmp_path: Path) -> None:
    """Trained on pictures of 0 to 1, quantised for 0 to 255; unless it is said, both are fed what int8 holds."""
    tested = Stored(True)
    fed = tested.tensor("fed", (1, 16, 16, 3), Quantization(1.0, -128))
    total = tested.tensor("total", (1, 16, 16, 3), Quantization(2.0, -128))
    tested.graph.node("ADD", [fed, fed], total, "AddOptions")
    other = Stored(False)
    given = [other.tensor(name, (1, 16, 16, 3), INPUT) for name in ("fed", "total")]
    other.graph.node("ADD", [given[0], given[0]], given[1], "AddOptions")
    models = tested.graph.to_bytes([fed], [total]), other.graph.to_bytes(given[:1], given[1:])
    sentence, causes = located(tmp_path, *models, normalization="unit", input_images=PICTURES)
    assert list(causes) == ["few steps of the input"]
    assert "the scale of the input 'fed' leaves 2 of 256 steps to its values, 0." in sentence
    assert "it is for 0 to 255" in sentence
    assert located(tmp_path, *models, input_images=PICTURES)[1] == {}


def test_a_diff_says_it_too_whichever_model_is_the_reference(tmp_path: Path) -> None:
    """Files of floats are real numbers, of which the float model gets all, and the quantised one what it can store."""
    paths = []
    for in_8_bits in (True, False):
        stored = Stored(in_8_bits)
        fed, given = (stored.tensor(name, SHAPE, Quantization(1.0, -128)) for name in ("fed", "given"))
        stored.graph.node("ADD", [fed, fed], given, "AddOptions")
        paths.append(tmp_path / f"{in_8_bits}.tflite")
        paths[-1].write_bytes(stored.graph.to_bytes([fed], [given]))
    reals = np.random.default_rng(0).uniform(0, 1, (4, *SHAPE[1:])).astype(np.float32)
    np.save(tmp_path / "reals.npy", reals)
    rounding = np.rint(reals.astype(np.float64)) - reals
    for (tested, reference), expected in ((paths, reals), (paths[::-1], reals + rounding)):
        found = et.diff(tested, reference_model=reference, inputs=tmp_path / "reals.npy", tests="use_xnnpack=false")
        (said,) = [text for text in found.result.warnings if "of 256 steps" in text]
        assert said.startswith("the scale of the input 'fed' leaves 2 of 256 steps to its values, ")
        assert said.endswith("it is for 0 to 255; calibrate again, with inputs in the range that the float model takes")
        size = np.sqrt(np.square(rounding).sum() / np.square(expected).sum())
        assert found["test"].relative_rms == pytest.approx(size, rel=1e-3)
    whole = (reals * 255).astype(np.uint8)
    np.save(tmp_path / "whole.npy", (whole.astype(np.int16) - 128).astype(np.int8))
    found = et.diff(paths[0], reference_model=paths[1], input_files=[tmp_path / "whole.npy"])
    assert not [text for text in found.result.warnings if "steps" in text]


def test_inputs_beyond_the_range_of_int16_are_told(tmp_path: Path) -> None:
    """They are stated in real numbers, and the float model gets all of them."""
    models = []
    for dtype, scale in (("int16", Quantization(2.0**-15, 0)), ("float32", None)):
        graph = Graph()
        fed, squared = (graph.tensor(name, (1, 64), dtype, scale) for name in ("fed", "squared"))
        models.append(graph.to_bytes([fed], [graph.node("MUL", [fed, fed], squared, "MulOptions")]))
    sentence, causes = located(tmp_path, *models, input_range=["fed:-4:4"])
    assert list(causes) == ["inputs beyond the range"]
    assert "are cut at an end of its range: it is for -1 to 1; 1 of 1" in sentence
    assert located(tmp_path, *models)[1] == {}


def test_a_healthy_pair_has_no_cause(tmp_path: Path) -> None:
    for ends_in in ("scores", "logits"):
        models = (net(ends_in=ends_in) for net in (locate_models.quantized_net, locate_models.net))
        assert located(tmp_path, *models)[1] == {}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-64.0, 63.5], Range(-64.0, 63.5, 2, 0, 0.0)),
        ([0.0, 64.0], Range(0.0, 64.0, 2, 0, 0.0)),
        ([0.0, 66.5, -67.0], Range(-67.0, 66.5, 3, 2, 18.0)),
        ([0.0, np.inf], None),
    ],
)
def test_what_is_cut_is_more_than_a_step_beyond_an_end(values: list[float], expected: Range | None) -> None:
    assert limits_of(STEP) == (-64.0, 63.5)
    assert range_of(STEP, [np.array(values, np.float32)]) == expected


def test_many_layers_with_one_cause_are_a_line(tmp_path: Path) -> None:
    """A chain of sums, each of which has the range of the input; nothing says that noise is what the model is for."""
    models = []
    for in_8_bits in (True, False):
        stored = Stored(in_8_bits)
        fed = made = stored.tensor("fed", SHAPE, INPUT)
        for number in range(3):
            source, made = made, stored.tensor(f"total {number}", SHAPE, INPUT)
            stored.graph.node("ADD", [source, source], made, "AddOptions")
        models.append(stored.graph.to_bytes([fed], [made]))
    paths = [tmp_path / "tested.tflite", tmp_path / "other.tflite"]
    for path, content in zip(paths, models, strict=True):
        path.write_bytes(content)
    found = et.locate(paths[0], reference_model_file=paths[1], num_inputs=2)
    causes = [line for line in found.in_words if line.startswith("cause: ")]
    assert len(causes) == 1
    assert causes[0].endswith("; and so in 2 more layers")
    assert any("try inputs of your own" in line for line in found.in_words)


@pytest.mark.parametrize(("operator", "is_said"), [("RELU_N1_TO_1", True), ("RELU", False)])
def test_pixels_are_in_doubt_where_the_scores_of_the_float_model_show_nothing(
    operator: str, is_said: bool, tmp_path: Path
) -> None:
    """Of whole numbers from 0 to 255 the first operator leaves 0 and 1."""
    models = []
    for in_8_bits in (True, False):
        stored = Stored(in_8_bits)
        fed, given = (stored.tensor(name, (1, 16, 16, 3), Quantization(1.0, -128)) for name in ("fed", "given"))
        stored.graph.node(operator, [fed], given)
        models.append(tmp_path / f"{in_8_bits}.tflite")
        models[-1].write_bytes(stored.graph.to_bytes([fed], [given]))
    found = et.locate(models[0], reference_model_file=models[1], num_inputs=2)
    assert any("say so: --normalization=unit" in line for line in found.in_words) == is_said
    compared = et.diff(models[0], reference_model=models[1], num_runs=4)
    assert any("say so: --normalization=unit" in line for line in compared.result.warnings) == is_said
