"""``evaltools coco``: the native lines, how pictures and outputs are read, how it ends."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.evaluate.detection_command import answered_by
from tests.command import Completed, evaltools, evaltools_here
from tests.detection_set import (
    COCO_MAP,
    NATIVE_MAP,
    DetectionSet,
    draw_cells,
    make_detection_set,
)
from tests.tasks.coco.fakes import Finding, Found, everything, sessions
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


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--num_images=2"], ["INFO: Num evaluation runs: 2\n", OVERALL]),
        (["--score_threshold=0.65"], [f"INFO: Overall mAP: {(0.6 + 1) * 51 / 101 / 3:g}\n"]),
        (["--class_offset=0"], ["INFO: Overall mAP: 0\n"]),
        (["--output_map=boxes=boxes,classes=classes,scores=scores,count=count"], [OVERALL]),
    ],
)
def test_flags_change_the_figures(made: DetectionSet, flags: list[str], expected: list[str]) -> None:
    """In each picture three of the six scores are above the threshold, one for each class."""
    with answered_by(sessions(test=Finding(lambda index: everything(index)))):
        completed = evaltools_here(*made.flags("--reference=none", *flags))
    assert completed.code == 0, completed.err
    assert [line for line in expected if line not in completed.out] == []


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


def test_outputs_that_are_no_numbers_are_exit_code_4(made: DetectionSet) -> None:
    def one_nan(index: int) -> list[Found]:
        return [*everything(index)[:5], (1, np.nan, BOXES[5].tolist())]

    with answered_by(sessions(test=Finding(one_nan))):
        completed = evaltools_here(*made.flags("--reference=none"))
    assert completed.code == 4
    assert "warning: test: 5 detections have a NaN or infinite score, class or box" in completed.err
