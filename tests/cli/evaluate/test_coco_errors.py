"""``evaltools coco``: wrong flags, ground truths and models are one message and exit code 2."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from pathlib import Path

import pytest

from evaltools.cli.evaluate import command
from evaltools.tasks.coco import KIND
from tests import tiny_models
from tests.command import Completed, evaltools, evaltools_here
from tests.detection_set import DetectionSet, make_detection_set
from tests.tiny_detectors import ROLES, detector, postprocess_detector

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def made(tmp_path: Path) -> DetectionSet:
    """Two pictures, to be damaged."""
    return make_detection_set(tmp_path / "set", count=2)


def assert_refused(completed: Completed, message: str) -> None:
    assert message in completed.err
    assert (completed.code, completed.out) == (2, "")
    assert "Traceback" not in completed.err
    assert "reference " not in completed.err, "nothing was opened"


def test_missing_flags_are_named() -> None:
    assert_refused(evaltools_here("coco"), "missing: --model_file=... --ground_truth_images_path=...")
    assert_refused(evaltools_here("coco", "--model_file=x"), "missing: --ground_truth_images_path=...")


def test_a_refusal_is_one_line_without_a_traceback(made: DetectionSet) -> None:
    completed = evaltools(*made.flags("--class_offset=x"))
    assert_refused(completed, "--class_offset=x: use auto, dense, or the whole number")
    assert len(completed.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--ground_truth_anotations=x", "Did you mean --ground_truth_annotations?"),
        ("--iou_threshold=0.5", "no such flag"),
        ("--num_images=two", "--num_images=two: not a valid value; use a whole number"),
        ("--score_threshold=high", "--score_threshold=high: not a valid value; use a finite number"),
        ("--score_threshold=nan", "use a finite number"),
        ("--max_failed_examples=1.5", "use a whole number"),
        ("--debug_mode=yes", "use true, false, 1 or 0"),
        ("--resize=letterboxed", "Did you mean letterbox?"),
        ("--normalization=wrong", "normalization 'wrong' is not understood"),
        ("--normalization=", "normalization '' is not understood"),
        ("--letterbox_fill=114", "--letterbox_fill has no effect without --resize=letterbox"),
        ("--resize=letterbox --letterbox_fill=256", "--letterbox_fill=256: use a pixel value, 0 to 255"),
        ("--resize=letterbox --letterbox_fill=-1", "--letterbox_fill=-1: use a pixel value, 0 to 255"),
        ("--num_images=-1", "--num_images=-1: use 0 for all pictures"),
        ("--compat=native --resize=letterbox", "--resize=letterbox: the native tool stretches pictures"),
        ("--class_offset=", "--class_offset=: use auto, dense, or the whole number"),
        ("--class_offset=90->80", "use auto, dense, or the whole number"),
        ("--output_map=", "--output_map=: '' is not understood"),
        ("--output_map=boxes=0", "does not say which output holds the classes"),
        ("--output_map=boxes=0,classes=1,scores=7", "has no output '7'; it has 'boxes', 'classes', 'scores', 'count'"),
        ("--output_map=boxes=0,classes=1,scores=1", "gives one output two meanings"),
        ("--coco_evaluator=cocoapi", "not an accepted value; use one of pycocotools, faster-coco-eval"),
        ("--record_examples", "--record_examples writes to the JSON result; add --output_file_path=FILE.json"),
        ("--record_examples --output_file_path=x.pb", "add --output_file_path=FILE.json"),
        ("--detections_path=x.txt", "the COCO results format is JSON; give a name that ends in .json"),
        ("--detections_path=/none/x.json", "the folder /none does not exist"),
        ("--output_file_path=/none/x.json", "the folder /none does not exist"),
        ("--detections_path=", "--detections_path is empty; give a path, or leave the flag out"),
        ("--ground_truth_proto=", "--ground_truth_proto is empty; give a path, or leave the flag out"),
        ("--model_output_labels=", "--model_output_labels is empty; give a path, or leave the flag out"),
        ("--model_output_labels=/none", "--model_output_labels=/none: no such file"),
        ("--ground_truth_proto=/none", "--ground_truth_annotations and --ground_truth_proto exclude each other"),
        ("--compat=nativ", "Did you mean native?"),
        ("--reference=use_gpuu", "configuration 'reference': "),
    ],
)
def test_wrong_flags(made: DetectionSet, flag: str, message: str) -> None:
    assert_refused(evaltools_here(*made.flags(*flag.split(" "))), message)


def test_an_empty_ground_truth_flag_is_not_taken_for_none(made: DetectionSet) -> None:
    completed = evaltools_here(*made.bare_flags("--ground_truth_annotations="))
    assert_refused(completed, "--ground_truth_annotations is empty; give a path, or leave the flag out")


def test_the_table_of_classes_needs_categories(made: DetectionSet) -> None:
    completed = evaltools_here(*made.bare_flags("--class_offset=dense"))
    assert_refused(completed, "--class_offset=dense needs the categories of a ground truth; state a number")


PRETTY = b'{\n "images": [],\n "annotations": [],\n "categories": []\n}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no COCO instances file"),
        (b"\x00\xff\x00", "is no COCO instances file"),
        (b"[]", "is no COCO instances file"),
        (b'{"images": []}', "is no COCO instances file"),
        (b'{"a": "use_xnnpack=false"}', "evaltools convert makes one from YOLO and VOC folders"),
        (PRETTY, "lists no pictures; there is nothing to evaluate"),
    ],
)
def test_annotations_that_are_none(made: DetectionSet, content: bytes, message: str) -> None:
    made.annotations.write_bytes(content)
    completed = evaltools_here(*made.flags())
    assert_refused(completed, message)
    assert f"--ground_truth_annotations={made.annotations}" in completed.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no pictures; make it again with evaltools convert coco"),
        (b"\xff\xff\xff", "is no binary ObjectDetectionGroundTruth"),
        (b'detection_results { image_name: "000011.png" }', "A text proto or a JSON file does not do"),
    ],
)
def test_protos_that_are_none(made: DetectionSet, content: bytes, message: str) -> None:
    made.proto.write_bytes(content)
    completed = evaltools_here(*made.bare_flags(f"--ground_truth_proto={made.proto}"))
    assert_refused(completed, message)
    assert f"--ground_truth_proto={made.proto}" in completed.err


def test_the_kinds_of_ground_truth_are_not_mixed_up(made: DetectionSet) -> None:
    swapped = evaltools_here(*made.bare_flags(f"--ground_truth_proto={made.annotations}"))
    assert_refused(swapped, "--ground_truth_annotations takes COCO instances JSON")
    assert_refused(
        evaltools_here(*made.bare_flags(f"--ground_truth_annotations={made.proto}")), "is no COCO instances file"
    )
    both = evaltools_here(*made.flags(f"--ground_truth_proto={made.proto}"))
    assert_refused(both, "exclude each other; give one of them")


@pytest.mark.parametrize("flag", ["ground_truth_annotations", "ground_truth_proto"])
def test_a_ground_truth_that_cannot_be_read(made: DetectionSet, flag: str) -> None:
    def refused(path: Path, message: str) -> None:
        assert_refused(evaltools_here(*made.bare_flags(f"--{flag}={path}")), f"--{flag}={path}{message}")

    refused(made.folder / "gone", ": no such file")
    refused(made.images, " is a folder; give a ")
    refused(Path(f"/tmp/{'x' * 300}"), " cannot be read: File name too long")
    if os.geteuid():
        path = made.annotations if flag == "ground_truth_annotations" else made.proto
        path.chmod(0)
        refused(path, " cannot be read: Permission denied")


def test_annotations_of_other_pictures(made: DetectionSet) -> None:
    document = made.document()
    for image in document["images"]:
        image["file_name"] = f"other{image['id']}.jpg"
    made.annotations.write_text(json.dumps(document))
    completed = evaltools_here(*made.flags())
    assert_refused(completed, "none of the 2 pictures in")
    assert "take the annotations that belong to these pictures" in completed.err


def test_folders_without_pictures(made: DetectionSet) -> None:
    for path in made.images.iterdir():
        path.unlink()
    assert_refused(evaltools_here(*made.flags()), "has no pictures (no files)")
    wrong = [flag for flag in made.flags() if "images_path" not in flag]
    assert_refused(
        evaltools_here(*wrong, f"--ground_truth_images_path={made.labels}"), "cannot be listed: Not a directory"
    )
    made.images.rmdir()
    assert_refused(evaltools_here(*made.flags()), "no such folder")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "model.tflite is empty"),
        (b"no model at all", "is no TensorFlow Lite model"),
        (postprocess_detector()[:800], "is damaged or cut short"),
        (tiny_models.classifier(), "is no detector: it has 1 input and 1 output (scores: float32[1,12])"),
        (tiny_models.two_inputs(), "is no detector: it has 2 inputs and 1 output"),
        (detector(ROLES[:2]), "and is read with --decoder"),
    ],
)
def test_models_that_are_no_detectors(made: DetectionSet, content: bytes, message: str) -> None:
    made.model.write_bytes(content)
    assert_refused(evaltools_here(*made.flags()), message)


@pytest.mark.parametrize(
    ("output_map", "message"),
    [
        ("boxes=0,classes=1,scores=2,count=3", "cannot be boxes=0,classes=1,scores=2,count=3 (stated)"),
        ("boxes=1,classes=2,scores=0", "needs 4 N boxes, N classes, N scores and one count"),
        ("boxes=1,classes=3,scores=2,count=0", "their shapes are 0 [1, 6], 1 [1, 6, 4], 2 [1], 3 [1, 6]"),
    ],
)
def test_maps_that_the_outputs_contradict(made: DetectionSet, output_map: str, message: str) -> None:
    made.model.write_bytes(detector())
    completed = evaltools_here(*made.flags(f"--output_map={output_map}", "--reference=none"))
    assert (completed.code, completed.out) == (2, "")
    assert message in completed.err


def test_where_no_picture_can_be_read_outputs_cannot_be_told(made: DetectionSet) -> None:
    made.model.write_bytes(detector())
    for path in made.images.iterdir():
        path.write_bytes(b"")
    completed = evaltools_here(*made.flags("--reference=none"))
    assert (completed.code, completed.out) == (2, "")
    assert "not one of 2 pictures can be read (0000" in completed.err


def test_help_names_every_flag() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
        command.run("coco", ["--help"])
    assert ended.value.code == 0
    for group in KIND.groups.values():
        for parameter in group:
            assert re.search(rf"^  --{parameter.name} ", out.getvalue(), re.MULTILINE), parameter.name


@pytest.mark.parametrize(
    "name",
    [parameter.name for group in KIND.options.values() for parameter in group],
)
def test_every_flag_of_the_task_is_in_the_docs(name: str) -> None:
    assert re.search(rf"--{name}\b", (ROOT / "docs" / "coco.md").read_text())


def test_a_run_stops_where_the_category_of_a_class_cannot_be_told(made: DetectionSet) -> None:
    """Three objects are too few; the values to choose from are named."""
    document = made.document()
    del document["annotations"][3:]
    made.annotations.write_text(json.dumps(document))
    completed = evaltools_here(*made.flags())
    assert (completed.code, completed.out) == (2, "")
    assert "--class_offset=+1, --class_offset=0\n" in completed.err
    assert evaltools_here(*made.flags("--class_offset=+1")).code == 0
