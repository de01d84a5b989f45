"""``evaltools coco``: the native lines, how pictures and outputs are read, how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evaltools.datasets import sample
from evaltools.errors import InferenceError
from evaltools.result_file import read_result
from tests.cli.evaluate.detection_command import answered_by
from tests.command import Completed, evaltools, evaltools_here
from tests.detection_set import (
    COCO_MAP,
    NATIVE_MAP,
    DetectionSet,
    coco_document,
    draw_cells,
    make_detection_set,
    score_of,
)
from tests.tasks.coco.fakes import Finding, Found, detection_of, everything, figures_of, sessions
from tests.tiny_detectors import BOXES, ROLES, TF2_ORDER, detector, postprocess_detector

NUMBER = r"[0-9.e+-]+"
NATIVE_LINES = rf"""INFO: Num evaluation runs: 5
INFO: Preprocessing latency: avg={NUMBER}\(us\), std_dev=0\(us\)
INFO: Inference latency: avg={NUMBER}\(us\), std_dev=[0-9]+\(us\)
INFO: Average Precision \[IOU Threshold=0.5\]: 0.666667
INFO: Average Precision \[IOU Threshold=0.55\]: 0.666667
INFO: Average Precision \[IOU Threshold=0.6\]: 0.666667
INFO: Average Precision \[IOU Threshold=0.65\]: 0.666667
INFO: Average Precision \[IOU Threshold=0.7\]: 0.666667
INFO: Average Precision \[IOU Threshold=0.75\]: 0.666667
INFO: Average Precision \[IOU Threshold=0.8\]: 0.333333
INFO: Average Precision \[IOU Threshold=0.85\]: 0.333333
INFO: Average Precision \[IOU Threshold=0.9\]: 0.333333
INFO: Average Precision \[IOU Threshold=0.95\]: 0.333333
INFO: Overall mAP: 0.533333
"""
OVERALL = f"INFO: Overall mAP: {NATIVE_MAP:g}\n"
RULE = "=" * 54


@pytest.fixture
def made(tmp_path: Path) -> DetectionSet:
    """Five pictures, to be changed."""
    return make_detection_set(tmp_path / "set")


def overall_of(completed: Completed) -> float:
    """The native tool's mAP, which is the last line."""
    found = re.search(rf"INFO: Overall mAP: ({NUMBER})\n$", completed.out)
    assert found, completed.out
    return float(found[1])


def test_the_native_lines_are_all_that_stdout_holds(made: DetectionSet) -> None:
    completed = evaltools(*made.flags())
    assert completed.code == 0, completed.err
    assert re.fullmatch(NATIVE_LINES, completed.out), completed.out
    assert "5 pictures, 20 annotated objects of 3 categories\n" in completed.err
    assert "outputs: boxes=0,classes=1,scores=2,count=3; category = class + 1" in completed.err
    assert re.search(rf"reference +{100 * COCO_MAP:.2f}  100.00 .* {100 * NATIVE_MAP:.2f}\n", completed.err)
    assert "warning" not in completed.err


@pytest.mark.parametrize("name", sample.DETECTION_MODELS)
def test_the_embedded_sample_is_evaluated(name: str) -> None:
    completed = evaltools_here(
        "coco",
        f"--model_file={sample.detection_model_file(name)}",
        f"--ground_truth_images_path={sample.detection_images_dir()}",
        f"--ground_truth_annotations={sample.detection_annotations_file()}",
        f"--model_output_labels={sample.detection_labels_file()}",
        "--num_images=12",
    )
    assert completed.code == 0, completed.err
    assert "INFO: Num evaluation runs: 12\n" in completed.out
    assert "outputs: boxes=0,classes=1,scores=2,count=3; category = class + 1\n" in completed.err
    assert 0.2 < overall_of(completed) < 1


def test_every_detection_is_printed_in_debug_mode(made: DetectionSet) -> None:
    with answered_by(sessions(reference=Finding(everything), test=Finding(everything))):
        completed = evaltools_here(*made.flags("--debug_mode", "--num_images=2"))
    pictures = completed.out.split("INFO: Image: ")
    assert [picture.splitlines()[0] for picture in pictures[1:]] == ["000011.png", "000012.png"]
    assert completed.out.startswith(
        "INFO: Image: 000011.png\n\n"
        "INFO: Object [0]\n"
        "INFO:   Score: 0.9\n"
        "INFO:   Class-ID: 1\n"
        "INFO:   Bounding Box:\n"
        "INFO:     Normalized Top: 0\n"
        "INFO:     Normalized Bottom: 0.5\n"
        "INFO:     Normalized Left: 0\n"
        "INFO:     Normalized Right: 0.333333\n"
        "INFO: Object [1]\n"
    )
    assert "INFO: Object [5]" in pictures[1]
    assert pictures[1].endswith(f"INFO:     Normalized Right: 1\nINFO: {RULE}\n\n")
    assert f"INFO: {RULE}\n\nINFO: Num evaluation runs: 2\n" in pictures[2]


