"""A detection evaluation from a result by hand: native lines and protobuf, table, detections, pictures that differ."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from pycocotools.coco import COCO

from evaltools.cli.shared.terminal import make_console
from evaltools.known_tasks import Detail
from evaltools.metrics.boxes import Detection
from evaltools.metrics.native_average_precision import NativeAveragePrecision
from evaltools.native.lines.evaluation import native_lines, native_proto
from evaltools.proto import message_class
from evaltools.report.page.screens import print_result
from evaltools.result.result import Result
from evaltools.result.section import Block, Gallery, Lines, Number, Table
from evaltools.tasks.coco.conclude import detections_file
from evaltools.tasks.coco.native import debug_lines
from evaltools.tasks.coco.page import Disagreement, disagreements, sections
from evaltools.tasks.coco.result import CategoryChange, DetectedPicture, OutputMap
from tests.tasks.coco.results import (
    AGREEMENT,
    LEFT,
    MAPPING,
    RIGHT,
    detected,
    detection_result,
    figures,
    picture,
)

LATENCIES = [
    "INFO: Num evaluation runs: 4",
    "INFO: Preprocessing latency: avg=6(us), std_dev=0(us)",
    "INFO: Inference latency: avg=2000(us), std_dev=1000(us)",
]
WARNING = "WARN: mAP metrics are meaningless w/o ground truth."


def printed(made: Result, detail: Detail = "figures") -> list[str]:
    text = io.StringIO()
    print_result(made, make_console(text), detail)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_the_native_lines_are_those_of_the_test_configuration() -> None:
    assert native_lines(detection_result("reference", "test")) == [
        *LATENCIES,
        "INFO: Average Precision [IOU Threshold=0.5]: 0.9",
        "INFO: Average Precision [IOU Threshold=0.55]: 0.8",
        "INFO: Average Precision [IOU Threshold=0.6]: 0.7",
        "INFO: Average Precision [IOU Threshold=0.65]: 0.6",
        "INFO: Average Precision [IOU Threshold=0.7]: 0.5",
        "INFO: Average Precision [IOU Threshold=0.75]: 0.4",
        "INFO: Average Precision [IOU Threshold=0.8]: 0.3",
        "INFO: Average Precision [IOU Threshold=0.85]: 0.2",
        "INFO: Average Precision [IOU Threshold=0.9]: 0.1",
        "INFO: Average Precision [IOU Threshold=0.95]: 0.333333",
        "INFO: Overall mAP: 0.483333",
    ]


def test_without_a_ground_truth_there_is_a_warning_and_a_map_only_for_native() -> None:
    made = detection_result("reference", "test", truth=None)
    assert native_lines(made) == [WARNING, *LATENCIES]
    native = detection_result("reference", "test", truth=None, data={"native": True})
    assert native_lines(native) == [WARNING, *LATENCIES, "INFO: Overall mAP: 0"]


def test_where_no_class_occurs_there_are_no_thresholds() -> None:
    empty = replace(figures("test"), native=NativeAveragePrecision((), 0.0, 0, 0))
    made = detection_result("reference", "test", found=[figures("reference"), empty])
    assert native_lines(made) == [*LATENCIES, "INFO: Overall mAP: 0"]


def message_of(made: Result) -> Any:
    return message_class("EvaluationStageMetrics").FromString(native_proto(made, made.rows[1]))


def test_proto_fields() -> None:
    message = message_of(detection_result("reference", "test"))
    metrics = message.process_metrics.object_detection_metrics
    assert message.num_runs == metrics.inference_metrics.num_inferences == 4
    assert (metrics.inference_latency.sum_us, metrics.inference_latency.std_deviation_us) == (4000, 1000)
    assert (metrics.inference_latency.min_us, metrics.inference_latency.max_us) == (1000, 3000)
    assert metrics.pre_processing_latency.avg_us == 6
    assert not metrics.pre_processing_latency.HasField("std_deviation_us")
    precision = metrics.average_precision_metrics
    pairs = [(entry.iou_threshold, entry.average_precision) for entry in precision.individual_average_precisions]
    assert [pair[0] for pair in pairs] == pytest.approx([0.5 + 0.05 * step for step in range(10)])
    assert pairs[0] == (0.5, np.float32(0.9))
    assert pairs[9][1] == np.float32(1 / 3)
    assert precision.overall_mean_average_precision == np.float32(0.4833333)
    assert message.process_metrics.WhichOneof("stage_metrics") == "object_detection_metrics"


def test_without_a_ground_truth_the_proto_has_no_precision() -> None:
    message = message_of(detection_result("reference", "test", truth=None))
    assert message.num_runs == 4
    assert not message.process_metrics.object_detection_metrics.HasField("average_precision_metrics")


FOUND = [Detection(3, 0.123456789, (0.25, -0.5, 1.0, 1 / 3)), Detection(1, 1.0, RIGHT)]


def test_the_debug_lines_are_those_of_the_native_tool() -> None:
    made = detection_result(
        "reference", "test", pictures=[picture(test=FOUND), picture("none.png", test=[]), picture("x.png", other=FOUND)]
    )
    assert "\n".join(debug_lines(made, made.rows[1])) == (
        "Image: one.png\n\n"
        "Object [0]\n"
        "  Score: 0.123457\n"
        "  Class-ID: 3\n"
        "  Bounding Box:\n"
        "    Normalized Top: 0.25\n"
        "    Normalized Bottom: 1\n"
        "    Normalized Left: -0.5\n"
        "    Normalized Right: 0.333333\n"
        "Object [1]\n"
        "  Score: 1\n"
        "  Class-ID: 1\n"
        "  Bounding Box:\n"
        "    Normalized Top: 0.25\n"
        "    Normalized Bottom: 0.75\n"
        "    Normalized Left: 0.5\n"
        "    Normalized Right: 1\n"
        f"{'=' * 54}\n\n"
        f"Image: none.png\n\n{'=' * 54}\n"
    )


def test_detections_are_written_in_the_format_of_coco_results() -> None:
    made = detection_result("reference", "test", pictures=[picture(test=FOUND), picture(reference=FOUND[:1])])
    first, second = json.loads(detections_file(made, "test"))
    assert first == {
        "image_id": 7,
        "category_id": 3,
        "bbox": [-20, 5, pytest.approx(100 / 3), 15],
        "score": 0.123456789,
    }
    assert second == {"image_id": 7, "category_id": 1, "bbox": [20, 5, 20, 10], "score": 1}
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {"images": [{"id": 7}], "categories": [{"id": 1}, {"id": 3}], "annotations": []}
        truth.createIndex()
        loaded = truth.loadRes([first, second])
    assert [entry["area"] for entry in loaded.dataset["annotations"]] == [pytest.approx(500), 200]
    assert json.loads(detections_file(made, "nobody")) == []
    unknown = detection_result("reference", "test", pictures=[replace(picture(test=FOUND), image_id=None)])
    assert json.loads(detections_file(unknown, "test")) == []


def test_how_outputs_were_read_is_on_the_first_screen_where_little_shows_that_it_is_right() -> None:
    sure = replace(MAPPING, pairs=40, agreeing={"+1": 38, "0": 1})
    assert not sure.is_doubtful
    made = detection_result("reference", "test", data={"class_mapping": sure})
    assert sure.describe() not in printed(made)
    assert sure.describe() in printed(made, "all")
    for doubt in (replace(sure, pairs=19), replace(sure, better="0"), replace(sure, agreeing={"+1": 19})):
        assert doubt.is_doubtful
        assert doubt.describe() in printed(detection_result("reference", "test", data={"class_mapping": doubt}))


def test_without_a_ground_truth_there_are_boxes_only() -> None:
    read = {"output_map": OutputMap(0, 1, 2, None, "recognised")}
    made = detection_result("reference", "test", truth=None, data=read)
    lines = printed(made)
    assert "4 pictures without ground truth" in lines
    assert [line for line in lines if line.startswith("test: mAP not decided: without a ground truth there is no mAP")]


def test_categories_that_changed_most_are_named() -> None:
    changes = [
        CategoryChange("person", 40, 30, 0.5, 0.4, 0.001, 0.01),
        CategoryChange("cow", 1, 1, 0.9, 0.0, 1.0, 1.0),
        CategoryChange("cat\n", 35, 30, 0.5, 0.7, 0.001, 0.01),
    ]
    made = detection_result("reference", "a", "b", categories={"a": changes})
    clear, unclear = boxes_of(made)[-2:]
    assert isinstance(clear, Table)
    assert [row[0] for row in clear.rows] == ["cat\n", "person"], "chance explains what becomes of a single cow"
    assert isinstance(unclear, Lines)
    assert [str(line).partition(":")[0] for line in unclear.lines] == ["b against reference", "b against a"]
    without = detection_result("r", "t", truth=None)
    assert not [block for block in boxes_of(without) if isinstance(block, Lines)]


def boxes_of(made: Result) -> Sequence[Block]:
    (section,) = [section for section in made.blocks if section.place == "accuracy"]
    return section.blocks


def test_boxes_without_a_partner_have_no_mean() -> None:
    made = detection_result("reference", "test", boxes=replace(AGREEMENT, matched=0, sum_iou=0.0))
    table = next(block for block in boxes_of(made) if isinstance(block, Table) and "mean IoU" in block.columns)
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["mean IoU"] == "-"
    assert [cell.value for cell in map(cells.get, ("lost", "new")) if isinstance(cell, Number)] == [1, 2]


SAME = [Detection(1, 0.9, LEFT)]
SHIFTED = [Detection(1, 0.8, LEFT)]
OTHER_CLASS = [Detection(2, 0.9, LEFT)]
TWO = [Detection(1, 0.9, LEFT), Detection(2, 0.8, RIGHT)]


def worst(*pictures: DetectedPicture, names: tuple[str, ...] = ("r", "t")) -> list[Disagreement]:
    coco = detected(*names, pictures=pictures)
    return [found for comparison in coco.comparisons[:2] for found in disagreements(coco.pictures, comparison).worst]


def named(rows: list[Disagreement]) -> list[tuple[str, str, int]]:
    return [(row.picture.example, row.other, row.unequal) for row in rows]


def test_the_worst_pictures_come_first_and_equal_ones_not_at_all() -> None:
    rows = worst(
        picture("shifted", r=SAME, t=SHIFTED),
        picture("equal", r=SAME, t=SAME),
        picture("lost", r=SAME, t=[]),
        picture("new", r=SAME, t=TWO),
        picture("class", r=SAME, t=OTHER_CLASS),
        picture("two", r=[], t=TWO),
    )
    assert named(rows)[0] in [("class", "t", 2), ("two", "t", 2)]
    assert sorted(named(rows)[:2]) == [("class", "t", 2), ("two", "t", 2)]
    assert sorted(named(rows)[2:4]) == [("lost", "t", 1), ("new", "t", 1)]
    assert named(rows)[4:] == [("shifted", "t", 0)]


def test_pictures_with_the_same_boxes_are_sorted_by_how_far_they_moved() -> None:
    less = [Detection(1, 0.85, LEFT)]
    rows = worst(picture("a", r=SAME, t=less), picture("b", r=SAME, t=SHIFTED), picture("c", r=SAME, t=SAME))
    assert named(rows) == [("b", "t", 0), ("a", "t", 0)]
    assert [row.shift for row in rows] == [pytest.approx(0.1), pytest.approx(0.05)]


def test_boxes_below_the_drawn_score_count_as_partners_only() -> None:
    low = [Detection(1, 0.29, LEFT)]
    assert named(worst(picture("x", r=low, t=[]))) == []
    assert named(worst(picture("x", r=SAME, t=low))) == [("x", "t", 0)]
    assert named(worst(picture("x", r=[Detection(1, 0.3, LEFT)], t=[]))) == [("x", "t", 1)]


def test_pictures_count_that_both_finished() -> None:
    rows = worst(picture("both", r=SAME, a=[], b=TWO), picture("half", r=[], a=TWO + TWO), names=("r", "a", "b"))
    assert [(row.other, row.picture.example) for row in rows] == [("a", "half"), ("a", "both"), ("b", "both")]
    assert worst(names=("r", "a", "b")) == []


def test_a_page_has_no_good_boxes_and_says_how_many_pictures_are_left_out() -> None:
    pictures = [picture(f"{number}", r=SAME, t=OTHER_CLASS) for number in range(18)]
    changed = detection_result("r", "t", pictures=pictures).blocks[-1]
    (gallery,) = changed.blocks
    assert isinstance(gallery, Gallery)
    assert len(gallery.pictures) == 16
    assert gallery.below == "16 of 18 pictures shown; --record_examples=true keeps all in the JSON result"
    assert [frame.tone for frame in gallery.pictures[0].frames] == ["bad", ""]
    (new,) = detection_result("r", "t", pictures=[picture("new", r=SAME, t=TWO)]).blocks[-1].blocks
    assert isinstance(new, Gallery)
    assert (new.pictures[0].tone, new.below) == ("", "")


@pytest.mark.parametrize(
    ("pictures", "words"),
    [
        (49, "test against reference: categories are not compared, which takes 50 pictures; these are 49"),
        (50, "test against reference: AP is the same in all categories"),
    ],
)
def test_categories_that_too_few_pictures_do_not_compare_are_not_called_the_same(pictures: int, words: str) -> None:
    made = detected("reference", "test")
    counted = replace(made, comparisons=[replace(each, example_count=pictures) for each in made.comparisons])
    blocks = [block for each in sections(counted, pictures, "") for block in each.blocks]
    assert words in [line for block in blocks if isinstance(block, Lines) for line in block.lines]
