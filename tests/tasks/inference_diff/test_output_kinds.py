"""What a difference means for keypoints, maps of classes and embeddings: figures by hand, verdicts by command."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import evaltools as et
from benchmarks import verdicts
from evaltools.metrics.output_difference import KindFigures, RunAnswers
from evaltools.tasks.inference_diff.output_kind import Output, Values
from evaltools.tasks.inference_diff.output_kinds import KINDS, kind_of
from tests import tiny_models
from tests.command import evaltools_here, one_test
from tests.tflite_writer import Graph, Quantization

PICTURE = ((1, 100, 200, 3),)
Array = npt.NDArray[Any]


def output(shape: tuple[int, ...], dtype: str = "float32", made_by: str = "", name: str = "out") -> Output:
    return Output(name, dtype, shape, made_by, PICTURE, dtype.startswith("float"))


def figures(kind: str, tests: list[Array], references: list[Array], described: Output) -> KindFigures:
    pairs = zip(tests, references, strict=True)
    return KINDS[kind].summarise([compared(kind, test, reference, described) for test, reference in pairs])


def answers(kind: str, test: Array, reference: Array, described: Output) -> RunAnswers:
    return KINDS[kind].answers(compared(kind, test, reference, described))


def compared(kind: str, test: Array, reference: Array, described: Output) -> Values:
    found = KINDS[kind].compare(test, reference, described)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("described", "kind"),
    [
        (output((1, 1, 17, 3)), "keypoints"),
        (output((1, 17, 3)), "keypoints"),
        (output((2, 17, 3)), "values"),
        (output((1, 1, 17, 3), "int32"), "values"),
        (output((1, 100, 200, 21)), "segmentation"),
        (output((1, 50, 100, 21)), "values"),
        (output((1, 100, 200, 3)), "values"),
        (output((1, 100, 200, 3), made_by="SOFTMAX"), "values"),
        (output((1, 100, 200, 1)), "values"),
        (output((1, 100, 200, 1), made_by="LOGISTIC"), "values"),
        (output((1, 100, 200)), "values"),
        (output((1, 100, 200), "int64"), "segmentation"),
        (output((1, 50, 50), "int64", "ARG_MAX"), "segmentation"),
        (output((1, 512), made_by="L2_NORMALIZATION"), "embedding"),
        (output((1, 512), name="Face_Embedding"), "embedding"),
        (output((1, 512), made_by="SOFTMAX", name="embedding"), "scores"),
        (output((1, 512)), "scores"),
        (output((1, 512), "int32"), "values"),
        (output((1, 60_000)), "vector"),
        (output((1, 60_000), made_by="SOFTMAX"), "scores"),
        (output((1, 60_000), "int32"), "values"),
    ],
)
def test_the_kind_is_told_by_shape_and_operators(described: Output, kind: str) -> None:
    assert kind_of(described) == kind


def test_sure_keypoints_are_distinguished_from_others() -> None:
    """By hand: of points that are sure on both sides one moves by (0.024, 0.032), which is 0.04, another stays."""
    reference = np.array([[[0.5, 0.5, 0.9], [0.2, 0.2, 0.4], [0.1, 0.1, 0.1], [0.6, 0.6, 0.3], [0.7, 0.7, 0.2]]])
    test = np.array([[[0.524, 0.532, 0.8], [0.2, 0.2, 0.4], [0.7, 0.9, 0.1], [0.6, 0.6, 0.29], [0.7, 0.7, 0.31]]])
    found = figures("keypoints", [test, reference], [reference, reference], output((1, 5, 3)))
    assert found.figures == {
        "points": 10,
        "confident": 6,
        "lost": 1,
        "new": 1,
        "displaced": 0,
        "mean_move": pytest.approx(0.04 / 5),
        "largest_move": pytest.approx(0.04),
        "largest_move_of_others": pytest.approx(1.0),
    }
    assert found.parts == pytest.approx({"0": 0.04, "1": 0.0, "3": 0.0})
    run = answers("keypoints", test, reference, output((1, 5, 3)))
    assert (run.changed, run.of) == (2, 4)
    assert run.size == pytest.approx(0.02)


def test_keypoints_in_pixels_move_by_shares_of_the_picture() -> None:
    reference = np.array([[[50.0, 100.0], [10.0, 10.0]]])
    found = figures("keypoints", [reference + np.array([[10.0, 0.0], [0.0, 10.0]])], [reference], output((1, 2, 2)))
    assert found.parts == pytest.approx({"0": 0.1, "1": 0.05})
    assert (found.figures["displaced"], found.figures["confident"]) == (1, 2)


def test_a_place_that_is_no_number_is_far_away() -> None:
    reference = np.full((1, 17, 3), 0.5)
    test = reference.copy()
    test[0, 4, 0], test[0, 5, 2] = np.nan, np.inf
    found = figures("keypoints", [test], [reference], output((1, 17, 3)))
    assert (found.parts["4"], found.parts["5"], found.figures["displaced"]) == (1.0, 0.0, 1)


def test_where_no_keypoint_is_sure_elements_decide() -> None:
    reference = np.full((1, 17, 3), 0.2)
    found = figures("keypoints", [reference + 0.05], [reference], output((1, 17, 3)))
    assert found.figures["mean_move"] is None
    assert answers("keypoints", reference + 0.05, reference, output((1, 17, 3))) == RunAnswers(0, 0)


@pytest.mark.parametrize("form", ["labels", "scores", "far apart", "negative"])
def test_classes_overlap_as_sets_of_pixels_do(form: str) -> None:
    random = np.random.default_rng(5)
    numbers = {"far apart": [0, 7, 10**12], "negative": [-4, 0, 3]}.get(form, [0, 1, 2])
    reference = random.choice(numbers, (3, 1, 100, 200), p=[0.7, 0.27, 0.03])
    test = np.where(random.random(reference.shape) < 0.1, random.choice(numbers, reference.shape), reference)
    described = output((1, 100, 200), "int64")
    tests, references = list(test), list(reference)
    if form == "scores":
        described = output((1, 100, 200, 3))
        tests, references = ([np.eye(3)[run] for run in side] for side in (test, reference))
    found = figures("segmentation", tests, references, described)
    sets = [(np.flatnonzero(test == number), np.flatnonzero(reference == number)) for number in numbers]
    expected = np.array([len(np.intersect1d(*pair)) / len(np.union1d(*pair)) for pair in sets])
    assert found.parts == pytest.approx(dict(zip(map(str, numbers), expected, strict=True)))
    assert found.figures["changed"] == np.count_nonzero(test != reference)
    assert found.figures["worst_iou"] == pytest.approx(min(expected))
    assert found.figures["mean_iou"] == pytest.approx(expected.mean())


def test_pixels_whose_two_classes_have_one_score_are_ties() -> None:
    reference, test = np.zeros((1, 100, 200, 21)), np.zeros((1, 100, 200, 21))
    test[0, 0, :7, 3] = 1
    reference[0, 1, :5, 4] = test[0, 1, :5, 5] = 1
    found = figures("segmentation", [test], [reference], output(test.shape))
    assert (found.figures["changed"], found.figures["tied"]) == (12, 7)
    assert answers("segmentation", test, reference, output(test.shape)) == RunAnswers(5, 20_000)


def test_pixels_of_a_mask_that_are_a_half_are_ties() -> None:
    reference = np.full((1, 100, 200, 1), 0.5)
    test = reference + 1e-6
    assert answers("segmentation", test, reference, output(test.shape)) == RunAnswers(0, 20_000)


def test_a_class_of_few_pixels_is_not_the_worst() -> None:
    """Of 20 000 pixels, 5 of one class are lost, and 30 of 100 of another."""
    reference = np.zeros((1, 100, 200), np.int64)
    reference[0, 0, :5], reference[0, 1, :100] = 1, 2
    test = np.where(reference == 1, 0, reference)
    test[0, 1, :30] = 0
    found = figures("segmentation", [test], [reference], output(test.shape, "int64"))
    assert found.parts == pytest.approx({"0": 19895 / 19930, "1": 0.0, "2": 0.7})
    assert (found.figures["worst_class"], found.figures["worst_iou"]) == (2, 0.7)


def test_a_mask_is_cut_at_a_half() -> None:
    reference = np.zeros((1, 100, 200, 1))
    reference[0, :10], test = 0.9, np.full((1, 100, 200, 1), 0.4)
    test[0, :5] = 0.6
    found = figures("segmentation", [test], [reference], output(test.shape, made_by="LOGISTIC"))
    assert found.parts == pytest.approx({"0": 90 / 95, "1": 0.5})


def test_vectors_by_the_place_of_their_largest_element() -> None:
    """Of four runs one has another largest element, and one a tie."""
    references = [np.array([[1.0, 2.0, 3.0]])] * 4
    tests = [np.array([row]) for row in ([1.0, 2.0, 2.5], [9.0, 2.0, 3.0], [3.0, 2.0, 3.0], [0.0, 0.0, 0.1])]
    found = figures("vector", tests, references, output((1, 3)))
    assert found.figures == {"same_largest": 0.75}
    changed = [answers("vector", *pair, output((1, 3))).changed for pair in zip(tests, references, strict=True)]
    assert changed == [0, 1, 0, 0]


def test_embeddings_by_angle_and_neighbours() -> None:
    """By hand: 0 and 1 are neighbours, so are 2 and 3; the test turns 1 to where 2 is, which finds it nearest."""
    reference = [np.array([values], float) for values in ([1, 0.0], [1, 0.1], [0.1, 1], [0, 1])]
    test = [reference[0], np.array([[0.12, 1.0]]), reference[2] * 7, reference[3]]
    found = figures("embedding", test, reference, output((1, 2)))
    cosine = (0.12 + 0.1) / np.hypot(0.12, 1) / np.hypot(1, 0.1)
    assert found.figures == {
        "vectors": 4,
        "mean_cosine": pytest.approx((3 + cosine) / 4),
        "smallest_cosine": pytest.approx(cosine),
        "same_neighbour": 0.5,
        "found_again": 0.75,
    }


def run_here(words: Sequence[str]) -> str:
    return evaltools_here(*words).err


def move_unsure_points(runs: list[Array], _zero: int) -> None:
    for index, run in enumerate(runs):
        runs[index] = np.where((run[..., 2:] < 0.3) & (np.arange(3) < 2), run + np.float32(0.4), run)


def move_sure_points(runs: list[Array], _zero: int) -> None:
    for index, run in enumerate(runs):
        runs[index] = np.where((run[..., 2:] >= 0.3) & (np.arange(3) == 0), run + np.float32(0.08), run)


def move_all_by_a_pixel_in_ten(runs: list[Array], _zero: int) -> None:
    for index, run in enumerate(runs):
        runs[index] = run + np.array([0.0005, 0, 0], np.float32)


def forget_points_in_one_run(runs: list[Array], _zero: int) -> None:
    runs[3] = runs[3] * np.array([1, 1, 0.1], np.float32)


@pytest.mark.once
def test_a_verdict_on_keypoints_is_on_those_that_are_sure(tmp_path: Path) -> None:
    """A model that gives the points it is fed; outputs are saved, changed, and compared by whole commands."""
    model = tmp_path / "pose.tflite"
    model.write_bytes(tiny_models.add_chain((1, 1, 17, 3), 2))
    faults = (
        move_unsure_points,
        move_sure_points,
        move_all_by_a_pixel_in_ten,
        forget_points_in_one_run,
        verdicts.stale,
        verdicts.one_nan,
    )
    options = ["--num_runs=8", "--input_range=input:0:0.33"]
    found = verdicts.verdicts_of(model, options, faults, run_here)
    assert found is not None
    assert {name: verdict.kind for name, verdict in found.items()} == {
        "move_unsure_points": "equivalent",
        "move_sure_points": "diverged",
        "move_all_by_a_pixel_in_ten": "fp16",
        "forget_points_in_one_run": "diverged",
        "stale": "diverged",
        "one_nan": "diverged",
    }


def pose_in_8_bits() -> bytes:
    """Points from 16 numbers; the layer between has few steps, so that any rounding moves all points a little."""
    random = np.random.default_rng(0)
    layers = (
        ("hidden", random.normal(0, 0.25, (64, 16)), np.zeros(64), Quantization(1.0, 0)),
        ("points", random.normal(0, 0.03, (51, 64)), np.tile([0.5, 0.5, 0.8], 17), Quantization(1 / 256, -128)),
    )
    layers[1][1][2::3] /= 10
    graph = Graph()
    made = graph.tensor("seen", (1, 16), "int8", Quantization(1 / 64, 0))
    scale = 1 / 64
    for name, weights, bias, given in layers:
        step = float(np.abs(weights).max() / 127)
        stored = np.rint(weights / step).astype(np.int8)
        biases = np.rint(bias / (scale * step)).astype(np.int32)
        fed = [
            made,
            graph.constant(f"{name} weights", stored, Quantization(step, 0)),
            graph.constant(f"{name} bias", biases, Quantization(scale * step, 0)),
        ]
        made = graph.tensor(name, (1, len(weights)), "int8", given)
        graph.node("FULLY_CONNECTED", fed, made, "FullyConnectedOptions")
        scale = given.scale
    real = graph.node("DEQUANTIZE", [made], graph.tensor("real", (1, 51)))
    shape = graph.constant("shape", np.array([1, 1, 17, 3], np.int32))
    points = graph.tensor("keypoints", (1, 1, 17, 3))
    graph.node("RESHAPE", [real, shape], points, "ReshapeOptions")
    return graph.to_bytes([0], [points])


def on_16_levels(runs: list[Array], _zero: int) -> None:
    for index, run in enumerate(runs):
        places = np.rint(run[..., :2] * 15) / 15
        runs[index] = np.concatenate([places, run[..., 2:]], axis=-1).astype(np.float32)


def one_coordinate_is_larger(runs: list[Array], _zero: int) -> None:
    """The height of the fifth point by 3 % of the picture."""
    for index, run in enumerate(runs):
        runs[index] = run + np.float32(0.03) * ((np.arange(17) == 4)[:, None] & (np.arange(3) == 0))


@pytest.mark.once
def test_levels_and_one_side_of_keypoints_are_seen(tmp_path: Path) -> None:
    """Rounding moves points as far as these faults, so that neither their size nor an answer shows them."""
    model = tmp_path / "pose.tflite"
    model.write_bytes(pose_in_8_bits())
    found = verdicts.verdicts_of(model, ["--num_runs=20"], (on_16_levels, one_coordinate_is_larger), run_here)
    assert found is not None
    levels, one_side = found["on_16_levels"], found["one_coordinate_is_larger"]
    assert levels.kind == "diverged"
    said = "the places of the reference have 16 different numbers, those of the other side [0-9]{3}"
    assert re.fullmatch(said, levels.texts[0])
    assert one_side.kind == "not decided"
    assert any(re.match("run .* no more than CPU kernels explain", text) for text in one_side.texts)
    assert any("channel 4 of axis -2 is off to one side by 0.03, where" in text for text in one_side.texts)
    healthy = et.diff(model, num_runs=20, tests="use_xnnpack=true")["test"].verdict
    assert healthy is not None
    assert healthy.kind == "equivalent"


def test_points_to_one_side_are_what_all_runs_have_in_common() -> None:
    """Some by less than a step of 8 bits, in no run surely, or with all the others: one point is left."""
    random = np.random.default_rng(2)
    references = [random.uniform(0.2, 0.8, (1, 5, 3)) for _ in range(40)]
    moved = np.zeros((5, 3))
    moved[1, 0], moved[2, 1], moved[3, 1] = 0.003, -0.06, 0.2
    tests = []
    for reference in references:
        reference[..., 2] = [0.9, 0.9, 0.9, 0.2, 0.9]
        scatter = np.outer([0.01, 0, 0.01, 0, 0.1], [1, 1, 0]) * random.normal(0, 1, (5, 3))
        tests.append(reference + moved + scatter)
    found = figures("keypoints", tests, references, output((1, 5, 3))).aside
    assert (found[-2].index, found[-1].index) == (2, 1)
    assert found[-2].size == found[-1].size == pytest.approx(0.06 - 4.3 * 0.01 / 40**0.5, abs=0.004)
    assert figures("keypoints", tests[:4], references[:4], output((1, 5, 3))).aside[-2].size == 0.0


def embedder() -> bytes:
    graph = Graph()
    vector = graph.tensor("vector", (1, 8))
    return graph.to_bytes([vector], [graph.node("L2_NORMALIZATION", [vector], graph.tensor("unit", (1, 8)))])


def test_the_kind_that_a_flag_states_stands_in_table_and_result(tmp_path: Path) -> None:
    model, result = tmp_path / "model.tflite", tmp_path / "result.json"
    model.write_bytes(embedder())
    flags = one_test(
        "diff", f"--model_file={model}", "--num_runs=4", "--noise_floor_runs=2", f"--output_file_path={result}"
    )
    page = tmp_path / "page.md"
    told = evaltools_here(*flags, f"--report={page}")
    assert told.code == 0, told.err
    assert "cosine 1.000000, 1.000000 at least; 100 % of 4 vectors" in page.read_text()
    (unit,) = json.loads(result.read_text())["rows"][1]["parts"]
    assert unit["texts"]["kind"] == "embedding"
    forced = evaltools_here(*flags, "--output_kind=unit=values")
    assert forced.code == 0, forced.err
    (unit,) = json.loads(result.read_text())["rows"][1]["parts"]
    assert "kind" not in unit["texts"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("keypoint", "--output_kind=keypoint: use values, scores, keypoints, yolo, segmentation, embedding"),
        ("unit=", "--output_kind=unit=: use values"),
        ("other=values", "--output_kind=other=values: no output is called 'other', there is unit"),
        (
            "keypoints",
            "--output_kind=keypoints: the output unit is float32[1, 8], and keypoints needs [..., points, 3]",
        ),
    ],
)
def test_a_kind_that_cannot_be_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(embedder())
    told = evaltools_here("diff", f"--model_file={model}", f"--output_kind={text}")
    assert told.code == 2
    assert expected in told.err
