"""What changed: listed, and drawn."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools.cli.shared.terminal import make_console
from evaltools.errors import ImageError
from evaltools.metrics.agreement import Agreement
from evaltools.report.tables.evaluation import print_result
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.model import Model, Tensor
from evaltools.result.section import Gallery
from evaltools.task_kind import Detail
from evaltools.tasks.imagenet.changes import worst_first
from evaltools.tasks.imagenet.disagreements import draw_changes
from evaltools.tasks.imagenet.page import sections
from evaltools.tasks.imagenet.result import ChangedAnswer, Comparison, FirstAnswer
from evaltools.tasks.shared.contact_sheet import write_sheet
from tests.results import configuration, result, with_part

CAT, DOG, OWL = FirstAnswer("cat, tabby", 0.75), FirstAnswer("dog", 0.5), FirstAnswer("owl", None)
CHANGED = [
    ChangedAnswer("1.png", "owl", CAT, DOG, "neither", tie=False),
    ChangedAnswer("2.png", "dog", CAT, DOG, "gained", tie=False),
    ChangedAnswer("3.png", "cat, tabby", replace(CAT, equal="dog"), DOG, "lost", tie=True),
    ChangedAnswer("4.png", "cat, tabby", CAT, OWL, "lost", tie=False),
]


def made(changed: list[ChangedAnswer], count: int = 50) -> EvaluationResult:
    compared = Comparison("reference", "a", Agreement(count, count - len(changed), 2, 1), changed=changed, ties=1)
    plain = result(configuration("reference", "reference"), configuration("a"))
    tensor = Tensor("input", "float32", [1, 8, 8, 3], 0.0, 0)
    return with_part(replace(plain, model=Model("m", "00", 1, 1, [tensor], [])), comparisons=[compared])


def printed(detail: Detail) -> list[str]:
    text = io.StringIO()
    print_result(made(CHANGED), make_console(text), detail)
    return [line for line in text.getvalue().splitlines() if line.startswith("a: ") and "not decided" not in line]


def grey(_name: str) -> npt.NDArray[np.uint8]:
    return np.full((300, 600, 3), 128, np.uint8)


def test_what_is_lost_comes_first_and_ties_come_last() -> None:
    (comparison,) = made(CHANGED).part.comparisons
    assert [found.example for found in worst_first(comparison)] == ["4.png", "3.png", "2.png", "1.png"]


def test_the_pictures_are_listed_where_all_is_asked_for() -> None:
    counts = "a: 4 of 50 changed: 2 lost, 1 gained, 1 wrong both ways; 1 is an exact tie"
    assert printed("figures") == [f"{counts}; --verbose lists them"]
    assert printed("all") == [
        counts,
        "a: 4.png lost: was cat, tabby 0.75, now owl no number; right: cat, tabby",
        "a: 3.png lost, a tie: was cat, tabby 0.75 = dog 0.75, now dog 0.50; right: cat, tabby",
        "a: 2.png gained: was cat, tabby 0.75, now dog 0.50; right: dog",
        "a: 1.png wrong both ways: was cat, tabby 0.75, now dog 0.50; right: owl",
    ]
    assert printed("answer") == []


def gallery(changed: list[ChangedAnswer]) -> Gallery:
    (found,) = [section for section in sections(made(changed)) if section.place == "changes"]
    (block,) = found.blocks
    assert isinstance(block, Gallery)
    return block


def test_a_page_has_a_gallery_of_them_the_worst_first() -> None:
    found = gallery(CHANGED)
    assert found.caption == "4 pictures with another first answer: a"
    first = found.pictures[0]
    assert (first.folder, first.name, first.effect, first.tone) == ("d", "4.png", "lost", "bad")
    assert first.lines == ("right: cat, tabby", "reference: cat, tabby 0.75", "a: owl no number")
    assert [picture.tone for picture in found.pictures] == ["bad", "bad", "good", ""]
    assert found.below == ""
    cut = gallery(CHANGED * 7)
    assert (len(cut.pictures), cut.below) == (24, "24 of 28 pictures shown, all in the JSON result")
    (none,) = [section for section in sections(made([])) if section.place == "changes"]
    assert none.blocks == []


@pytest.mark.parametrize(("count", "columns", "rows"), [(1, 1, 1), (4, 4, 1), (5, 4, 2), (40, 4, 6)])
def test_a_panel_for_each_up_to_24(count: int, columns: int, rows: int) -> None:
    picture = draw_changes(made((CHANGED * 10)[:count]), grey)
    assert picture is not None
    with Image.open(io.BytesIO(picture)) as opened:
        assert opened.size == (columns * 248 + 8, rows * 252 + 8)
        assert opened.getpixel((8, 8)) == (128, 128, 128)


def test_a_sheet_is_written_unless_there_is_nothing_to_draw_or_a_picture_is_gone(tmp_path: Path) -> None:
    sheet, text = tmp_path / "sheet.png", io.StringIO()
    for name in ("1.png", "2.png", "3.png"):
        Image.new("RGB", (20, 10)).save(tmp_path / name)

    def write(changed: list[ChangedAnswer]) -> list[str]:
        found = write_sheet(draw_changes, made(changed), sheet, tmp_path, make_console(text), "no answer changed")
        return [str(error) for error in found]

    assert write([]) == []
    assert text.getvalue() == f"{sheet} is not written: no answer changed\n"
    assert write(CHANGED) == [
        f"{sheet} is not written: a picture cannot be read a second time (4.png is no longer there)"
    ]
    assert not sheet.exists()
    assert write(CHANGED[:3]) == []
    with Image.open(sheet) as opened:
        assert opened.format == "PNG"


def test_a_picture_that_cannot_be_read_stops_the_drawing() -> None:
    def unreadable(_name: str) -> npt.NDArray[np.uint8]:
        raise ImageError("is gone")

    with pytest.raises(ImageError, match="is gone"):
        draw_changes(made(CHANGED), unreadable)
