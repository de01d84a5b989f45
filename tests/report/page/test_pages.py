"""A page says what the JSON results say, in the order of questions, and nothing of what these lack."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator

import pytest

from evaltools.cli.shared.terminal import make_console
from evaltools.report.content import Page
from evaltools.report.files.rows import csv_of
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.markdown import markdown_of
from evaltools.report.page.rendering.terminal import show_page
from evaltools.result.section import Block, Number, Table
from tests.report.page.pages import FOLDER, KEPT, PAGES, kept, page_read, shown
from tests.report.page.reading import at

FEWEST = {"classifier": 30, "imagenet": 30, "diff": 15, "coco": 40, "searches": 20, "slashes": 50, "benchmark": 20}
"""How many figures of the result are on a page, at least."""


@pytest.mark.parametrize("name", KEPT)
def test_the_page_is_the_kept_one(name: str) -> None:
    """``python -m tests.report.page.pages`` writes them anew."""
    assert shown(name) == kept(name).read_text()


def test_no_page_is_left_behind() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {kept(name).name for name in KEPT}


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_on_the_page_is_that_of_the_result_it_offers(name: str) -> None:
    page = page_read(name)
    found = page.figures_by_source
    assert found.keys() <= page.results_by_name.keys()
    for source, figures in found.items():
        assert figures == {path: at(page.results_by_name[source], path) for path in figures}
    assert sum(map(len, found.values())) >= FEWEST.get(name, 0)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_can_be_read_without_seeing_it(name: str) -> None:
    """Headings skip no level, charts say their figures, tables have captions, links within the page lead somewhere."""
    page = page_read(name)
    assert page.source.lstrip().startswith("<!doctype html>")
    assert page.all("html")[0].attributes == {"lang": "en"}
    assert page.all("title")[0].text == page.all("h1")[0].text
    levels = [int(each.tag[1]) for each in page.elements if re.fullmatch("h[1-6]", each.tag)]
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(levels))
    charts = [each.attributes for each in page.all("svg") if "aria-hidden" not in each.attributes]
    texts = [each.text for tag in ("p", "li") for each in page.all(tag) if "figure" in each.inside]
    assert [chart["role"] for chart in charts] == ["img"] * len(charts)
    labels = [chart["aria-label"] for chart in charts]
    assert [label for label in labels if not re.search(r"\d", label)] == []
    assert [text for text in texts if not any(text in label for label in labels)] == []
    assert len(page.all("caption")) == len(page.all("table"))
    ids = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    links = [each.attributes["href"] for each in page.all("a")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert page.left_open == []


def tables(page: Page) -> Iterator[Table]:
    blocks: list[Block] = [block for first in page.first for block in first.blocks]
    blocks += [block for part in page.parts for section in part.sections for block in section.blocks]
    yield from (block.compact for block in blocks if isinstance(block, Table))


def numbers(table: Table) -> list[Number]:
    return [cell for row in table.rows for cell in row if isinstance(cell, Number)]


def on_terminal(page: Page) -> str:
    text = io.StringIO()
    console = make_console(text)
    console.width = 1000
    show_page(page, console, "all")
    return " ".join(text.getvalue().split())


@pytest.mark.parametrize("name", ["imagenet", "coco", "diff", "ranked", "benchmark", "suite", "own", "several"])
def test_every_number_is_the_same_in_all_renderings(name: str) -> None:
    """Terminal, Markdown, CSV and HTML show the same blocks."""
    page = page_of(PAGES[name]())
    terminal, markdown = on_terminal(page), " ".join(markdown_of(page).decode().split())
    cells = [cell.text for cell in page_read(name).all("td")]
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