def test_configurations_are_headed_by_their_names_in_every_block(made: DetectionSet) -> None:
    def failing(_index: int) -> Sequence[Found]:
        raise InferenceError("no")

    opened = sessions(reference=Finding(everything), a=Finding(everything), b=Finding(failing))
    with answered_by(opened):
        completed = evaltools_here(
            *made.flags("--debug_mode", "--config=a: kernels=builtin", "--config=b: kernels=builtin")
        )
    assert completed.code == 3
    assert [line for line in completed.out.splitlines() if "Configuration" in line] == ["INFO: Configuration: a"] * 2
    assert "b: not measured: not one example succeeded: no" in completed.err


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--num_images=2"], ["INFO: Num evaluation runs: 2\n", OVERALL]),
        (["--num_images=0"], ["INFO: Num evaluation runs: 5\n", OVERALL]),
        (["--score_threshold=0.65"], [f"INFO: Overall mAP: {(0.6 + 1) * 51 / 101 / 3:g}\n"]),
        (["--class_offset=0"], ["INFO: Overall mAP: 0\n"]),
        (["--class_offset=dense"], [OVERALL]),
        (["--output_map=boxes=0,classes=1,scores=2"], [OVERALL]),
        (["--output_map=boxes=boxes,classes=classes,scores=scores,count=count"], [OVERALL]),
    ],
)
def test_flags_change_the_figures(made: DetectionSet, flags: list[str], expected: list[str]) -> None:
    """In each picture three of the six scores are above the threshold, one for each class."""
    with answered_by(sessions(test=Finding(lambda index: everything(index)))):
        completed = evaltools_here(*made.flags("--reference=none", *flags))
    assert completed.code == 0, completed.err
    assert [line for line in expected if line not in completed.out] == []


def test_letterboxed_boxes_are_mapped_back(made: DetectionSet) -> None:
    """A square picture fills the columns 2 to 10 of the input; its object fills the cell from 4 to 8 there."""
    for path in made.images.iterdir():
        pixels = np.zeros((24, 24, 3), np.uint8)
        pixels[:12, 6:18, 1] = 200
        Image.fromarray(pixels).save(path)
    document = coco_document(5)
    document["annotations"] = [
        {"id": 1 + index, "image_id": 11 + index, "category_id": 2, "bbox": [6, 0, 12, 12], "area": 144, "iscrowd": 0}
        for index in range(5)
    ]
    document["images"] = [{**image, "width": 24, "height": 24} for image in document["images"]]
    made.annotations.write_text(json.dumps(document))
    output = made.folder / "found.json"
    for resize, box in (("letterbox", [6, 0, 12, 12]), ("letterbox_top_left", None), ("stretch", None)):
        completed = evaltools_here(
            *made.flags("--reference=none", f"--resize={resize}", f"--detections_path={output}", "--class_offset=1")
        )
        assert completed.code == 0, completed.err
        assert ("INFO: Overall mAP: 1\n" in completed.out) is (box is not None)
        if box:
            found = json.loads(output.read_text())
            assert [entry["bbox"] for entry in found] == [pytest.approx(box, abs=1e-5)] * 5
            assert found[0]["score"] == pytest.approx(score_of(200))


def test_both_evaluators_give_the_same_figures(made: DetectionSet) -> None:
    pytest.importorskip("faster_coco_eval")
    found = []
    for evaluator in ("pycocotools", "faster-coco-eval"):
        output = made.folder / f"{evaluator}.json"
        with answered_by(sessions(test=Finding(everything))):
            evaltools_here(
                *made.flags("--reference=none", f"--coco_evaluator={evaluator}", f"--output_file_path={output}")
            )
        evaluation = figures_of(read_result(output), "test").evaluation
        assert evaluation is not None
        assert evaluation.evaluator.startswith(f"{evaluator} ")
        found.append((evaluation.stats, evaluation.categories))
    assert found[0] == found[1]
    assert found[0][0].ap == pytest.approx(COCO_MAP)


def native(made: DetectionSet, *flags: str) -> list[str]:
    return made.bare_flags("--compat=native", "--reference=none", f"--model_output_labels={made.labels}", *flags)


def test_the_native_tools_order_offset_and_ground_truth(made: DetectionSet) -> None:
    draw_cells(made.images / "000001.png", {0: (0, 255)})
    completed = evaltools_here(*native(made, f"--ground_truth_proto={made.proto}", "--verbose"))
    assert completed.code == 0, completed.err
    assert "INFO: Num evaluation runs: 6\n" in completed.out, "the picture without objects is one of them"
    red_with_a_false_alarm_first = 6 * (10 / 11) / 10
    assert overall_of(completed) == pytest.approx((red_with_a_false_alarm_first + 1) / 3, abs=2e-6)
    assert "count=3 (the order that the native tool expects)" in completed.err
    assert "category = class + 1 (stated; confident detections on an object: 20" in completed.err
    made.model.write_bytes(detector(ROLES, first_class=1))
    completed = evaltools_here(*native(made, f"--ground_truth_annotations={made.annotations}"))
    assert "INFO: Overall mAP: 0\n" in completed.out
    assert "class as it is fits 20: --class_offset=0" in completed.err


