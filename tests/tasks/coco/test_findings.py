"""Signs that outputs are not what they are taken for: each kind where it belongs, none on a healthy set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.datasets.native_ground_truth import NativePicture
from evaltools.datasets.object_annotations import AnnotatedImage, Category
from evaltools.tasks.coco.classes import ClassMapping
from evaltools.tasks.coco.task import FoundObjects
from evaltools.tasks.coco.truth import Truth
from evaltools.tasks.coco.warnings import findings_of

PLUS_ONE = ClassMapping("+1", 1)
LEFT = (0.1, 0.1, 0.9, 0.3)
RIGHT = (0.1, 0.6, 0.3, 1.0)


def found(
    boxes: Sequence[Sequence[float]] = (LEFT, RIGHT),
    classes: Sequence[int] = (0, 1),
    scores: Sequence[float] = (0.9, 0.4),
    **facts: Any,
) -> FoundObjects:
    made = FoundObjects(
        classes=np.array(classes, np.int64),
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
        scores=np.array(scores, np.float32),
        stated=float(len(classes)),
        rows=10,
        nonfinite=0,
        fractional=0,
        width=10,
        height=10,
    )
    return replace(made, **facts)


def truth(pictures: int = 12) -> Truth:
    """The two boxes, of the categories 1 and 2, in each picture."""
    native = NativePicture("x", 1, np.array([1, 2]), np.array([LEFT, RIGHT], np.float32))
    return Truth(
        path=Path("t.json"),
        kind="COCO annotations",
        sha256="",
        categories=(Category(1, "a"), Category(2, "b")),
        images=(AnnotatedImage(1, "x", 10, 10, ()),) * pictures,
        native=(native,) * pictures,
        dropped_by_native=0,
        missing=(),
    )


def findings(
    *objects: FoundObjects, known: Truth | None = None, mapping: ClassMapping = PLUS_ONE, times: int = 1
) -> list[str]:
    return findings_of(list(enumerate(objects * times)), known, mapping)


def test_there_is_none_where_all_is_well() -> None:
    assert findings(found(), times=12, known=truth()) == []
    assert findings(found(), times=12) == []
    assert findings() == []


def test_boxes_may_reach_a_little_beyond_the_picture() -> None:
    assert findings(found([(-0.4, -0.1, 1.4, 1.1), (0.9, 0.9, 1.5, 1.5)])) == []


def test_a_picture_without_objects_is_no_finding_among_others() -> None:
    assert findings(found([], [], []), found()) == []
    assert findings(found([], [], []), times=3) == ["nothing was found in 3 pictures"]


def test_nan_and_infinite_numbers_are_counted_even_if_nothing_else_was_found() -> None:
    (three,) = findings(found(nonfinite=2), found(nonfinite=1))
    assert three.startswith("3 detections have a NaN")
    four, nothing = findings(found([], [], [], nonfinite=4))
    assert four.startswith("4 detections have a NaN")
    assert nothing == "nothing was found in 1 pictures"


def test_a_count_beyond_the_outputs() -> None:
    assert findings(found(stated=11.0), found(stated=25.0), found(stated=10.0)) == [
        "the count is larger than the outputs in 2 pictures (up to 25, with room for 10); it was cut"
    ]


@pytest.mark.parametrize(("stated", "shown"), [(-1.0, "-1"), (2.5, "2.5"), (np.nan, "nan")])
def test_a_count_that_is_none(stated: float, shown: str) -> None:
    assert findings(found(stated=stated), found()) == [
        f"the count is no whole number from 0 on in 1 pictures, such as {shown}"
    ]


def test_fractional_classes() -> None:
    (message,) = findings(found(fractional=2), found(fractional=1))
    assert message.startswith("3 classes are no whole numbers")


def test_scores_that_are_no_shares() -> None:
    (message,) = findings(found(scores=(-1.5, 3)))
    assert message.startswith("scores go from -1.5 to 3, not 0..1")
    assert findings(found(scores=(0, 1))) == []


def test_equal_scores_everywhere() -> None:
    same = "all 20 detections have the same score, 0.5"
    assert findings(found(scores=(0.5, 0.5)), times=10) == [same]
    assert findings(found(scores=(0.5, 0.5)), times=9) == []
    assert findings(found(scores=(0.5, 0.5)), found(scores=(0.5, 0.25)), times=9) == []


def test_boxes_in_pixels() -> None:
    beyond, outside = findings(found([(10, 20, 300, 200), (0.1, 0.1, 0.9, 0.9)]))
    assert beyond.startswith("1 of 2 boxes reach more than half a picture beyond it (a side at 300")
    assert outside == "1 of 2 boxes lie outside the picture"
    assert len(findings(found([(0.9, 0.9, 1.51, 1.5), (-0.5, 0, 1, 1)]))) == 1


def test_boxes_that_end_before_they_begin() -> None:
    upside_down, mirrored = (0.9, 0.1, 0.1, 0.3), (0.1, 0.9, 0.3, 0.6)
    (both,) = findings(found([upside_down, mirrored]))
    (one,) = findings(found([(1.2, 0.1, 1.1, 0.3), RIGHT]))
    assert both.startswith("2 of 2 boxes end before they begin")
    assert one.startswith("1 of 2 boxes end before they begin")


def test_boxes_outside_the_picture() -> None:
    above, beside = (-0.3, 0.1, 0.0, 0.3), (0.1, 1.0, 0.2, 1.2)
    assert findings(found([above, beside]), found()) == ["2 of 4 boxes lie outside the picture"]


def test_one_class_everywhere() -> None:
    one = "all 20 detections are of class 1"
    assert findings(found(classes=(1, 1)), times=10, known=truth()) == [one]
    assert findings(found(classes=(1, 1)), times=9, known=truth()) == []
    assert findings(found(classes=(1, 1)), times=10) == []
    single = replace(truth(), categories=(Category(2, "b"),))
    assert findings(found(classes=(1, 1)), times=10, known=single) == []


def test_classes_that_the_ground_truth_does_not_know() -> None:
    (message,) = findings(found(classes=(0, 7)), times=3, known=truth())
    assert message.startswith("3 of 6 detections are of classes")
    assert "such as class 7 (category 8)" in message
    table = ClassMapping("dense", table=(1, 2))
    (message,) = findings(found(classes=(0, 7)), known=truth(), mapping=table)
    assert "such as class 7 (category -1)" in message
    assert findings(found(classes=(0, 7)), times=3) == []


def test_sides_in_another_order() -> None:
    """Read as left, top, right, bottom both boxes of a picture lie on their objects."""
    turned = found([(0.1, 0.1, 0.3, 0.9), (0.6, 0.1, 1.0, 0.3)])
    (message,) = findings(turned, times=5, known=truth())
    assert message.startswith("10 boxes lie on an object if read as left, top, right, bottom, 0 as they are")
    assert findings(turned, times=4, known=truth()) == []
    assert findings(turned, times=5) == []


def test_sides_are_not_doubted_where_most_boxes_fit_as_they_are() -> None:
    turned, straight = found([(0.1, 0.1, 0.3, 0.9), (0.6, 0.1, 1.0, 0.3)]), found()
    assert findings(turned, straight, times=6, known=truth()) == []
    square = found([(0.1, 0.1, 0.9, 0.9)], [0], [0.5])
    assert findings(square, found(scores=(0.8, 0.1)), times=6, known=truth()) == []
