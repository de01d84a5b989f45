"""A detection evaluation from a result by hand: native protobuf and log, detections, pictures that differ.

What it says in words and tables is in the cases of ``tests/report/tables``.
"""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from pycocotools.coco import COCO

from evaltools.metrics.boxes import Detection
from evaltools.native.lines.evaluation import native_proto
from evaltools.proto import message_class
from evaltools.result.result import Result
from evaltools.result.section import Gallery, Lines
from evaltools.tasks.coco.conclude import detections_file
from evaltools.tasks.coco.native import debug_lines
from evaltools.tasks.coco.page import Disagreement, disagreements, sections
from evaltools.tasks.coco.result import DetectedPicture
from tests.tasks.coco.results import (
    LEFT,
    RIGHT,
    detected,
    detection_result,
    picture,
)


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

    without_truth = message_of(detection_result("reference", "test", truth=None))
    assert without_truth.num_runs == 4
    assert not without_truth.process_metrics.object_detection_metrics.HasField("average_precision_metrics")


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


SAME = [Detection(1, 0.9, LEFT)]
SHIFTED = [Detection(1, 0.8, LEFT)]
OTHER_CLASS = [Detection(2, 0.9, LEFT)]
TWO = [Detection(1, 0.9, LEFT), Detection(2, 0.8, RIGHT)]


def worst(*pictures: DetectedPicture, names: tuple[str, ...] = ("r", "t")) -> list[Disagreement]:
    coco = detected(*names, pictures=pictures)
    return [found for comparison in coco.comparisons[:2] for found in disagreements(coco.pictures, comparison).worst]


def named(rows: list[Disagreement]) -> list[tuple[str, str, int]]:
    return [(row.picture.example, row.other, row.unequal) for row in rows]


LESS, LOW, DRAWN = ([Detection(1, score, LEFT)] for score in (0.85, 0.29, 0.3))


@pytest.mark.parametrize(
    ("pictures", "expected"),
    [
        (
            [
                picture("shifted", r=SAME, t=SHIFTED),
                picture("equal", r=SAME, t=SAME),
                picture("lost", r=SAME, t=[]),
                picture("new", r=SAME, t=TWO),
                picture("class", r=SAME, t=OTHER_CLASS),
                picture("two", r=[], t=TWO),
            ],
            [
                ("class", "t", 2, 0.0),
                ("two", "t", 2, 0.0),
                ("lost", "t", 1, 0.0),
                ("new", "t", 1, 0.0),
                ("shifted", "t", 0, 0.1),
            ],
        ),
        (
            [picture("less", r=SAME, t=LESS), picture("more", r=SAME, t=SHIFTED)],
            [("more", "t", 0, 0.1), ("less", "t", 0, 0.05)],
        ),
        ([picture("below what is drawn", r=LOW, t=[])], []),
        ([picture("a partner below what is drawn", r=SAME, t=LOW)], [("a partner below what is drawn", "t", 0, 0.61)]),
        ([picture("just drawn", r=DRAWN, t=[])], [("just drawn", "t", 1, 0.0)]),
        (
            [picture("of all", r=SAME, t=[], u=TWO), picture("not of u", r=[], t=TWO + TWO)],
            [("not of u", "t", 4, 0.0), ("of all", "t", 1, 0.0), ("of all", "u", 1, 0.0)],
        ),
    ],
)
def test_pictures_that_both_finished_are_sorted_by_boxes_without_a_partner_and_how_far_others_moved(
    pictures: list[DetectedPicture], expected: list[tuple[str, str, int, float]]
) -> None:
    names = ("r", "t", "u") if any("u" in each.detections for each in pictures) else ("r", "t")
    coco = detected(*names, pictures=pictures)
    rows = [found for comparison in coco.comparisons[:2] for found in disagreements(coco.pictures, comparison).worst]
    assert [(row.picture.example, row.other, row.unequal, round(row.shift, 6)) for row in rows] == expected


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
