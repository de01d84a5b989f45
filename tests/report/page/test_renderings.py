"""CSV without formulas, and terminals that are narrow."""

from __future__ import annotations

import csv
import io
from typing import Final

import pytest

from evaltools.cli.shared.terminal import make_console
from evaltools.report.content import Page
from evaltools.report.files.rows import csv_of
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.terminal import show_page
from evaltools.report.page.screens import print_configurations, print_result
from evaltools.result.section import Table
from tests.report.page.pages import PAGES
from tests.tasks.inference_diff import results as diff

NARROW: Final = ("imagenet", "coco", "diff", "ranked", "benchmark", "suite", "own", "several")


def on_terminal(page: Page, width: int) -> str:
    text = io.StringIO()
    console = make_console(text)
    console.width = width
    show_page(page, console, "all")
    return text.getvalue()


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+cmd", "-2+3", "\t=1", "\r=1", "\x1b[2J", "a\nb"])
def test_no_cell_of_a_csv_is_a_formula_or_an_escape(name: str) -> None:
    [[heading], [cell]] = csv.reader(io.StringIO(csv_of(Table("", (name,), [(name,)])).decode()))
    assert heading == cell
    assert cell.isprintable()
    assert not cell.startswith(("=", "@", "+", "-"))


@pytest.mark.parametrize("text", ["-1.5", "+3", "-0.5%", "-", "a-b", "'quoted'", "0 = 0"])
def test_what_is_no_formula_stays_in_a_csv(text: str) -> None:
    assert csv_of(Table("", (), [(text,)])) == f"{text}\n".encode()


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("width", [60, 80])
def test_no_number_of_a_table_is_cut_on_a_narrow_terminal(name: str, width: int) -> None:
    lines = on_terminal(page_of(PAGES[name]()), width).splitlines()
    assert not [line for line in lines if "…" in line]


def test_the_screen_of_one_configuration_fits_twenty_lines() -> None:
    made = diff.result(diff.comparison("xnnpack", diff.judged()))
    text = io.StringIO()
    console = make_console(text)
    console.width, console.soft_wrap = 80, False
    print_configurations(made.rows, console)
    print_result(made, console)
    assert len(text.getvalue().splitlines()) <= 20
