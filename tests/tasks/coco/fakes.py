"""Requests and sessions that are not there, for tests of the detection evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.model import ModelFile
from evaltools.result.result import Result
from evaltools.runtime import Session, TensorSpec
from evaltools.runtime.session import Array
from evaltools.tasks.coco.result import ClassMappingUsed, DetectionFigures, OutputMap
from evaltools.tasks.framework.request import TaskRequest
from tests.detection_set import COCO_MAP, NATIVE_MAP, DetectionSet, colour
from tests.runtime.fake import FakeSession
from tests.tasks.built_in import coco_options
from tests.tasks.facts import boxes_of
from tests.tiny_detectors import BOXES, CELLS, HEIGHT, SHAPES, WIDTH

Found = tuple[int, float, Sequence[float]]
"""Class, score and box (top, left, bottom, right in shares) of a detection."""
Answer = Callable[[int], Sequence[Found]]
"""What is found in the picture of that number, best first."""


class Finding(FakeSession):
    """Finds what a function says; the outputs are those of ``TFLite_Detection_PostProcess``."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(lambda inputs: outputs_of(answer(number_of(inputs[0]))))
        self.inputs = (TensorSpec("input", np.dtype("float32"), (1, HEIGHT, WIDTH, 3)),)  # type: ignore[misc]


def number_of(picture: Array) -> int:
    """Which picture of a detection set this is: its first cell has a brightness of its own."""
    brightness = float(np.asarray(picture, np.float32)[0, 0, 0].max()) * 127.5 + 127.5
    return colour(0, 0)[1] - round(brightness)


def outputs_of(found: Sequence[Found]) -> tuple[Array, ...]:
    """Boxes, classes, scores and count, the rest zeros."""
    values = {role: np.zeros(shape, np.float32) for role, shape in SHAPES.items()}
    for row, (number, score, box) in enumerate(found):
        values["boxes"][0, row], values["classes"][0, row], values["scores"][0, row] = box, number, score
    values["count"][0] = len(found)
    return tuple(values.values())


def everything(index: int) -> list[Found]:
    """What the real detectors find in a picture, with round scores."""
    return [(colour(index, cell)[0], (9 - cell) / 10, BOXES[cell].tolist()) for cell in range(CELLS)]


def sessions(**by_name: Session) -> Callable[[ModelFile, Configuration], Session]:
    """Opens them by the configurations' names."""
    return lambda _model, configuration: by_name[configuration.name]


def asked(made: DetectionSet, changes: Mapping[str, Any] | None = None, **options: Any) -> TaskRequest:
    """A reference and a test configuration on a set with its annotations."""
    fields: dict[str, Any] = {
        "model_file": made.model,
        **coco_options(made.images, **{"ground_truth_annotations": made.annotations, **options}),
        "reference": Configuration("reference", kernels="builtin"),
        "tests": (Configuration("test"),),
    }
    return TaskRequest(**(fields | dict(changes or {})))


def outputs_used(result: Result) -> OutputMap:
    """How the outputs were read."""
    used = boxes_of(result).data.output_map
    assert used is not None
    return used


def mapping_used(result: Result) -> ClassMappingUsed:
    """How classes became categories."""
    used = boxes_of(result).data.class_mapping
    assert used is not None
    return used


def figures_of(result: Result, configuration: str) -> DetectionFigures:
    return next(entry for entry in boxes_of(result).figures if entry.configuration == configuration)


def assert_known_figures(result: Result, configuration: str = "test") -> None:
    """Those of a whole detection set."""
    figures = figures_of(result, configuration)
    assert figures.evaluation is not None
    assert figures.native is not None
    assert figures.evaluation.stats.ap == pytest.approx(COCO_MAP)
    assert figures.evaluation.stats.ap50 == pytest.approx(1)
    assert figures.evaluation.stats.ap_large is None
    assert figures.evaluation.stats.ar_1 == pytest.approx(COCO_MAP / 2)
    assert [category.ap for category in figures.evaluation.categories] == [pytest.approx(0.6), pytest.approx(1), None]
    assert figures.native.overall == pytest.approx(NATIVE_MAP)
    assert figures.native.thresholds == pytest.approx([2 / 3] * 6 + [1 / 3] * 4)
    assert (figures.native.class_count, figures.native.classes_without_truth) == (3, 1)
    assert figures.detections == 30
