"""Which output of a detector is what: stated, from the operator, recognised, or refused with the reason."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.errors import ModelError
from evaltools.model import ModelFile, TensorInfo, read_model
from evaltools.tasks.coco.outputs import (
    operator_output_map,
    recognised_output_map,
    require_fitting,
    stated_output_map,
)
from evaltools.tasks.coco.result import OutputMap
from tests.tiny_detectors import NAMELESS, ROLES, TF2_ORDER, detector, postprocess_detector

Values = npt.NDArray[Any]
BOXES = np.linspace(0, 1, 24, dtype=np.float32).reshape(1, 6, 4)
CLASSES = np.array([[3, 0, 17, 2, 0, 1]], np.float32)
SCORES = np.array([[0.9, 0.8, 0.5, 0.3, 0.2, 0]], np.float32)
COUNT = np.array([5], np.float32)
EVERYTHING = {"boxes": BOXES, "classes": CLASSES, "scores": SCORES, "count": COUNT}


def recognise(outputs: Sequence[Values], names: Sequence[str] = NAMELESS, signature: Sequence[str] = ()) -> OutputMap:
    """From one picture's outputs."""
    signature = signature or [""] * len(outputs)
    tensors = [
        TensorInfo(place, name, values.dtype.name, values.shape, values.shape, None, None, signature_name)
        for place, (name, values, signature_name) in enumerate(zip(names, outputs, signature, strict=False))
    ]
    return recognised_output_map(ModelFile(Path("m.tflite"), "", 0, (), tuple(tensors), 1, None), [outputs])


def saved(folder: Path, content: bytes) -> ModelFile:
    (folder / "model.tflite").write_bytes(content)
    return read_model(folder / "model.tflite")


def places(found: OutputMap) -> dict[str, int | None]:
    return {role: getattr(found, role) for role in ROLES}


@pytest.mark.parametrize("order", [*itertools.permutations(ROLES), *itertools.permutations(ROLES[:3])], ids=",".join)
def test_every_order_is_recognised_by_shapes_and_values_also_without_a_count(order: Sequence[str]) -> None:
    found = recognise([EVERYTHING[role] for role in order])
    assert places(found) == {"count": None} | {role: order.index(role) for role in order}
    assert found.source == "recognised by shapes and values"
    assert str(found) == ",".join(f"{role}={order.index(role)}" for role in ROLES if role in order)


@pytest.mark.parametrize("order", list(itertools.permutations(ROLES)), ids=",".join)
def test_the_operator_says_the_order(tmp_path: Path, order: Sequence[str]) -> None:
    found = operator_output_map(saved(tmp_path, postprocess_detector(order)))
    assert found is not None
    assert places(found) == {role: order.index(role) for role in ROLES}
    assert found.source == "from the operator TFLite_Detection_PostProcess"


@pytest.mark.parametrize(
    ("names", "signature"),
    [
        (("detection_boxes", "detection_classes", "detection_scores", "num_detections"), ()),
        (("a", "predicted Labels", "CONFIDENCE", "b"), ()),
        (("a", "categories", "b", "c"), ()),
        (("a", "b", "probabilities", "c"), ()),
        (NAMELESS, ("boxes", "class_ids", "class_scores", "n")),
    ],
)
def test_names_decide_where_values_do_not(names: Sequence[str], signature: Sequence[str]) -> None:
    nothing = np.zeros((1, 6), np.float32)
    with pytest.raises(ModelError, match="outputs 1 and 2 are scores and classes, but which is which is not known"):
        recognise([BOXES, nothing, nothing, COUNT])
    found = recognise([BOXES, nothing, nothing, COUNT], names, signature)
    assert places(found) == {"boxes": 0, "classes": 1, "scores": 2, "count": 3}
    assert found.source == "recognised by shapes and names"


def test_names_against_values_are_refused() -> None:
    with pytest.raises(ModelError) as caught:
        recognise([BOXES, CLASSES, SCORES, COUNT], ("box", "scores", "classes", "number"))
    message = str(caught.value)
    assert "by their names output 1 holds the scores, by their values output 2" in message
    assert "1 'scores' [1,6]: 0 to 17; 2 'classes' [1,6]: 0 to 0.9; 3 'number' [1]: 5 to 5" in message
    assert "--output_map=boxes=1,classes=3,scores=0,count=2" in message


@pytest.mark.parametrize(
    ("scores", "classes"),
    [
        (np.full((1, 6), np.nan, np.float32), CLASSES),
        (np.array([[-4.5, 3, 1.5, 0, 0, 0]], np.float32), CLASSES),
        (SCORES, np.array([[0, 1, 0, 1, 1, 0]], np.float32)),
        (SCORES, np.array([[0, 1, 0, 1, 1, 0]], np.int64)),
        (SCORES, np.array([[0.5, 7, 1, 1, 1, 0]], np.float32)),
        (SCORES.reshape(1, 6, 1), CLASSES.reshape(6)),
    ],
    ids=["NaN scores", "logits", "two classes", "integers", "fractional classes", "other ranks"],
)
def test_odd_values_are_recognised_where_only_one_order_fits(scores: Values, classes: Values) -> None:
    assert places(recognise([scores, BOXES, COUNT, classes])) == {"boxes": 1, "classes": 3, "scores": 0, "count": 2}
    assert places(recognise([classes, BOXES, COUNT, scores])) == {"boxes": 1, "classes": 0, "scores": 3, "count": 2}


