"""The raw head of a YOLO is judged by its boxes, which its numbers hide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.gates.verdict import NoiseFloor, Seen, judge_runs
from evaltools.metrics.output_difference import RunDifference
from evaltools.tasks.inference_diff.output_kind import Output
from evaltools.tasks.inference_diff.output_kinds import kind_of
from evaltools.tasks.inference_diff.yolo_output import YoloHead

Array = npt.NDArray[Any]
SIZE = 64
CELLS = 64 + 16 + 4
HEAD = Output("out", "float32", (1, 6, CELLS), "", ((1, SIZE, SIZE, 3),), True)


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
    answers = kind.answers(kind.compare(fault(reference), reference, HEAD))
    run = RunDifference(answers.size or 0.0, answers.changed, answers.of)
    floor = Seen({0: RunDifference(0.015, 0, 8)})
    assert judge_runs(Seen({0: run}), NoiseFloor({"XNNPACK": floor}, {}, 1)).grade == grade


def test_noise_without_a_box_leaves_elements_to_decide() -> None:
    kind, low = YoloHead(), head()
    low[0, 4:] *= 0.1
    assert kind.answers(kind.compare(low, low, HEAD)).size is None
