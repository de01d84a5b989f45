"""The picture of the worst disagreements: which pictures are in it, in which order, and what is drawn where."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools.metrics.boxes import Detection
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Gallery
from evaltools.tasks.coco.disagreements import Disagreement, draw_disagreements, worst_disagreements
from evaltools.tasks.coco.page import sections
from evaltools.tasks.coco.result import DetectedPicture
from tests.tasks.coco.results import LEFT, RIGHT, detection_result, picture, with_data

PANEL_WIDTH, PANEL_HEIGHT, MARGIN, TEXT = 320, 240, 8, 32
SAME = [Detection(1, 0.9, LEFT)]
SHIFTED = [Detection(1, 0.8, LEFT)]
OTHER_CLASS = [Detection(2, 0.9, LEFT)]
TWO = [Detection(1, 0.9, LEFT), Detection(2, 0.8, RIGHT)]


def worst(*pictures: DetectedPicture, names: tuple[str, ...] = ("r", "t")) -> list[Disagreement]:
    return worst_disagreements(detection_result(*names, pictures=list(pictures)).part)


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
    assert sorted(named(rows)[2:]) == [("lost", "t", 1), ("new", "t", 1)]


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


def test_each_test_has_four_pictures_of_those_that_both_finished() -> None:
    pictures = [picture(f"{number}", r=SAME, a=[], b=TWO) for number in range(6)]
    pictures += [picture("half", r=[], a=TWO + TWO)]
    rows = worst(*pictures, names=("r", "a", "b"))
    assert [row.other for row in rows] == ["a"] * 4 + ["b"] * 4
    assert rows[0].picture.example == "half"
    assert worst(names=("r", "a", "b")) == []


def drawn(made: EvaluationResult, width: int = 40, height: int = 20) -> tuple[npt.NDArray[np.uint8] | None, list[str]]:
    """The picture and the names of the pictures that were read."""
    loaded: list[str] = []

    def load(name: str) -> npt.NDArray[np.uint8]:
        loaded.append(name)
        return np.zeros((height, width, 3), np.uint8)

    content = draw_disagreements(made, load)
    if content is None:
        return None, loaded
    image = Image.open(io.BytesIO(content))
    assert image.format == "PNG"
    return np.asarray(image.convert("RGB")), loaded


def test_there_is_no_picture_without_a_difference_or_a_comparison() -> None:
    assert drawn(detection_result("r", "t", pictures=[picture(r=SAME, t=SAME)])) == (None, [])
    assert drawn(detection_result("r", "t")) == (None, [])
    made = detection_result("r", "t", pictures=[picture(r=SAME, t=[])])
    assert drawn(replace(made, part=replace(made.part, comparisons=[]))) == (None, [])


def test_a_row_has_truth_reference_and_test_side_by_side() -> None:
    """A picture of 40x20 pixels is drawn with 320x160; a lonely box has a thick frame."""
    rows = [picture("one.png", r=SAME, t=[Detection(2, 0.9, RIGHT)]), picture("two.png", r=SAME, t=[])]
    pixels, loaded = drawn(detection_result("r", "t", pictures=rows))
    assert pixels is not None
    assert loaded == ["one.png", "two.png"]
    row = TEXT + PANEL_HEIGHT + MARGIN
    assert pixels.shape == (2 * row + MARGIN, 3 * PANEL_WIDTH + 4 * MARGIN, 3)
    panels = [
        pixels[MARGIN + TEXT : MARGIN + TEXT + 160, MARGIN + column * (PANEL_WIDTH + MARGIN) :][:, :PANEL_WIDTH]
        for column in range(3)
    ]
    first, second = (0x3C, 0xB4, 0x4B), (0xFF, 0xE1, 0x19)
    middle = 80
    frames = [
        [column for column in range(PANEL_WIDTH) if tuple(panel[middle, column]) in (first, second)] for panel in panels
    ]
    assert frames[0] == [0, 159]
    assert frames[1] == [0, 1, 2, 3, 156, 157, 158, 159]
    assert frames[2] == [159, 160, 161, 162, 316, 317, 318, 319]
    assert [tuple(panel[middle, frame[0]]) for panel, frame in zip(panels, frames, strict=True)] == [
        first,
        first,
        second,
    ]
    assert (pixels[MARGIN + TEXT + 160 : MARGIN + TEXT + 240] == 255).all(), "the rest of the panel stays white"


def test_names_with_line_breaks_are_drawn_in_one_line() -> None:
    row = picture("one\ntwo.png", r=[Detection(2, 0.9, RIGHT)], t=[])
    made = with_data(detection_result("r", "t", pictures=[row]), category_names={1: "a\nb", 2: "c\x1b[31m"})
    assert drawn(made)[0] is not None


@pytest.mark.parametrize(("width", "height"), [(1, 900), (900, 1), (3, 2), (1000, 1000)])
def test_pictures_of_every_size_and_boxes_of_every_kind_are_drawn(width: int, height: int) -> None:
    odd = [
        Detection(-1, 0.9, (0.9, 0.9, 0.1, 0.1)),
        Detection(10**9, 1e30, (-50.0, -50.0, 99.0, 99.0)),
        Detection(3, 0.5, (0.5, 0.5, 0.5, 0.5)),
    ]
    pixels, _ = drawn(
        detection_result("r", "name " * 12, pictures=[picture("\udcff.png", **{"r": odd, "name " * 12: []})]),
        width,
        height,
    )
    assert pixels is not None
    assert pixels.shape == (TEXT + PANEL_HEIGHT + 2 * MARGIN, 3 * PANEL_WIDTH + 4 * MARGIN, 3)


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
