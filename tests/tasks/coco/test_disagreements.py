"""The pictures that differ most: which, in which order, and with which boxes on the page."""

from __future__ import annotations

import pytest

from evaltools.metrics.boxes import Detection
from evaltools.result.section import Gallery
from evaltools.tasks.coco.page import Disagreement, disagreements, sections
from evaltools.tasks.coco.result import DetectedPicture
from tests.tasks.coco.results import LEFT, RIGHT, detection_result, picture

SAME = [Detection(1, 0.9, LEFT)]
SHIFTED = [Detection(1, 0.8, LEFT)]
OTHER_CLASS = [Detection(2, 0.9, LEFT)]
TWO = [Detection(1, 0.9, LEFT), Detection(2, 0.8, RIGHT)]


def worst(*pictures: DetectedPicture, names: tuple[str, ...] = ("r", "t")) -> list[Disagreement]:
    coco = detection_result(*names, pictures=list(pictures)).part
    return [found for comparison in coco.comparisons[:2] for found in disagreements(coco, comparison)]


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
    changed = sections(detection_result("r", "t", pictures=pictures))[-1]
    (gallery,) = changed.blocks
    assert isinstance(gallery, Gallery)
    assert len(gallery.pictures) == 16
    assert gallery.below == "16 of 18 pictures shown; --record_examples=true keeps all in the JSON result"
    assert [frame.tone for frame in gallery.pictures[0].frames] == ["bad", ""]
    (new,) = sections(detection_result("r", "t", pictures=[picture("new", r=SAME, t=TWO)]))[-1].blocks
    assert isinstance(new, Gallery)
    assert (new.pictures[0].tone, new.below) == ("", "")
