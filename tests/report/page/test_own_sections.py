"""Sections of a task from outside, which may be anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from evaltools.errors import UsageError
from evaltools.report.content import Page, Part
from evaltools.report.page.rendering.html import html_of
from evaltools.report.page.rendering.markdown import markdown_of
from evaltools.report.page.sections.first import own_sections
from evaltools.result.section import Lines, Number, Section, Table
from tests.report.page.reading import PageRead
from tests.report.page.samples import classifier


def task(sections: Any) -> Any:
    return SimpleNamespace(name="outside", report=SimpleNamespace(sections=sections))


def test_cells_of_any_type_and_short_rows_are_shown() -> None:
    rows: Any = [["a", 1.5, None], ["b"], ["c", Number(3, 3.0)]]  # type: ignore[arg-type]
    place: Any = "nowhere"
    given = Section("Own", [Table("own", ("name", "figure"), rows)], place)
    (found,) = own_sections(task(lambda _: [given]), classifier())
    assert found.place == "task"
    (table,) = found.blocks
    assert isinstance(table, Table)
    assert table.rows == [["a", "1.5", "None"], ["b", "", ""], ["c", Number("3", 3.0), ""]]
    page = Page("t", (), (Part("r", "own", (found,)),))
    assert "1.5" in [cell.text for cell in PageRead(html_of(page)).all("td")]
    assert markdown_of(page)


def test_sections_without_blocks_and_reports_without_sections_show_nothing() -> None:
    assert own_sections(task(lambda _: [Section("empty", [])]), classifier()) == []
    bare: Any = SimpleNamespace(name="outside", report=SimpleNamespace())
    assert own_sections(bare, classifier()) == []


@pytest.mark.parametrize(
    "sections",
    [lambda _: 1 / 0, lambda _: None, lambda _: ["text"], lambda _: [Section("own", ["text"])]],  # type: ignore[list-item]
)
def test_what_is_no_section_is_an_error_that_names_the_task(sections: Any) -> None:
    with pytest.raises(UsageError, match="task 'outside': the sections of its report cannot be shown"):
        own_sections(task(sections), classifier())


def test_lines_are_kept() -> None:
    given = Section("Own", [Lines(["one"])], "accuracy")
    assert own_sections(task(lambda _: [given]), classifier()) == [given]
