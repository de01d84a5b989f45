"""The detection evaluation of several configurations: comparisons, failures, interrupts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, InferenceError
from evaltools.metrics.boxes import BoxAgreement
from evaltools.model import ModelFile
from evaltools.runtime import Session
from evaltools.runtime.session import Array
from tests.detection_set import COCO_MAP, DetectionSet, make_detection_set
from tests.runtime.fake import open_here
from tests.tasks.coco.fakes import (
    Finding,
    Found,
    asked,
    assert_known_figures,
    everything,
    figures_of,
    mapping_used,
    sessions,
)
from tests.tasks.facts import boxes_of, evaluate
from tests.tasks.observers import Silent
from tests.tiny_detectors import detector

THREE = (Configuration("a"), Configuration("b"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> DetectionSet:
    """Five pictures, not to be changed."""
    return make_detection_set(tmp_path_factory.mktemp("set") / "set")


@pytest.fixture
def unnamed(tmp_path: Path) -> Path:
    """A detector whose outputs tell by their values alone what they are."""
    path = tmp_path / "model.tflite"
    path.write_bytes(detector())
    return path


def shifted(index: int) -> list[Found]:
    """Against ``everything``: the first box is a quarter narrower, the second one of another class, the third one
    elsewhere, the fourth missing, the fifth less sure."""
    found = everything(index)
    (top, left, bottom, right) = found[0][2]
    found[0] = (*found[0][:2], (top, left, bottom, left + 0.75 * (right - left)))
    found[1] = ((found[1][0] + 1) % 3, *found[1][1:])
    found[2] = (*found[2][:2], (0.9, 0.9, 1, 1))
    found[4] = (found[4][0], found[4][1] - 0.25, found[4][2])
    del found[3]
    return found


def test_boxes_are_compared_with_the_reference_and_with_the_first_test(made: DetectionSet) -> None:
    opened = sessions(reference=Finding(everything), a=Finding(everything), b=Finding(shifted))
    result = evaluate(asked(made, {"tests": THREE}), Silent(), opened)
    same, changed, other = boxes_of(result).comparisons
    assert (same.baseline, same.other, same.example_count) == ("reference", "a", 5)
    assert same.boxes == BoxAgreement(30, 0, 0, 0, 30.0, 0.0, 0.0)
    assert (changed.baseline, changed.other, other.baseline, other.other) == ("reference", "b", "a", "b")
    assert changed.boxes == other.boxes
    boxes = changed.boxes
    assert (boxes.matched, boxes.lost, boxes.new, boxes.class_changes) == (20, 10, 5, 5)
    assert boxes.mean_iou == pytest.approx((0.75 + 3) / 4)
    assert [boxes.moved, boxes.score_shift] == pytest.approx([0.25, 0.25])
    assert boxes.mean_score_shift == pytest.approx(0.25 / 4)
    assert figures_of(result, "b").detections == 25


def test_without_a_ground_truth_boxes_are_compared_all_the_same(made: DetectionSet) -> None:
    opened = sessions(reference=Finding(everything), test=Finding(shifted))
    request = asked(made, record_examples=True, ground_truth_annotations=None)
    result = evaluate(request, Silent(), opened)
    coco = boxes_of(result)
    assert coco.comparisons[0].boxes.matched == 20
    assert (coco.data.ground_truth, mapping_used(result).source) == (None, "default")
    assert [(entry.evaluation, entry.native) for entry in coco.figures] == [(None, None)] * 2
    assert coco.pictures is not None
    assert [(entry.image_id, entry.width, entry.height) for entry in coco.pictures] == [
        (number, 24, 16) for number in range(11, 16)
    ]
    assert len(result.warnings) == 1


def broken(_inputs: Sequence[Array]) -> tuple[Array, ...]:
    raise InferenceError("no such kernel")


def failing() -> Finding:
    session = Finding(everything)
    session._function = broken
    return session


def test_configurations_that_fail_leave_the_others_alone(made: DetectionSet) -> None:
    def open_some(_model: ModelFile, configuration: Configuration) -> Session:
        if configuration.name == "gone":
            raise ConfigurationUnavailable("not here")
        return failing() if configuration.name == "bad" else Finding(everything)

    wanted = {"tests": (Configuration("bad"), Configuration("gone"), Configuration("good"))}
    result = evaluate(asked(made, wanted), Silent(), open_some)
    assert [(entry.name, entry.status, entry.reason) for entry in result.rows] == [
        ("reference", "measured", ""),
        ("bad", "not measured", "not one example succeeded: no such kernel"),
        ("gone", "not measured", "not here"),
        ("good", "measured", ""),
    ]
    assert [entry.configuration for entry in boxes_of(result).figures] == ["reference", "good"]
    assert [(entry.baseline, entry.other) for entry in boxes_of(result).comparisons] == [("reference", "good")]
    assert_known_figures(result, "good")
    assert len(result.failed) == 5
    assert result.complete


def test_a_reference_that_cannot_run_leaves_the_outputs_to_be_told_by_the_test(
    made: DetectionSet, unnamed: Path
) -> None:
    def open_some(model: ModelFile, configuration: Configuration) -> Session:
        return failing() if configuration.name == "reference" else open_here(model, configuration)

    result = evaluate(asked(made, {"model_file": unnamed}), Silent(), open_some)
    assert [entry.status for entry in result.rows] == ["not measured", "measured"]
    assert_known_figures(result)
    assert boxes_of(result).comparisons == []


def test_where_nothing_can_run_nothing_is_measured(made: DetectionSet, unnamed: Path) -> None:
    request = asked(made, {"model_file": unnamed})
    result = evaluate(request, Silent(), sessions(reference=failing(), test=failing()))
    assert [entry.status for entry in result.rows] == ["not measured"] * 2
    assert (boxes_of(result).figures, result.complete) == ([], False)
    assert {entry.reason for entry in result.rows} == {
        "no picture could be run, so its outputs cannot be distinguished: no such kernel"
    }

    def open_none(_model: ModelFile, configuration: Configuration) -> Session:
        if configuration.name == "reference":
            return Finding(everything)
        raise ConfigurationUnavailable("not here")

    observer = Silent()
    result = evaluate(request, observer, open_none)
    assert [entry.status for entry in result.rows] == ["not measured"] * 2
    assert (result.complete, result.examples_done, observer.total) == (False, 0, 0)


def test_a_picture_that_fails_on_one_configuration_is_missing_there_alone(made: DetectionSet) -> None:
    def not_the_second(index: int) -> Sequence[Found]:
        if index == 1:
            raise InferenceError("too green")
        return everything(index)

    opened = sessions(reference=Finding(everything), test=Finding(not_the_second))
    result = evaluate(asked(made, record_examples=True), Silent(), opened)
    assert [(entry.example, entry.configuration, entry.stage) for entry in result.failed] == [
        ("000012.png", "test", "inference")
    ]
    assert [figures_of(result, name).detections for name in ("reference", "test")] == [30, 24]
    assert boxes_of(result).comparisons[0].example_count == 4
    assert [figures_of(result, name).pictures for name in ("reference", "test")] == [5, 4]
    assert "cannot be compared: reference 5, test 4" in " ".join(result.warnings)
    evaluation = figures_of(result, "test").evaluation
    assert evaluation is not None
    assert evaluation.stats.ap == pytest.approx(COCO_MAP), "the objects of that picture are not demanded"
    assert [category.objects for category in evaluation.categories] == [8, 8, 0]
    pictures = boxes_of(result).pictures
    assert pictures is not None
    assert [list(entry.detections) for entry in pictures][:2] == [["reference", "test"], ["reference"]]
    opened = sessions(reference=Finding(not_the_second), test=Finding(everything))
    assert boxes_of(evaluate(asked(made), Silent(), opened)).comparisons[0].boxes.matched == 24
