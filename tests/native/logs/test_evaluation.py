"""Texts of native evaluations: whole, cut off, of other releases, from logcat, and nonsense."""

from __future__ import annotations

import pytest

from evaltools.errors import DataError
from evaltools.metrics.boxes import Detection
from evaltools.native.logs.evaluation import (
    LoggedPicture,
    parse_evaluation_log,
)

RULE = "=" * 54
IMAGENET = """\
INFO: Created TensorFlow Lite XNNPACK delegate for CPU.
INFO: Evaluated: 1%
INFO: Evaluated: 149%
INFO: Num evaluation runs: 299
INFO: Preprocessing latency: avg=5880.34(us), std_dev=0(us)
INFO: Inference latency: avg=1.23457e+06(us), std_dev=562(us)
""" + "".join(f"INFO: Top-{k} Accuracy: {0.5 + k / 32:g}\n" for k in range(1, 11))
COCO = f"""\
INFO: Image: Overall mAP: 1

INFO: Object [0]
INFO:   Score: 0.679688
INFO:   Class-ID: 72
INFO:   Bounding Box:
INFO:     Normalized Top: 0.388151
INFO:     Normalized Bottom: 0.623572
INFO:     Normalized Left: -0.00488929
INFO:     Normalized Right: 1e-05
INFO: {RULE}

INFO: Image: none.jpg

INFO: {RULE}

INFO: Finished: 50%
INFO: Num evaluation runs: 2
INFO: Preprocessing latency: avg=2(us), std_dev=0(us)
INFO: Inference latency: avg=3(us), std_dev=1(us)
INFO: Average Precision [IOU Threshold=0.5]: 0.301614
INFO: Average Precision [IOU Threshold=0.55]: 0
INFO: Overall mAP: 0.187915
"""
DIFF = """\
WARN: Unconsumed cmdline flags: --bogus=2
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795264505.800603   25101 inference_profiler_stage.cc:86] Test interpreter has been initialized.
W0000 00:00:1795264505.800731   25101 tflite_inference_stage.cc:191]
ERROR: num_threads should be >=0 or just -1 to let TFLite runtime set the value.
INFO: Num evaluation runs: 50
INFO: Reference run latency: avg=0.0533333(us), std_dev=0(us)
INFO: Test run latency: avg=0.0866667(us), std_dev=1(us)
INFO: OutputDiff[0]: avg_error=3.72529e-09, std_dev=-nan
INFO: OutputDiff[1]: avg_error=nan, std_dev=0
"""
TEXTS = {"imagenet": IMAGENET, "coco": COCO, "inference_diff": DIFF}


def test_the_detections_of_coco() -> None:
    found = Detection(72, 0.679688, (0.388151, -0.00488929, 0.623572, 1e-05))
    assert parse_evaluation_log(COCO).pictures == (
        LoggedPicture("Overall mAP: 1", (found,)),
        LoggedPicture("none.jpg", ()),
    )


def test_warnings_and_errors() -> None:
    log = parse_evaluation_log(DIFF)
    assert log.warnings == ("Unconsumed cmdline flags: --bogus=2",)
    assert log.errors == ("num_threads should be >=0 or just -1 to let TFLite runtime set the value.",)
    quiet = parse_evaluation_log(IMAGENET)
    assert (quiet.warnings, quiet.errors, quiet.failure) == ((), (), None)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_prefixes_may_be_missing(text: str) -> None:
    assert (parse_evaluation_log(text.replace("INFO: ", ""))) == (parse_evaluation_log(text))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_stands_in_stdout_and_in_logcat_counts_once(text: str) -> None:
    levels = {"WARN: ": "W", "ERROR: ": "E"}
    logcat = "".join(
        f"11-22 13:10:02.123  1234  1250 {levels.get(line[: line.find(' ') + 1], 'I')} tflite  : {line}\n"
        for line in text.splitlines()
    )
    assert (parse_evaluation_log(text + logcat)) == (parse_evaluation_log(text))


def test_a_text_that_is_cut_anywhere_is_read_as_far_as_it_goes() -> None:
    """No picture is read that the whole text does not have."""
    whole = parse_evaluation_log(COCO).pictures
    seen = 0
    for end in range(len(COCO)):
        found = parse_evaluation_log(COCO[:end]).pictures
        assert found == whole[: len(found)]
        assert len(found) >= seen
        seen = len(found)
    assert seen == len(whole)


@pytest.mark.parametrize("prefix", ["WARN: ", ""])
def test_a_warning_is_known_without_its_prefix(prefix: str) -> None:
    """Releases up to 2.11 print none."""
    meaningless = "mAP metrics are meaningless w/o ground truth."
    log = parse_evaluation_log(
        f"{prefix}{meaningless}\n{prefix}Unconsumed cmdline flags: --use_xnnpack=false\nINFO: Unconsumed flags\n"
    )
    assert log.warnings == (meaningless, "Unconsumed cmdline flags: --use_xnnpack=false")


def test_two_lists_of_detections_of_one_picture_are_refused() -> None:
    block = COCO.partition("INFO: Image: none.jpg")[0]
    with pytest.raises(DataError, match="two different lists of detections of 'Overall mAP: 1'"):
        parse_evaluation_log(block + block.replace("72", "73"))


@pytest.mark.parametrize(
    "damage",
    [
        ("INFO:   Score: 0.679688\n", ""),
        ("Score: 0.679688", "Score: high"),
        ("Class-ID: 72", "Class-ID: 72.5"),
        ("Object [0]", "Object [1]"),
        (f"INFO: {RULE}\n\nINFO: Image: none", "INFO: Image: none"),
        ("INFO:     Normalized Right: 1e-05\n", "INFO:     Normalized Right: \n"),
    ],
)
def test_a_block_with_a_damaged_line_is_left_out(damage: tuple[str, str]) -> None:
    assert damage[0] in COCO
    assert [picture.name for picture in parse_evaluation_log(COCO.replace(*damage)).pictures] == ["none.jpg"]


def test_a_failure_says_why() -> None:
    text = (
        "INFO: Num evaluation runs: 3\n"
        "E0000 00:00:1795264662.400505   27670 object_detection_average_precision_stage.cc:68] Encountered invalid "
        "class ID: 90\nERROR: Could not run the task evaluation!\n"
    )
    assert parse_evaluation_log(text).failure == "Encountered invalid class ID: 90"
    assert parse_evaluation_log("ERROR: Could not run the task evaluation!\n").failure == (
        "Could not run the task evaluation!"
    )
    crash = "terminate called after throwing an instance of 'std::invalid_argument'\n  what():  stoi\n"
    assert parse_evaluation_log(crash).failure == (
        "terminate called after throwing an instance of 'std::invalid_argument'; what():  stoi"
    )
    many = "".join(f"ERROR: tensor {number}\n" for number in range(9))
    assert parse_evaluation_log(many).failure == "tensor 0; tensor 7; tensor 8"
