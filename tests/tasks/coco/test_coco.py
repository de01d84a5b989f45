"""What is read from the outputs of a detector, what is not a detector, and which messages there are about the data."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools.errors import DataError, ModelError, UsageError
from evaltools.model import read_model
from evaltools.result.result import Result
from evaltools.runtime.session import Array
from evaltools.tasks.coco.detector import DetectorOptions, check_detector, detector_input
from evaltools.tasks.coco.objects import FoundObjects, read_objects
from evaltools.tasks.coco.result import OutputMap
from evaltools.tasks.framework.image_input import PictureFrame, load_picture
from evaltools.tasks.framework.tensors import Outputs, TaskTensor
from tests import tiny_models
from tests.detection_set import DetectionSet, make_detection_set, pixels_of, save
from tests.tasks.coco.fakes import (
    Finding,
    Found,
    asked,
    everything,
    figures_of,
    mapping_used,
    sessions,
)
from tests.tasks.facts import boxes_of, evaluate
from tests.tasks.observers import Silent
from tests.tiny_detectors import BOXES, CELLS, TF2_ORDER, detector

MAP = OutputMap(0, 1, 2, 3, "stated")
LOW = 0.25


@pytest.fixture
def made(tmp_path: Path) -> DetectionSet:
    """Three pictures, to be changed."""
    return make_detection_set(tmp_path / "set", count=3)


def evaluated(made: DetectionSet, changes: dict[str, Any] | None = None, **options: Any) -> Result:
    """With sessions that find everything."""
    opened = sessions(reference=Finding(everything), test=Finding(everything))
    return evaluate(asked(made, changes, **options), Silent(), opened)


def floats(arrays: list[Array], frame: PictureFrame) -> Outputs:
    """Outputs that are not quantised."""
    return Outputs(arrays, [TaskTensor("", each.shape, each.dtype) for each in arrays], context=frame)


def read(
    count: float = 3.0, threshold: float = 0.0, places: OutputMap = MAP, **changed: dict[int, float]
) -> FoundObjects:
    """Six rows with scores 0.9, 0.7 .. -0.1, of which ``changed`` has other values in some rows."""
    outputs = {
        "boxes": BOXES[None].copy(),
        "classes": np.arange(CELLS, dtype=np.float32)[None],
        "scores": np.linspace(0.9, -0.1, CELLS, dtype=np.float32)[None],
        "count": np.array([count], np.float32),
    }
    for name, rows in changed.items():
        for row, value in rows.items():
            outputs[name].reshape(CELLS, -1)[row, -1] = value
    return read_objects(floats([*outputs.values()], PictureFrame(24, 16, None)), places, threshold)


@pytest.mark.parametrize(
    ("count", "kept"), [(3, 3), (2.7, 2), (0, 0), (-1, 0), (6, 6), (7, 6), (np.inf, 6), (np.nan, 6)]
)
def test_as_many_rows_are_read_as_the_count_says(count: float, kept: int) -> None:
    found = read(count)
    assert found.classes.tolist() == list(range(kept))
    np.testing.assert_array_equal(found.boxes, BOXES[:kept])
    assert found.rows == CELLS
    assert found.stated == pytest.approx(count, nan_ok=True)


def test_without_a_count_every_row_with_a_score_is_read() -> None:
    places = replace(MAP, count=None)
    assert (read(places=places).classes.tolist(), read(places=places).stated) == ([0, 1, 2, 3, 4, 5], CELLS)
    filled_up = read(places=places, scores={1: 0, 5: 0})
    assert (filled_up.classes.tolist(), filled_up.nonfinite) == ([0, 2, 3, 4], 0)
    assert read(6, scores={1: 0}).classes.tolist() == [0, 1, 2, 3, 4, 5], "the count is believed"


def test_a_threshold_leaves_lower_scores_out_and_zero_keeps_all() -> None:
    assert read(6, 0.5).scores.tolist() == pytest.approx([0.9, 0.7, 0.5])
    assert read(6, -0.05).scores.tolist() == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1])
    assert len(read(6).scores) == CELLS


def test_rows_with_nan_or_infinite_numbers_are_left_out_and_counted() -> None:
    found = read(5, boxes={0: np.nan}, classes={1: np.inf}, scores={2: -np.inf, 5: np.nan})
    assert (found.classes.tolist(), found.nonfinite) == ([3, 4], 3)
    assert read(5, 0.8, scores={2: np.nan}).nonfinite == 1


def test_classes_are_cut_to_whole_numbers_and_counted() -> None:
    found = read(4, classes={0: 1.9, 1: -1.5, 2: 1e30})
    assert (found.classes.tolist(), found.fractional) == ([1, -1, 2**31 - 1, 3], 2)


def test_the_native_tool_needs_four_outputs(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(detector(TF2_ORDER[:2] + TF2_ORDER[3:]))
    check_detector(read_model(tmp_path / "model.tflite"))
    with pytest.raises(ModelError, match=r"boxes, classes, scores and their count\. A model"):
        check_detector(read_model(tmp_path / "model.tflite"), native=True)


@pytest.mark.parametrize(
    ("resize", "left", "columns"), [("letterbox", 2, (0.25, 0.75)), ("letterbox_top_left", 0, (0.5, 1.0))]
)
def test_boxes_of_a_letterboxed_picture_are_mapped_back(
    made: DetectionSet, resize: str, left: int, columns: tuple[float, float]
) -> None:
    """A square picture fills 8 of the 12 columns; the cell in the middle is the columns 4 to 8 of the input."""
    Image.fromarray(np.full((40, 40, 3), 50, np.uint8)).save(made.images / "x.png")
    options = DetectorOptions(resize=resize, letterbox_fill=255)  # type: ignore[arg-type]
    prepared = load_picture(made.images / "x.png", detector_input(read_model(made.model), options))
    pixels = np.asarray(prepared.values)[0, :, :, 0]
    assert [column for column in range(12) if (pixels[:, column] == 1).all()] == [
        column for column in range(12) if not left <= column < left + 8
    ]
    one = np.ones((1, 1), np.float32)
    found = read_objects(floats([BOXES[None, [1]], one, one, one], prepared.frame), MAP, 0.0)
    assert found.boxes[0].tolist() == pytest.approx([0, columns[0], 0.5, columns[1]])
    assert (found.width, found.height) == (40, 40)


def test_raw_pictures_give_the_figures_of_ordinary_ones(made: DetectionSet) -> None:
    expected = figures_of(evaluated(made), "test")
    document = made.document()
    for image in document["images"]:
        path = made.images / image["file_name"]
        pixels = np.asarray(Image.open(path))[::2, ::2]
        path.unlink()
        save(path.with_suffix(".rgb8"), pixels)
        image["file_name"] = path.with_suffix(".rgb8").name
    made.annotations.write_text(json.dumps(document))
    result = evaluated(made)
    assert figures_of(result, "test") == expected
    assert result.warnings[0].startswith("3 pictures have another size")
    assert "'000011.rgb8': 12x8 instead of 24x16" in result.warnings[0]


def test_the_facts_of_the_data_are_recorded(made: DetectionSet) -> None:
    document = made.document()
    document["annotations"] = [entry for entry in document["annotations"] if entry["image_id"] != 12]
    document["annotations"][0].update(iscrowd=1)
    document["annotations"][1]["bbox"][2] = 99
    document["images"].append({"id": 99, "file_name": "gone.png", "width": 9, "height": 9})
    made.annotations.write_text(json.dumps(document))
    save(made.images / "000010.png", pixels_of({}))
    (made.images / "readme").write_text("x")
    result = evaluated(made, score_threshold=LOW, model_output_labels=made.labels, class_offset="1")
    data = boxes_of(result).data
    assert (result.example_count, data.skipped_files, data.unlisted_pictures, data.native) == (3, 1, 1, False)
    assert (data.normalization, data.resize, data.score_threshold) == ("native", "stretch", LOW)
    truth = data.ground_truth
    assert truth is not None
    assert (truth.categories, truth.objects, truth.crowd_regions, truth.pictures_without_objects) == (3, 8, 1, 1)
    assert (truth.dropped_by_native, truth.missing_pictures) == (1, 1)
    named = ("1 files that are not pictures", "'000010.png'", "'gone.png'", "1 annotations reach beyond their picture")
    assert [said in warning for said, warning in zip(named, result.warnings, strict=True)] == [True] * 4
    assert figures_of(result, "test").detections == 18, "all scores are at least 0.4"


@pytest.mark.parametrize(
    ("offset", "warning"),
    [
        ("0", "--class_offset=+1"),
        ("dense", ""),
        ("1", ""),
        ("auto", ""),
    ],
)  # fmt: skip
def test_a_stated_offset_stays_and_a_better_one_is_recommended(made: DetectionSet, offset: str, warning: str) -> None:
    result = evaluated(made, class_offset=offset)
    assert [entry.endswith(f"fits 12: {warning}") for entry in result.warnings[:1]] == [True] * bool(warning)
    assert mapping_used(result).source == ("detected" if offset == "auto" else "stated")


def test_unsure_detections_do_not_vote(made: DetectionSet) -> None:
    """They are of the class before the right one, and twice as many as the others."""

    def answer(index: int) -> list[Found]:
        sure = everything(index)[:3]
        return sure + [((number + 2) % 3, 0.2, box) for number, _, box in sure]

    opened = sessions(reference=Finding(answer), test=Finding(answer))
    used = mapping_used(evaluate(asked(made), Silent(), opened))
    assert (used.name, used.source, used.pairs, used.agreeing["+1"]) == ("+1", "detected", 6, 6)

    def unsure(index: int) -> list[Found]:
        return [(number, 0.2, box) for number, _, box in everything(index)]

    with pytest.raises(UsageError, match="of 0 detections on an object with a score of 0.25 or more .and 12 with"):
        evaluate(asked(made), Silent(), sessions(reference=Finding(unsure), test=Finding(unsure)))


def test_a_set_without_objects_has_no_accuracy(made: DetectionSet) -> None:
    document = made.document()
    document["annotations"] = []
    made.annotations.write_text(json.dumps(document))
    result = evaluated(made)
    evaluation = figures_of(result, "test").evaluation
    assert evaluation is not None
    assert evaluation.stats.ap is None
    assert "not one object is annotated in these pictures, so no accuracy is known" in result.warnings


@pytest.mark.parametrize(
    ("lines", "warning"),
    [
        ("???\nred\ngreen\nblue\n", None),
        ("background\n RED\nGreen \nblue\nmore\n", None),
        ("red\ngreen\nblue\n", "begins one line early: line 0 (from 0) says 'red', which is category 1"),
        ("?\n?\n?\n", "has 3 lines and the ground truth has category 3"),
        ("?\n?\n?\n", "2 of 2 categories have another name in"),
        ("???\nred\ngrue\nblue\n", "category 2 is 'green', line 2 (from 0) says 'grue'"),
    ],
)
def test_labels_are_compared_with_the_categories(made: DetectionSet, lines: str, warning: str | None) -> None:
    made.labels.write_text(lines)
    warnings = evaluated(made, model_output_labels=made.labels).warnings
    assert [entry for entry in warnings if warning in entry] if warning else warnings == []


def test_the_native_tool_knows_its_classes_by_the_label_file(made: DetectionSet) -> None:
    with pytest.raises(DataError, match="--compat=native needs --model_output_labels"):
        evaluated(made, native=True)
    made.labels.write_text("???\nred\n")
    proto: dict[str, Any] = {"ground_truth_annotations": None, "ground_truth_proto": made.proto}
    for truth in ({}, proto):
        with pytest.raises(DataError, match=r"Encountered invalid class ID: 2 in 000011\.png: .*\.txt has 2 lines"):
            evaluated(made, native=True, model_output_labels=made.labels, **truth)


@pytest.mark.parametrize(
    ("rename", "ids"),
    [
        (lambda number, name: name, [11, 12, 13]),
        (lambda number, name: f"{9 - number}.png", [7, 8, 9]),
        (lambda number, name: f"picture {number}.png", [1, 2, 3]),
        (lambda number, name: "0" * number + "7.png", [1, 2, 3]),
    ],
    ids=["numbers", "other numbers", "words", "one number twice"],
)
def test_without_a_ground_truth_names_that_are_numbers_are_ids(
    made: DetectionSet, rename: Callable[[int, str], str], ids: list[int]
) -> None:
    for number, path in enumerate(sorted(made.images.iterdir())):
        os.rename(path, made.images / f"new {rename(number, path.name)}")
    for path in made.images.iterdir():
        os.rename(path, made.images / path.name.removeprefix("new "))
    pictures = boxes_of(evaluated(made, record_examples=True, ground_truth_annotations=None)).pictures
    assert pictures is not None
    assert [picture.image_id for picture in pictures] == ids
    assert [picture.example for picture in pictures] == sorted(path.name for path in made.images.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tiny_models.classifier(), "is not a detector: it has 1 input and 1 output (scores: float32[1,12])"),
        (tiny_models.two_inputs(), "it has 2 inputs and 1 output"),
        (detector(("boxes", "scores")), "it has 1 input and 2 outputs"),
    ],
)
def test_other_models_are_no_detectors(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "model.tflite").write_bytes(content)
    with pytest.raises(ModelError) as caught:
        check_detector(read_model(tmp_path / "model.tflite"))
    assert message in str(caught.value)
    assert "boxes, classes, scores and their count (the count may be missing)" in str(caught.value)


def test_a_threshold_counts_everywhere(made: DetectionSet) -> None:
    result = evaluated(made, record_examples=True, score_threshold=0.65)
    coco = boxes_of(result)
    assert coco.pictures is not None
    assert [len(picture.detections["test"]) for picture in coco.pictures] == [3, 3, 3]
    assert (figures_of(result, "test").detections, coco.comparisons[0].boxes.matched) == (9, 9)
    assert [category.ap for category in figures_of(result, "test").evaluation.categories][1] == pytest.approx(51 / 101)  # type: ignore[union-attr]


def test_a_run_stops_where_the_category_of_a_class_cannot_be_told(made: DetectionSet) -> None:
    document = made.document()
    del document["annotations"][3:]
    made.annotations.write_text(json.dumps(document))
    with pytest.raises(
        UsageError, match=r"of 3 detections .* class \+ 1 fits 3, (.|\n)*--class_offset=\+1, --class_off"
    ):
        evaluated(made)
    assert mapping_used(evaluated(made, class_offset="0")).source == "stated"


def test_an_evaluator_that_is_not_installed_is_missed_before_the_pass(
    made: DetectionSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faster_coco_eval", None)
    observer = Silent()
    with pytest.raises(UsageError, match=r"faster-coco-eval is not installed here .*pip install 'evaltools\[fast\]'"):
        evaluate(asked(made, coco_evaluator="faster-coco-eval"), observer, sessions())
    assert observer.described == []