def test_values_of_all_probed_pictures_count() -> None:
    nothing = np.zeros((1, 6), np.float32)
    tensors = tuple(
        TensorInfo(place, "", "float32", values.shape, values.shape, None, None)
        for place, values in enumerate((SCORES, BOXES, CLASSES))
    )
    model = ModelFile(Path("m.tflite"), "", 0, (), tensors, 1, None)
    found = recognised_output_map(model, [[nothing, BOXES, nothing], [SCORES, BOXES, CLASSES]])
    assert places(found) == {"boxes": 1, "classes": 2, "scores": 0, "count": None}


def test_four_rows_are_not_taken_for_the_four_sides_of_a_box() -> None:
    found = recognise([SCORES[:, :4], BOXES[:, :4], COUNT, CLASSES[:, :4]])
    assert places(found) == {"boxes": 1, "classes": 3, "scores": 0, "count": 2}


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        ([CLASSES, SCORES, COUNT], r"one output must hold the boxes, \[1,N,4\] .* but none does"),
        ([BOXES.reshape(1, 4, 6), CLASSES, SCORES, COUNT], "but none does"),
        ([BOXES, BOXES, CLASSES, SCORES], "but several do"),
        ([BOXES, CLASSES, SCORES, SCORES, COUNT], "boxes are output 0, but which outputs are scores, classes"),
        ([BOXES, CLASSES, SCORES, COUNT, COUNT], "boxes are output 0, but which outputs are scores, classes"),
        ([BOXES[:, :1], CLASSES[:, :1], SCORES[:, :1], COUNT], "boxes are output 0, but which"),
        ([BOXES, CLASSES, CLASSES], "outputs 1 and 2 are scores and classes, but which is which is not known"),
        ([BOXES, SCORES, SCORES], "outputs 1 and 2 are scores and classes, but which is which is not known"),
        ([BOXES, -CLASSES, CLASSES + 0.5], "is not known"),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_reason_and_the_outputs(outputs: list[Values], reason: str) -> None:
    with pytest.raises(ModelError, match=reason) as caught:
        recognise(outputs, [f"out{number}" for number in range(5)])
    assert "Outputs: 0 'out0' [1," in str(caught.value)
    assert "State which output is which, as in --output_map=" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("boxes=1,classes=3,scores=0,count=2", (1, 3, 0, 2)),
        ("scores=0, boxes=1, classes=3", (1, 3, 0, None)),
        ("boxes=b,classes=c,scores=s,count=n", (1, 3, 0, 2)),
        ("boxes=x,classes=y,scores=z", (1, 3, 0, None)),
        ("boxes=1,classes=StatefulPartitionedCall:3,scores=0,count=n", (1, 3, 0, 2)),
    ],
)
def test_a_stated_map_takes_numbers_and_names(
    tmp_path: Path, text: str, expected: tuple[int, int, int, int | None]
) -> None:
    by_name = {
        "b": saved(tmp_path, detector(names=("s", "b", "n", "c"))),
        "x": saved(tmp_path, detector(signature_names=("z", "x", "w", "y"))),
        "StatefulPartitionedCall:3": saved(tmp_path, detector(names=("s", "b", "n", NAMELESS[3]))),
    }
    model = next((model for name, model in by_name.items() if f"={name}" in text), by_name["b"])
    assert tuple(places(stated_output_map(text, model)).values()) == expected


def test_a_map_must_fit_the_shapes_of_real_outputs(tmp_path: Path) -> None:
    model = saved(tmp_path, detector())
    outputs = [EVERYTHING[role] for role in TF2_ORDER]
    require_fitting(model, OutputMap(1, 3, 0, 2, "stated"), outputs)
    require_fitting(model, OutputMap(1, 3, 0, None, "stated"), outputs)
    for wrong in (
        OutputMap(0, 1, 2, 3, "stated"),
        OutputMap(1, 2, 0, None, "stated"),
        OutputMap(1, 3, 2, None, "stated"),
        OutputMap(1, 3, 0, 0, "stated"),
    ):
        with pytest.raises(ModelError) as caught:
            require_fitting(model, wrong, outputs)
        message = str(caught.value)
        assert f"the outputs cannot be {wrong} (stated), which needs 4 N boxes, N classes" in message
        assert "their shapes are 0 [1, 6], 1 [1, 6, 4], 2 [1], 3 [1, 6]. State which output is which" in message


def test_what_the_operator_says_is_the_advice_for_a_map_that_does_not_fit(tmp_path: Path) -> None:
    model = saved(tmp_path, postprocess_detector(TF2_ORDER))
    with pytest.raises(ModelError, match="PostProcess says --output_map=boxes=1,classes=3,scores=0,count=2$"):
        require_fitting(model, OutputMap(0, 1, 2, 3, "stated"), [EVERYTHING[role] for role in TF2_ORDER])
