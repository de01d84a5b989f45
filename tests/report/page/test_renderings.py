"""Terminal, Markdown, CSV and HTML show the same numbers of the same blocks."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pytest
from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.report.content import Page, Sources
from evaltools.report.files.rows import csv_of
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.html import html_of
from evaltools.report.page.rendering.markdown import markdown_of
from evaltools.report.page.rendering.terminal import show_page
from evaltools.report.page.screens import print_configurations, print_result
from evaltools.result.result import Row
from evaltools.result.section import Block, Number, Table
from tests.report.page.pages import PAGES, timed
from tests.report.page.reading import PageRead
from tests.report.page.samples import stored
from tests.tasks.inference_diff import results as diff

WIDE: Final = 1000


def three_configurations() -> Sources:
    made = timed()
    reference, test = made.rows
    others: list[Row] = [replace(test, name=name) for name in ("xnnpack", "gpu", "npu")]
    return Sources({"r": replace(made, rows=[reference, *others])})


KINDS: Final[Mapping[str, Callable[[], Sources]]] = {
    "imagenet": three_configurations,
    "coco": lambda: Sources({"r": stored("coco")}),
    "diff": lambda: Sources({"r": stored("inference_diff")}),
    "two models": PAGES["ranked"],
    "benchmark": PAGES["benchmark"],
    "suite": PAGES["suite"],
    "own task": PAGES["own"],
    "gates and others": PAGES["several"],
}


def tables(page: Page) -> Iterator[Table]:
    blocks: list[Block] = [block for first in page.first for block in first.blocks]
    blocks += [block for part in page.parts for section in part.sections for block in section.blocks]
    yield from (block.compact for block in blocks if isinstance(block, Table))


def numbers(table: Table) -> list[Number]:
    return [cell for row in table.rows for cell in row if isinstance(cell, Number)]


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def on_terminal(page: Page, width: int = WIDE) -> str:
    text = io.StringIO()
    console = make_console(text)
    console.width = width
    show_page(page, console, "all")
    return text.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_the_same_in_all_renderings(kind: str) -> None:
    page = page_of(KINDS[kind]())
    terminal, markdown = words(on_terminal(page)), words(markdown_of(page).decode())
    cells = [cell.text for cell in PageRead(html_of(page)).all("td")]
    assert list(tables(page))
    for table in tables(page):
        for number in numbers(table):
            assert number.text in terminal
            assert number.text in cells or number in [row[0] for row in table.rows]
        lines = list(csv.reader(io.StringIO(csv_of(table).decode())))
        assert not table.columns or lines[0] == list(table.columns)
        for line, row in zip(lines[bool(table.columns) :], table.rows, strict=True):
            for text, cell in zip(line, row, strict=True):
                if isinstance(cell, Number) and cell.value is not None:
                    assert float(text) == pytest.approx(cell.value, nan_ok=True)
    for first in page.first:
        for block in first.blocks:
            if isinstance(block, Table):
                assert all(number.text.replace("[", "\\[").replace("]", "\\]") in markdown for number in numbers(block))


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+cmd", "-2+3", "\t=1", "\r=1", "\x1b[2J", "a\nb"])
def test_no_cell_of_a_csv_is_a_formula_or_an_escape(name: str) -> None:
    [[heading], [cell]] = csv.reader(io.StringIO(csv_of(Table("", (name,), [(name,)])).decode()))
    assert heading == cell
    assert cell.isprintable()
    assert not cell.startswith(("=", "@", "+", "-"))


@pytest.mark.parametrize("text", ["-1.5", "+3", "-0.5%", "-", "a-b", "'quoted'", "0 = 0"])
def test_what_is_no_formula_stays_in_a_csv(text: str) -> None:
    assert csv_of(Table("", (), [(text,)])) == f"{text}\n".encode()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [60, 80])
def test_no_number_of_a_table_is_cut_on_a_narrow_terminal(kind: str, width: int) -> None:
    lines = on_terminal(page_of(KINDS[kind]()), width).splitlines()
    assert not [line for line in lines if "…" in line]


def test_the_screen_of_one_configuration_fits_twenty_lines() -> None:
    made = diff.result(diff.comparison("xnnpack", diff.judged()))
    text = io.StringIO()
    console = make_console(text)
    console.width, console.soft_wrap = 80, False
    print_configurations(made.rows, console)
    print_result(made, console)
    assert len(text.getvalue().splitlines()) <= 20
