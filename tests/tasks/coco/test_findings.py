"""Signs that outputs are not what they are taken for: each kind where it belongs, none on a healthy set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.datasets.native_ground_truth import NativePicture
from evaltools.datasets.object_annotations import AnnotatedImage, Category
from evaltools.tasks.coco.classes import ClassMapping
from evaltools.tasks.coco.objects import FoundObjects
from evaltools.tasks.coco.truth import Truth
from evaltools.tasks.coco.warnings import findings_of
from tests.tasks.coco.results import TRUTH

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
        used=TRUTH,
        categories=(Category(1, "a"), Category(2, "b")),
        images=(AnnotatedImage(1, "x", 10, 10, ()),) * pictures,
        native=(native,) * pictures,
        missing=(),
    )


def findings(
    *objects: FoundObjects, known: Truth | None = None, mapping: ClassMapping = PLUS_ONE, times: int = 1
) -> list[str]:
    return findings_of(dict(enumerate(objects * times)), known, mapping)


NOTHING = found([], [], [])
TURNED = found([(0.1, 0.1, 0.3, 0.9), (0.6, 0.1, 1.0, 0.3)])
"""Read as left, top, right, bottom both boxes of a picture lie on their objects."""
HALF, ONE_CLASS, TWO_OF_ONE = (
    found(scores=(0.5, 0.5)),
    replace(truth(), categories=(Category(2, "b"),)),
    found(classes=(1, 1)),
)
UPSIDE_DOWN, MIRRORED = (0.9, 0.1, 0.1, 0.3), (0.1, 0.9, 0.3, 0.6)


@pytest.mark.parametrize(
    ("objects", "options"),
    [
        ([], {}),
        ([found()], {"times": 12, "known": truth()}),
        ([found()], {"times": 12}),
        ([found([(-0.4, -0.1, 1.4, 1.1), (0.9, 0.9, 1.5, 1.5)])], {}),
        ([NOTHING, found()], {}),
        ([found(scores=(0, 1))], {}),
        ([HALF], {"times": 9}),
        ([HALF, found(scores=(0.5, 0.25))], {"times": 9}),
        ([TWO_OF_ONE], {"times": 9, "known": truth()}),
        ([TWO_OF_ONE], {"times": 10}),
        ([TWO_OF_ONE], {"times": 10, "known": ONE_CLASS}),
        ([found(classes=(0, 7))], {"times": 3}),
        ([TURNED], {"times": 4, "known": truth()}),
        ([TURNED], {"times": 5}),
        ([TURNED, found()], {"times": 6, "known": truth()}),
        ([found([(*LEFT[:2], 0.9, 0.9)], [0], [0.5]), found(scores=(0.8, 0.1))], {"times": 6, "known": truth()}),
    ],
)
def test_nothing_is_found_where_all_is_well_or_too_little_is_seen(
    objects: list[FoundObjects], options: dict[str, Any]
) -> None:
    assert findings(*objects, **options) == []


@pytest.mark.parametrize(
    ("objects", "options", "expected"),
    [
        ([NOTHING], {"times": 3}, ["nothing was found in 3 pictures"]),
        ([found(nonfinite=2), found(nonfinite=1)], {}, ["3 detections have a NaN"]),
        (
            [found([], [], [], nonfinite=4)],
            {},
            ["4 detections have a NaN", "nothing was found in 1 pictures"],
        ),
        (
            [found(stated=11.0), found(stated=25.0), found(stated=10.0)],
            {},
            ["the count is larger than the outputs in 2 pictures (up to 25, with room for 10); it was cut"],
        ),
        ([found(stated=-1.0), found()], {}, ["the count is not a whole number from 0 on in 1 pictures, such as -1"]),
        ([found(stated=2.5), found()], {}, ["the count is not a whole number from 0 on in 1 pictures, such as 2.5"]),
        ([found(stated=np.nan), found()], {}, ["the count is not a whole number from 0 on in 1 pictures, such as nan"]),
        ([found(fractional=2), found(fractional=1)], {}, ["3 classes are no whole numbers"]),
        ([found(scores=(-1.5, 3))], {}, ["scores go from -1.5 to 3, not 0..1"]),
        ([HALF], {"times": 10}, ["all 20 detections have the same score, 0.5"]),
        (
            [found([(10, 20, 300, 200), (0.1, 0.1, 0.9, 0.9)])],
            {},
            [
                "1 of 2 boxes reach more than half a picture beyond it (a side at 300",
                "1 of 2 boxes lie outside the picture",
            ],
        ),
        ([found([(0.9, 0.9, 1.51, 1.5), (-0.5, 0, 1, 1)])], {}, ["1 of 2 boxes reach more than half a picture"]),
        ([found([UPSIDE_DOWN, MIRRORED])], {}, ["2 of 2 boxes end before they begin"]),
        ([found([(1.2, 0.1, 1.1, 0.3), RIGHT])], {}, ["1 of 2 boxes end before they begin"]),
        (
            [found([(-0.3, 0.1, 0.0, 0.3), (0.1, 1.0, 0.2, 1.2)]), found()],
            {},
            ["2 of 4 boxes lie outside the picture"],
        ),
        ([TWO_OF_ONE], {"times": 10, "known": truth()}, ["all 20 detections are of class 1"]),
        (
            [TURNED],
            {"times": 5, "known": truth()},
            ["10 boxes lie on an object if read as left, top, right, bottom, 0 as they are"],
        ),
    ],
)
def test_each_sign_of_trouble_is_told(
    objects: list[FoundObjects], options: dict[str, Any], expected: list[str]
) -> None:
    told = findings(*objects, **options)
    assert [message[: len(start)] for message, start in zip(told, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("mapping", "category"), [(PLUS_ONE, 8), (ClassMapping("dense", table=(1, 2)), -1)], ids=["+1", "dense"]
)
def test_classes_that_the_ground_truth_does_not_know(mapping: ClassMapping, category: int) -> None:
    (message,) = findings(found(classes=(0, 7)), times=3, known=truth(), mapping=mapping)
    assert message.startswith("3 of 6 detections are of classes")
    assert f"such as class 7 (category {category})" in message
