"""The detection evaluation: known figures of every kind of detector, and signs of trouble."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.errors import ModelError, UsageError
from evaltools.result.result import Result
from tests.detection_set import (
    COCO_MAP,
    NATIVE_MAP,
    DetectionSet,
    draw_cells,
    make_detection_set,
    score_of,
)
from tests.runtime.fake import open_here
from tests.tasks.coco.fakes import (
    Finding,
    Found,
    asked,
    assert_known_figures,
    figures_of,
    mapping_used,
    outputs_used,
    sessions,
)
from tests.tasks.facts import boxes_of, evaluate
from tests.tasks.observers import Silent
from tests.tflite_writer import Quantization
from tests.tiny_detectors import BOXES, ROLES, TF2_ORDER, detector, postprocess_detector

QUANTIZED = {
    "boxes": Quantization(1 / 240, 10),
    "scores": Quantization(1 / 255, 0),
    "classes": Quantization(0.5, 3),
    "count": Quantization(0.25, 1),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> DetectionSet:
    """Five pictures, not to be changed."""
    return make_detection_set(tmp_path_factory.mktemp("set") / "set")


def with_model(made: DetectionSet, folder: Path, content: bytes) -> dict[str, Any]:
    """The change of a request to another model."""
    (folder / "model.tflite").write_bytes(content)
    return {"model_file": folder / "model.tflite"}


def really(made: DetectionSet, changes: dict[str, Any] | None = None, **options: Any) -> Result:
    """The evaluation with the installed runtime."""
    return evaluate(asked(made, changes, **options), Silent(), open_here)


@pytest.mark.parametrize(
    ("content", "order", "source", "offset"),
    [
        (postprocess_detector(), ROLES, "from the operator", "+1"),
        (postprocess_detector(TF2_ORDER), TF2_ORDER, "from the operator", "+1"),
        (detector(), TF2_ORDER, "recognised by shapes and values", "+1"),
        (detector(ROLES, ("b", "classes", "scores", "n"), 1), ROLES, "recognised by shapes and names and values", "0"),
        (detector(("classes", "scores", "boxes"), first_class=5), ("classes", "scores", "boxes"), "by shapes", "-4"),
        (detector(quantized=QUANTIZED), TF2_ORDER, "recognised by shapes and names and values", "+1"),
    ],
    ids=["operator", "operator in another order", "no operator", "classes from 1", "no count, from 5", "quantised"],
)
def test_every_kind_of_detector_gets_the_known_figures(
    made: DetectionSet, tmp_path: Path, content: bytes, order: Sequence[str], source: str, offset: str
) -> None:
    result = really(made, with_model(made, tmp_path, content))
    assert_known_figures(result)
    assert_known_figures(result, "reference")
    places = [getattr(outputs_used(result), role) for role in ROLES]
    assert places == [order.index(role) if role in order else None for role in ROLES]
    assert source in outputs_used(result).source
    mapping = mapping_used(result)
    assert (mapping.name, mapping.source) == (offset, "detected")
    assert mapping.agreeing[offset] == mapping.pairs == 20
    assert [entry for figures in boxes_of(result).figures for entry in figures.findings] == []
    assert result.warnings == []


def test_a_proto_and_annotations_give_the_same_figures(made: DetectionSet) -> None:
    result = really(made, ground_truth_annotations=None, ground_truth_proto=made.proto)
    native = figures_of(result, "test").native
    assert native == figures_of(really(made), "test").native
    assert native is not None
    assert native.overall == pytest.approx(NATIVE_MAP)
    evaluation = figures_of(result, "test").evaluation
    assert evaluation is not None
    assert evaluation.stats.ap == pytest.approx(COCO_MAP)
    assert [warning for warning in result.warnings if "knows no crowd regions" in warning]


def test_crowd_regions_absorb_detections_for_coco_and_are_objects_for_native(tmp_path: Path) -> None:
    """A false alarm in the crowd comes before the one that is right."""
    made = make_detection_set(tmp_path / "set", count=1)
    document = made.document()
    box = {"image_id": 11, "category_id": 2, "area": 64}
    document["annotations"] = [
        {"id": 1, "bbox": [16, 8, 8, 8], "iscrowd": 0, **box},
        {"id": 2, "bbox": [0, 0, 24, 8], "iscrowd": 1, **box},
    ]

    def alarm(_index: int) -> list[Found]:
        return [(1, 0.9, BOXES[0].tolist()), (1, 0.8, BOXES[5].tolist())]

    def figures(crowd: int) -> list[float | None]:
        document["annotations"][1]["iscrowd"] = crowd
        made.annotations.write_text(json.dumps(document))
        request = asked(made, class_offset="1")
        result = evaluate(request, Silent(), sessions(reference=Finding(alarm), test=Finding(alarm)))
        found = figures_of(result, "test")
        assert found.evaluation is not None
        assert found.native is not None
        truth = boxes_of(result).data.ground_truth
        assert truth is not None
        assert (truth.objects, truth.crowd_regions) == (2, crowd)
        return [found.evaluation.stats.ap, found.native.overall]

    half_of_the_objects_at_half_precision = 51 / 101 / 2
    assert figures(1) == pytest.approx([1, half_of_the_objects_at_half_precision])
    assert figures(0) == pytest.approx([half_of_the_objects_at_half_precision] * 2)


UNTOLD = "20 boxes lie on an object if"
"""A sign at which the category of a class cannot be told either, so that the run stops."""


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (detector(boxes=BOXES * np.array([16, 24, 16, 24], np.float32)), "are they in pixels?"),
        (detector(boxes=BOXES[:, [1, 0, 3, 2]]), "20 boxes lie on an object if read as left, top, right, bottom"),
    ],
    ids=["pixels", "left first"],
)
def test_signs_of_wrong_outputs_are_told_of_each_configuration(
    made: DetectionSet, tmp_path: Path, content: bytes, finding: str
) -> None:
    with pytest.raises(UsageError, match="--class_offset") if finding.startswith(UNTOLD) else nullcontext() as caught:
        really(made, with_model(made, tmp_path, content))
    assert caught is None or finding in str(caught.value)
    result = really(made, with_model(made, tmp_path, content), class_offset="1")
    for name in ("reference", "test"):
        assert [entry for entry in figures_of(result, name).findings if finding in entry], result.warnings
        assert [entry for entry in result.warnings if entry.startswith(f"{name}: ") and finding in entry]


def test_outputs_that_cannot_be_distinguished_are_refused_unless_stated(made: DetectionSet, tmp_path: Path) -> None:
    whole = with_model(made, tmp_path, detector(fixed={"scores": np.ones((1, 6), np.float32)}))
    with pytest.raises(ModelError, match="outputs 0 and 3 are scores and classes, but which is which is not known"):
        really(made, whole)
    stated = really(made, whole, output_map="boxes=1,classes=3,scores=0,count=2")
    native = figures_of(stated, "test").native
    assert native is not None
    assert native.overall == pytest.approx(NATIVE_MAP), "the objects of each class are all right or all wrong"


def test_outputs_are_told_by_later_pictures_where_nothing_is_found_in_the_first_ones(tmp_path: Path) -> None:
    made = make_detection_set(tmp_path / "set", detector(), count=7)
    for number in range(11, 16):
        draw_cells(made.images / f"0000{number}.png", {})
    result = really(made, {"reference": None})
    assert figures_of(result, "test").detections == 12
    assert outputs_used(result).source == "recognised by shapes and values"
    for number in (16, 17):
        draw_cells(made.images / f"0000{number}.png", {})
    with pytest.raises(ModelError, match="is not known"):
        really(made, {"reference": None})


def test_detections_are_kept_on_request_with_sizes_ids_and_objects(made: DetectionSet) -> None:
    assert really(made).tables == {}
    pictures = boxes_of(really(made, {"reference": None}, record_examples=True)).pictures
    first = pictures[0]
    assert (first.example, first.image_id, first.width, first.height) == ("000011.png", 11, 24, 16)
    assert [(entry.category_id, entry.is_crowd) for entry in first.objects] == [(1, False), (2, False)] * 2
    assert first.objects[0].box == pytest.approx((0, 0, 6.2 / 16, 8 / 24))
    assert first.objects[1].box == pytest.approx((0, 8 / 24, 8 / 16, 16 / 24))
    best = first.detections["test"][0]
    assert best.category_id == 1
    assert best.score == pytest.approx(score_of(250))
    assert best.box == pytest.approx((0, 0, 0.5, 1 / 3))
    assert best.pixel_box(24, 16) == pytest.approx((0, 0, 8, 8))


@pytest.mark.parametrize("native", [False, True])
def test_a_map_that_does_not_fit_is_refused_before_the_pass(made: DetectionSet, tmp_path: Path, native: bool) -> None:
    """The native order is what ``native`` takes."""
    other = with_model(made, tmp_path, detector())
    options = (
        {"native": True, "model_output_labels": made.labels}
        if native
        else {"output_map": "boxes=0,classes=1,scores=2,count=3"}
    )
    observer = Silent()
    with pytest.raises(ModelError, match=r"cannot be boxes=0,classes=1,scores=2,count=3 .*0 \[1, 6\], 1 \[1, 6, 4\]"):
        evaluate(asked(made, other, **options), observer, open_here)
    assert observer.total == 0
