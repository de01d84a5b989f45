"""Native coco runs as our typed result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.device.native_inputs import NativeInputs, prepare_coco
from evaltools.native.lines.evaluation import native_lines, native_proto
from evaltools.native.logs.evaluation import parse_evaluation_log
from evaltools.proto import message_class
from evaltools.result.section import Table, text_of
from evaltools.runs.evaluate import evaluate
from evaltools.tasks.coco.conclude import NATIVE_MAP, pictures_of
from tests.device.native.runs import (
    GPU,
    PLAIN,
    REFERENCE,
    NativeRun,
    assembled,
    classified_run,
    entry_of,
    run_stand_in,
    stand_ins,
    through_every_rendering,
)
from tests.device.native.test_inputs import coco_request
from tests.device.native_stand_in import GPU_LINES
from tests.tasks.observers import Silent

Inputs = NativeInputs[Any]


@pytest.fixture(scope="module")
def coco() -> Inputs:
    made = coco_request()
    made = replace(made, values={**made.values, "num_images": 12}, record_examples=True)
    return prepare_coco(made)


@pytest.mark.once
def test_coco_from_the_program_to_the_tables(tmp_path: Path, coco: Inputs) -> None:
    """The figures are those of our own evaluation of the same pictures with the same kernels, to six digits."""
    reference, test = stand_ins(tmp_path, coco, REFERENCE, PLAIN)
    gpu = run_stand_in(tmp_path / "gpu", coco, GPU, delegate_lines=GPU_LINES)
    result = assembled(coco, reference, test, gpu)
    assert [entry.status for entry in result.rows] == ["measured"] * 3
    ours = evaluate(coco.request, Silent())
    for own, native in zip(ours.rows, result.rows, strict=False):
        assert native.value("ap") == pytest.approx(own.value("ap"), abs=2e-3)
        assert native.series[NATIVE_MAP] == own.series[NATIVE_MAP]
        found = [pictures_of(each, own.name) for each in (ours, result)]
        assert [(each.image_id, len(each.detections)) for each in found[0]] == [
            (each.image_id, len(each.detections)) for each in found[1]
        ]
    assert result.rows[1].value("matched_boxes") == ours.rows[1].value("matched_boxes")
    through_every_rendering(result, tmp_path)
    assert native_proto(result, entry_of(result, "test")) == test.proto


def test_of_several_devices_tests_are_compared_with_the_first_reference(tmp_path: Path, coco: Inputs) -> None:
    runs = stand_ins(tmp_path, coco, REFERENCE, PLAIN)
    result = assembled(coco, *(replace(run, place=place) for place in ("A", "B") for run in runs))
    boxes = next(block for section in result.blocks for block in section.blocks if "matched one to one" in str(block))
    assert isinstance(boxes, Table)
    assert {text_of(row[0]): text_of(row[2]) for row in boxes.rows}["test@B against test@A"] == "0"
    assert [text_of(row[0]) for row in boxes.rows] == [
        "test@A against reference@A",
        "reference@B against reference@A",
        "test@B against reference@A",
        "test@B against test@A",
    ]
    table = through_every_rendering(result, tmp_path)
    assert "test@B against test@A" in table


def test_coco_without_a_ground_truth_compares_boxes(tmp_path: Path) -> None:
    made = coco_request(truth=False)
    made = replace(made, values={**made.values, "num_images": 3}, record_examples=True)
    inputs = prepare_coco(made)
    result = assembled(inputs, *stand_ins(tmp_path, inputs, REFERENCE, PLAIN))
    assert [entry.series[NATIVE_MAP] for entry in result.rows] == [[0.0], [0.0]]
    assert len(pictures_of(result, "test")) == 3
    assert pictures_of(result, "test")[0].size[0] > 100
    assert native_lines(result)[0] == "WARN: mAP metrics are meaningless w/o ground truth."
    assert native_lines(result)[-1] == "INFO: Overall mAP: 0"
    through_every_rendering(result, tmp_path)


@pytest.fixture(scope="module")
def coco_run(coco: Inputs, tmp_path_factory: pytest.TempPathFactory) -> NativeRun:
    return run_stand_in(tmp_path_factory.mktemp("coco") / "run", coco, PLAIN)


def why_coco_was_not_measured(coco: Inputs, run: NativeRun) -> str:
    (entry,) = assembled(coco, run).rows
    assert entry.status == "not measured"
    return str(entry.reason)


def test_coco_without_every_detection_is_not_measured(coco: Inputs, coco_run: NativeRun) -> None:
    first, second = (picture.name for picture in parse_evaluation_log(coco_run.log).pictures[:2])
    cut = coco_run.log.replace(f"Image: {first}", "Image: other.jpg")
    assert f"the detections of 12 pictures, there were 12: {first!r} is missing" in why_coco_was_not_measured(
        coco, coco_run.as_if(out=cut)
    )
    without = "".join(line for line in coco_run.log.splitlines(keepends=True) if "Top" in line or "mAP" in line)
    assert "the detections of 0 pictures, there were 12" in why_coco_was_not_measured(coco, coco_run.as_if(out=without))
    swapped = coco_run.log.replace(first, "\0").replace(second, first).replace("\0", second)
    assert "they stand in another order" in why_coco_was_not_measured(coco, coco_run.as_if(out=swapped))


def test_coco_that_could_not_read_its_ground_truth_is_not_measured(coco: Inputs, coco_run: NativeRun) -> None:
    """The native tool goes on without a word."""
    message = message_class("EvaluationStageMetrics").FromString(coco_run.proto)
    message.process_metrics.object_detection_metrics.ClearField("average_precision_metrics")
    unread = coco_run.as_if(output=message.SerializeToString())
    assert "it could not read it" in why_coco_was_not_measured(coco, unread)


def test_a_run_of_another_task_is_not_measured(coco: Inputs) -> None:
    assert "the result file is one of imagenet; give the program of coco" in why_coco_was_not_measured(
        coco, classified_run([0], [1])
    )
