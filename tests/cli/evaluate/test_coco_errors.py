"""``evaltools coco``: wrong flags, ground truths and models are one message and exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import tiny_models
from tests.command import Completed, evaltools_here
from tests.detection_set import DetectionSet, make_detection_set
from tests.tiny_detectors import ROLES, detector


@pytest.fixture
def made(tmp_path: Path) -> DetectionSet:
    """Two pictures, to be damaged."""
    return make_detection_set(tmp_path / "set", count=2)


def assert_refused(completed: Completed, message: str) -> None:
    assert message in completed.err
    assert (completed.code, completed.out) == (2, "")
    assert "Traceback" not in completed.err
    assert "reference " not in completed.err, "nothing was opened"


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--iou_threshold=0.5", "no such flag"),
        ("--normalization=wrong", "normalization 'wrong' is not understood"),
        ("--letterbox_fill=114", "--letterbox_fill has no effect without --resize=letterbox"),
        ("--resize=letterbox --letterbox_fill=256", "--letterbox_fill=256: use a pixel value, 0 to 255"),
        ("--compat=native --resize=letterbox", "--resize=letterbox: the native tool stretches pictures"),
        ("--class_offset=", "--class_offset=: use auto, dense, or the whole number"),
        ("--output_map=boxes=0,classes=1,scores=7", "has no output '7'; it has 'boxes', 'classes', 'scores', 'count'"),
        ("--coco_evaluator=cocoapi", "not an accepted value; use one of pycocotools, faster-coco-eval"),
        ("--record_examples", "--record_examples writes to the JSON result; add --output_file_path=FILE.json"),
        ("--detections_path=x.txt", "the COCO results format is JSON; give a name that ends in .json"),
        ("--ground_truth_proto=/none", "--ground_truth_annotations and --ground_truth_proto exclude each other"),
    ],
)
def test_wrong_flags(made: DetectionSet, flag: str, message: str) -> None:
    assert_refused(evaltools_here(*made.flags(*flag.split(" "))), message)


def test_the_kinds_of_ground_truth_are_not_mixed_up(made: DetectionSet) -> None:
    swapped = evaltools_here(*made.bare_flags(f"--ground_truth_proto={made.annotations}"))
    assert_refused(swapped, "--ground_truth_annotations takes COCO instances JSON")
    assert_refused(
        evaltools_here(*made.bare_flags(f"--ground_truth_annotations={made.proto}")), "is no COCO instances file"
    )
    both = evaltools_here(*made.flags(f"--ground_truth_proto={made.proto}"))
    assert_refused(both, "exclude each other; give one of them")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "model.tflite is empty"),
        (tiny_models.classifier(), "is no detector: it has 1 input and 1 output (scores: float32[1,12])"),
        (detector(ROLES[:2]), "and is read with --decoder"),
    ],
)
def test_models_that_are_no_detectors(made: DetectionSet, content: bytes, message: str) -> None:
    made.model.write_bytes(content)
    assert_refused(evaltools_here(*made.flags()), message)


def test_where_no_picture_can_be_read_outputs_cannot_be_told(made: DetectionSet) -> None:
    made.model.write_bytes(detector())
    for path in made.images.iterdir():
        path.write_bytes(b"")
    completed = evaltools_here(*made.flags("--reference=none"))
    assert (completed.code, completed.out) == (2, "")
    assert "not one of 2 pictures can be read (0000" in completed.err


def test_a_run_stops_where_the_category_of_a_class_cannot_be_told(made: DetectionSet) -> None:
    """Three objects are too few; the values to choose from are named."""
    document = made.document()
    del document["annotations"][3:]
    made.annotations.write_text(json.dumps(document))
    completed = evaltools_here(*made.flags())
    assert (completed.code, completed.out) == (2, "")
    assert "--class_offset=+1, --class_offset=0\n" in completed.err
    assert evaltools_here(*made.flags("--class_offset=+1")).code == 0