def test_the_native_tool_prints_a_map_of_zero_without_a_ground_truth(made: DetectionSet) -> None:
    completed = evaltools_here(*native(made))
    assert completed.code == 0, completed.err
    assert completed.out.startswith(
        "WARN: mAP metrics are meaningless w/o ground truth.\nINFO: Num evaluation runs: 5\n"
    )
    assert completed.out.endswith("(us)\nINFO: Overall mAP: 0\n")
    ours = evaltools_here(*made.bare_flags("--reference=none"))
    assert ours.out.startswith("WARN: mAP metrics are meaningless w/o ground truth.\n")
    assert len(ours.out.splitlines()) == 4
    assert "5 pictures without ground truth" in ours.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (postprocess_detector(TF2_ORDER), "PostProcess says --output_map=boxes=1,classes=3,scores=0,count=2"),
        (detector(), "cannot be boxes=0,classes=1,scores=2,count=3 (the order that the native tool expects)"),
        (detector(ROLES[:3]), "it has 1 input and 3 outputs"),
    ],
)
def test_the_native_tool_takes_outputs_in_its_order_only(made: DetectionSet, content: bytes, message: str) -> None:
    made.model.write_bytes(content)
    completed = evaltools_here(*native(made))
    assert (completed.code, completed.out) == (2, "")
    assert message in completed.err


def test_the_native_tool_stops_at_a_class_beyond_the_labels(made: DetectionSet) -> None:
    made.labels.write_text("???\nred\n")
    completed = evaltools_here(*native(made, f"--ground_truth_proto={made.proto}"))
    assert (completed.code, completed.out) == (2, "")
    assert "Encountered invalid class ID: 2 in 000011.png" in completed.err
    completed = evaltools_here(*made.bare_flags("--compat=native"))
    assert completed.code == 2
    assert "--compat=native needs --model_output_labels" in completed.err


def test_the_native_tool_stops_at_the_first_picture_that_fails(made: DetectionSet) -> None:
    (made.images / "000010.txt").write_text("x")
    completed = evaltools_here(*native(made, f"--ground_truth_proto={made.proto}"))
    assert completed.code == 4
    assert "stopped after 1 of 6 examples: an example failed, and the native tool stops there" in completed.err


def test_a_damaged_picture_is_exit_code_4(made: DetectionSet) -> None:
    (made.images / "000012.png").write_bytes(b"")
    completed = evaltools_here(*made.flags("--reference=none"))
    assert completed.code == 4
    assert "INFO: Num evaluation runs: 4\n" in completed.out
    assert "failed: 000012.png: is no readable PNG picture" in completed.err


def test_outputs_that_are_no_numbers_are_exit_code_4(made: DetectionSet) -> None:
    def one_nan(index: int) -> list[Found]:
        return [*everything(index)[:5], (1, np.nan, BOXES[5].tolist())]

    with answered_by(sessions(test=Finding(one_nan))):
        completed = evaltools_here(*made.flags("--reference=none"))
    assert completed.code == 4
    assert "warning: test: 5 detections have a NaN or infinite score, class or box" in completed.err


def test_a_delegate_that_cannot_run_is_exit_code_3(made: DetectionSet, tmp_path: Path) -> None:
    completed = evaltools_here(*made.flags("--use_nnapi=true", f"--detections_path={tmp_path}/found.json"))
    assert (completed.code, completed.out) == (3, "")
    assert "not measured: the NNAPI delegate cannot be created" in completed.err
    assert f"{tmp_path}/found.json is not written: test was not measured" in completed.err
    assert not (tmp_path / "found.json").exists()


def test_an_interrupt_gives_the_figures_of_what_was_finished(made: DetectionSet, tmp_path: Path) -> None:
    def until_the_third(index: int) -> Sequence[Found]:
        if index == 2:
            raise KeyboardInterrupt
        return everything(index)

    with answered_by(sessions(test=Finding(until_the_third))):
        completed = evaltools_here(
            *made.flags("--reference=none", "--workers=1", "--class_offset=1", f"--output_file_path={tmp_path}/r.json")
        )
    assert completed.code == 130
    assert "INFO: Num evaluation runs: 2\n" in completed.out
    assert OVERALL in completed.out
    assert "stopped after 2 of 5 examples: interrupted" in completed.err
    result = read_result(tmp_path / "r.json")
    assert (result.complete, result.stopped, detection_of(result).data.example_count) == (False, "interrupted", 5)


def test_names_of_pictures_may_be_any_bytes(made: DetectionSet, tmp_path: Path) -> None:
    (made.images / "000011.png").rename(made.images / "\udcff.png")
    outputs = [f"--{flag}={tmp_path}/{flag}.{ending}" for flag, ending in FILES]
    with answered_by(sessions(reference=Finding(everything), test=Finding(lambda index: everything(index)[:3]))):
        completed = evaltools_here(*made.bare_flags("--debug_mode", "--record_examples", *outputs))
    assert completed.code == 0, completed.err
    assert len(completed.out.split("Image: ")) == 6
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        "detections_path.json", "detections_path.reference.json", "output_file_path.json",
    ]  # fmt: skip


FILES = (("output_file_path", "json"), ("detections_path", "json"))
