"""The raw head of a YOLO is judged by its boxes, which its numbers hide."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.configuration import Configuration
from evaltools.gates.verdict import NoiseFloor, Seen, judge_output, judge_runs
from evaltools.metrics.output_difference import RunDifference
from evaltools.model import TensorInfo, read_model
from evaltools.runtime import open_session
from evaltools.tasks.inference_diff.output_comparison import OutputComparison
from evaltools.tasks.inference_diff.output_kind import Output
from evaltools.tasks.inference_diff.output_kinds import kind_of
from evaltools.tasks.inference_diff.yolo_output import YoloHead
from tests import tiny_yolo

Array = npt.NDArray[Any]
SIZE = 128
CELLS = 256 + 64 + 16
INPUTS = {"picture": (1, SIZE, SIZE, 3), "planes": (1, 3, SIZE, SIZE), "features": (1, SIZE // 8, SIZE // 8, 64)}
HEAD = Output("out", "float32", (1, 6, CELLS), "", (INPUTS["picture"],), True)


def head() -> Array:
    """Four boxes of 12 by 12 pixels, each seen by two neighbouring cells, the better of which is right."""
    rows = np.zeros((CELLS, 6), np.float32)
    rows[:, :4] = (32, 32, 4, 4)
    for place, (x, y) in enumerate([(12, 12), (50, 12), (12, 50), (50, 50)]):
        rows[10 * place, :] = (x, y, 12, 12, 0.9, 0.0)
        rows[10 * place + 1, :] = (x + 9, y, 12, 12, 0.4, 0.0)
    return rows.T[None]


def neighbours_exchanged(values: Array) -> Array:
    """Boxes without their scores."""
    changed = values.copy()
    for place in range(0, 40, 10):
        changed[0, :4, [place, place + 1]] = values[0, :4, [place + 1, place]]
    return changed


def ten_pixels_off(values: Array) -> Array:
    changed = values.copy()
    changed[0, 0] += 10
    return changed


def a_class_for_another(values: Array) -> Array:
    return values[:, [0, 1, 2, 3, 5, 4]]


def rounded(values: Array) -> Array:
    """A twentieth of a pixel off, scores a hundredth."""
    changed = values.copy()
    changed[0, :2] += 0.05
    changed[0, 4:] *= 1.01
    return changed


def test_the_kind_is_told_by_the_number_of_cells() -> None:
    assert kind_of(HEAD) == "yolo"
    assert kind_of(Output("out", "float32", (1, 6, CELLS), "", (INPUTS["planes"],), True)) == "yolo"
    assert kind_of(Output("out", "float32", (1, 6, CELLS + 2), "", ((1, SIZE, SIZE, 3),), True)) == "values"


@pytest.mark.parametrize(
    ("fault", "grade"),
    [
        (neighbours_exchanged, "diverged"),
        (ten_pixels_off, "diverged"),
        (a_class_for_another, "diverged"),
        (rounded, "equivalent"),
    ],
)
def test_boxes_decide(fault: Callable[[Array], Array], grade: str) -> None:
    """Kernels that are right move boxes by a hundredth of their size."""
    kind, reference = YoloHead(), head()
    compared = kind.compare(fault(reference), reference, HEAD)
    assert compared is not None
    answers = kind.answers(compared)
    run = RunDifference(answers.size or 0.0, answers.changed, answers.of)
    floor = Seen({0: RunDifference(0.015, 0, 8)})
    assert judge_runs(Seen({0: run}), NoiseFloor({"XNNPACK": floor}, {}, 1)).grade == grade


def of_head(values: Callable[[Array], Array], classes: int, others: int) -> list[Array]:
    """Ten runs ``[1, 4 + classes + others, cells]``: boxes in pixels, and scores of which few are high."""
    random = np.random.default_rng(classes + others)
    runs = []
    for _ in range(10):
        rows = random.uniform(0, SIZE, (1, 4 + classes + others, CELLS)).astype(np.float32)
        rows[:, 4 : 4 + classes] = random.beta(0.1, 4, (1, classes, CELLS))
        rows[:, 4 + classes :] = values(rows[:, 4 + classes :])
        runs.append(rows)
    return runs


HEADS: dict[str, tuple[int, int, Callable[[Array], Array]]] = {
    "poses in pixels": (1, 51, lambda rows: rows),
    "poses in shares": (1, 51, lambda rows: rows / SIZE),
    "masks": (80, 32, lambda rows: rows / SIZE - 0.5),
    "masks of three classes": (3, 32, lambda rows: rows / SIZE - 0.5),
    "turned boxes": (16, 1, lambda rows: 2 * rows / SIZE - 0.7),
    "boxes that are hardly turned": (3, 1, lambda rows: rows / SIZE / 10),
}


INPUTS_TAKEN = [("picture", False), ("picture", True), ("planes", False), ("features", False)]


@pytest.mark.parametrize(
    ("name", "layout", "taken", "is_dynamic"),
    [
        *((name, "columns", "picture", False) for name in HEADS),
        *((name, "rows", "picture", False) for name in ("poses in pixels", "masks")),
        *(("masks of three classes", "rows", *taken) for taken in INPUTS_TAKEN[1:]),
        ("masks of three classes", "columns", "features", False),
    ],
)
def test_in_heads_with_more_than_boxes_each_row_counts_by_itself(
    name: str, layout: str, taken: str, is_dynamic: bool
) -> None:
    """The first scores, or the last of what is no score, are dead, which all together hardly show; rounding passes."""
    classes, others, values = HEADS[name]
    references = of_head(values, classes, others)
    scoreless, lastless, rounded_to_half, nearly = ([run.copy() for run in references] for _ in range(4))
    for first, last, half, near in zip(scoreless, lastless, rounded_to_half, nearly, strict=True):
        first[:, 4] = 0
        last[:, -1] = 0
        half[...] = half.astype(np.float16)
        near *= np.float32(1 + 2e-7)
    seen = {
        fault: of_output(
            [run if layout == "columns" else run.swapaxes(1, 2) for run in runs], references, layout, taken, is_dynamic
        )
        for fault, runs in (("first", scoreless), ("last", lastless), ("half", rounded_to_half), ("near", nearly))
    }
    measured = NoiseFloor({"XNNPACK": seen["near"]}, {"fp16": seen["half"]}, 10)
    grades = {fault: judge_output(found, measured).grade for fault, found in seen.items()}
    assert grades == {"first": "diverged", "last": "diverged", "half": "fp16", "near": "equivalent"}


def of_output(
    runs: list[Array], references: list[Array], layout: str, taken: str = "picture", is_dynamic: bool = False
) -> Seen:
    """As a diff sees them. The file of a dynamic model does not know the shape of the output."""
    shape = (1, 1, 1) if is_dynamic else runs[0].shape
    output = TensorInfo(0, "out", "float32", shape, shape, None, None)
    bases = references if layout == "columns" else [run.swapaxes(1, 2) for run in references]
    model = SimpleNamespace(detection=None, inputs=[SimpleNamespace(shape=INPUTS[taken])])
    comparison = OutputComparison(model, [output], [output])  # type: ignore[arg-type]
    compared = {
        place: comparison.compare([np.ascontiguousarray(run)], [np.ascontiguousarray(base)])
        for place, (run, base) in enumerate(zip(runs, bases, strict=True))
    }
    return comparison.summarise(compared).seen(0)


def tiny(make: Callable[[], bytes], folder: Path) -> tuple[OutputComparison, list[list[Array]]]:
    """What compares the outputs of a tiny model, and its outputs for ten pictures: noise, more and more red."""
    (folder / "model.tflite").write_bytes(make())
    model = read_model(folder / "model.tflite")
    random = np.random.default_rng(4)
    runs = []
    with closing(open_session(model, Configuration("reference", kernels="builtin"))) as session:
        for run in range(10):
            picture = random.uniform(0, 0.5, (1, 64, 64, 3)).astype(np.float32)
            picture[:, :, 6 * run : 6 * run + 16, run % 3] = random.uniform(0.7, 1)
            runs.append([np.array(values) for values in session.run([picture]).outputs])
    return OutputComparison(model, model.outputs, model.outputs), runs


def grade_of(comparison: OutputComparison, runs: list[list[Array]], fault: Callable[[Array], None]) -> str:
    """Of the first output with a fault, where XNNPACK is a rounding off."""

    def changed(change: Callable[[Array], None]) -> Seen:
        differences = {}
        for place, run in enumerate(runs):
            values = [each.copy() for each in run]
            change(values[0])
            differences[place] = comparison.compare(values, run)
        return comparison.summarise(differences).seen(0)

    def nearly(values: Array) -> None:
        values *= np.float32(1 + 2e-7)

    def half(values: Array) -> None:
        values[...] = values.astype(np.float16)

    return judge_output(changed(fault), NoiseFloor({"XNNPACK": changed(nearly)}, {"fp16": changed(half)}, 10)).grade


def dead(place: int | slice) -> Callable[[Array], None]:
    def change(values: Array) -> None:
        values[:, place] = 0

    return change


def rounded_off(values: Array) -> None:
    values *= np.float32(1 + 1e-7)


def last_two_points_exchanged(values: Array) -> None:
    values[:, 50:] = values[:, [53, 54, 55, 50, 51, 52]]


@pytest.mark.parametrize(
    ("make", "faults"),
    [
        (tiny_yolo.pose, [dead(4), dead(slice(5, 56)), dead(slice(53, 56)), last_two_points_exchanged]),
        (partial(tiny_yolo.pose, pixels=True), [dead(4), dead(slice(5, 56)), dead(slice(53, 56))]),
        (tiny_yolo.masks, [dead(4), dead(7), dead(slice(7, 40))]),
        (tiny_yolo.turned, [dead(4), dead(7)]),
    ],
)
def test_what_stands_behind_the_scores_of_real_heads_counts(
    make: Callable[[], bytes], faults: list[Callable[[Array], None]], tmp_path: Path
) -> None:
    comparison, runs = tiny(make, tmp_path)
    difference = comparison.summarise({run: comparison.compare(values, values) for run, values in enumerate(runs)})
    assert difference.outputs[0].of_kind is not None
    assert difference.outputs[0].of_kind.kind == "yolo"
    assert [grade_of(comparison, runs, fault) for fault in faults] == ["diverged"] * len(faults)
    assert grade_of(comparison, runs, rounded_off) == "equivalent"


def test_keypoints_of_a_box_that_matters_are_keypoints() -> None:
    """The one box has its first point a tenth of the picture to the right; 16 of 17 stay."""
    rows = np.zeros((CELLS, 56), np.float32)
    random = np.random.default_rng(2)
    rows[:, :4] = np.concatenate([random.uniform(20, 100, (CELLS, 2)), np.full((CELLS, 2), 8)], axis=1)
    rows[:, 5:] = np.tile(np.concatenate([rows[:, :2], np.full((CELLS, 1), 0.9)], axis=1), 17)
    rows[7, 4] = 0.8
    moved = rows.copy()
    moved[7, 5] += SIZE / 10
    described = Output("out", "float32", (1, CELLS, 56), "", (INPUTS["picture"],), True)
    compared = YoloHead().compare(moved[None], rows[None], described)
    assert compared is not None
    answers = YoloHead().answers(compared)
    assert (answers.changed, answers.of) == (1, 2 + 17)
    assert answers.size == pytest.approx(0.1 / 17)


def suppressed_rows() -> list[Array]:
    """Ten runs of 20 slots, of which 8 are filled; scores from 0.9 down, class by class."""
    random = np.random.default_rng(8)
    runs = []
    for _ in range(10):
        rows = np.zeros((1, 20, 6), np.float32)
        corners = random.uniform(0, 0.5, (8, 2))
        rows[0, :8] = np.concatenate(
            [corners, corners + 0.2, np.linspace(0.9, 0.4, 8)[:, None], np.arange(8)[:, None] % 3], axis=1
        )
        runs.append(rows)
    return runs


def places_exchanged(values: Array) -> None:
    values[:, [2, 3]] = values[:, [3, 2]]


def nan_behind(values: Array) -> None:
    values[:, 8:] = np.nan


def nan_within(values: Array) -> None:
    values[:, 2] = np.nan


def scores_gone(values: Array) -> None:
    values[..., 4] = 0


def elsewhere(values: Array) -> None:
    values[..., [0, 2]] += 0.2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("fault", "grade"),
    [
        (places_exchanged, "equivalent"),
        (nan_behind, "identical"),
        (nan_within, "diverged"),
        (scores_gone, "diverged"),
        (elsewhere, "diverged"),
    ],
)
def test_boxes_that_a_model_suppresses_itself_have_no_places_and_none_behind_the_last(
    fault: Callable[[Array], None], grade: str
) -> None:
    runs = [[run] for run in suppressed_rows()]
    output = TensorInfo(0, "out", "float32", (1, 20, 6), (1, 20, 6), None, None)
    model = SimpleNamespace(detection=None, inputs=[SimpleNamespace(shape=INPUTS["picture"])])
    comparison = OutputComparison(model, [output], [output])  # type: ignore[arg-type]
    assert grade_of(comparison, runs, fault) == grade


@pytest.mark.parametrize(("free", "lost"), [(0, 0), (1, 1)])
def test_a_box_for_which_no_slot_is_left_is_not_lost(free: int, lost: int) -> None:
    """All scores are nearly 1, as where a sigmoid is saturated: which of them are kept is a matter of rounding."""
    corners = np.arange(4)[:, None] / 8 + np.array([0, 0, 0.1, 0.1])
    rows = np.concatenate([corners, np.full((4, 1), 0.9999), np.zeros((4, 1))], axis=1).astype(np.float32)
    reference, test = rows[None, :3].copy(), rows[None, 1:].copy()
    test[:, :free, 4] = 0
    described = Output("out", "float32", (1, 3, 6), "", (INPUTS["picture"],), True)
    compared = YoloHead().compare(test, reference, described)
    assert compared is not None
    assert YoloHead().answers(compared).changed == 2 * lost


def test_boxes_and_scores_of_many_classes_stay_boxes() -> None:
    runs = of_head(lambda rows: rows, 80, 0)
    difference = of_output(runs, runs, "columns").difference
    assert difference is not None
    assert difference.of_kind is not None
    assert difference.of_kind.kind == "yolo"


def test_noise_without_a_box_leaves_elements_to_decide() -> None:
    kind, low = YoloHead(), head()
    low[0, 4:] *= 0.1
    compared = kind.compare(low, low, HEAD)
    assert compared is not None
    assert kind.answers(compared).size is None
