"""Pages in a real browser, without network: nothing runs that is not ours, all widths fit, all can be reached."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evaltools.report.content import Page, Part, Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.html import html_of
from evaltools.result.section import Cell, Number, Section, Table
from tests.expected import leave_out
from tests.report.page.pages import measured_benchmark, timed
from tests.report.page.samples import changed, classifier, search
from tests.report.page.test_page import hostile

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    programs = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    chromium = next(filter(None, programs), None)
    if chromium is None:
        leave_out("BROWSER", "there is no Chromium on the PATH, as apt-get install chromium brings")
    if not find_spec("playwright") or not find_spec("axe_playwright_python"):
        leave_out("BROWSER", "what drives a browser is not installed: pip install 'evaltools[browser]'")
    with import_module("playwright.sync_api").sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page with all sections, one of a benchmark, one whose names attack it."""
    folder = tmp_path_factory.mktemp("pages")
    for number in range(4):
        Image.effect_noise((320, 240), 90).convert("RGB").save(folder / f"{number}.jpg")
    whole = Sources(
        {"whole": timed(), "pictures": classifier(changed(5), str(folder))}, located={"whole": [search(30)]}
    )
    made = {"whole": whole, "benchmark": measured_benchmark(), "hostile": hostile()}
    files = {name: folder / f"{name}.html" for name in made}
    for name, sources in made.items():
        files[name].write_bytes(html_of(page_of(sources)))
    return files


class Opened:
    """A page without network, with what it complained about, asked for, and tried to show."""

    def __init__(self, browser: Any, file: Path, **more: Any) -> None:
        context = browser.new_context(viewport={"width": 1400, "height": 900}, offline=True, **more)
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.requests.append(request.url.partition(",")[0]))
        self.page.goto(file.as_uri())

    def _dismiss(self, dialog: Any) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()


@pytest.mark.parametrize("name", ["whole", "benchmark", "hostile"])
def test_nothing_runs_or_is_fetched_that_is_not_the_page(name: str, browser: Any, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages[name])
    assert opened.complaints == []
    others = set(opened.requests) - {pages[name].as_uri()}
    assert others <= {"data:image/jpeg;base64"}


@pytest.mark.parametrize("name", ["whole", "benchmark", "hostile"])
def test_no_page_is_wider_than_the_window(name: str, browser: Any, pages: dict[str, Path]) -> None:
    page = Opened(browser, pages[name]).page
    for width in (380, 800, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["whole", "benchmark", "hostile"])
def test_axe_finds_no_fault(name: str, browser: Any, pages: dict[str, Path]) -> None:
    """In a dark scheme nothing but the colours is another."""
    page = Opened(browser, pages[name], bypass_csp=True).page
    assert faults_by_axe(page) == []
    page.emulate_media(color_scheme="dark")
    assert faults_by_axe(page, runOnly=["color-contrast"]) == []


def faults_by_axe(page: Any, **options: Any) -> list[tuple[str, str, str]]:
    axe = import_module("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [(fault["impact"], fault["id"], fault["nodes"][0]["html"][:200]) for fault in found]


def test_the_keyboard_reaches_links_and_sorts_tables(browser: Any, pages: dict[str, Path]) -> None:
    page = Opened(browser, pages["whole"]).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the answers"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "All configurations"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('thead') !== null")
    head = page.locator("table.sorts thead button", has_text="figure").first
    column = "b => [...b.closest('table').tBodies[0].rows].map(r => r.cells[b.closest('th').cellIndex].textContent)"
    head.focus()
    page.keyboard.press("Enter")
    ascending = head.evaluate(column)
    page.keyboard.press("Enter")
    assert head.evaluate(column) == ascending[::-1]
    assert page.evaluate("document.querySelector('[aria-sort]').getAttribute('aria-sort')") == "descending"


def test_columns_are_sorted_by_numbers_then_texts_and_empty_cells_stay_last(browser: Any, tmp_path: Path) -> None:
    cells: list[Cell] = ["10", "-", "Infinity", Number("0.5 ms", 9.0), "2 of 9", ""]
    table = Table("mixed", ("name", "figure"), [(str(place), cell) for place, cell in enumerate(cells)])
    file = tmp_path / "mixed.html"
    file.write_bytes(html_of(Page("t", (), (Part("r", "mixed", (Section("Mixed", [table]),)),))))
    head = Opened(browser, file).page.locator("table.sorts thead button", has_text="figure").first
    column = "tr => [...tr.closest('table').tBodies[0].rows].map(row => row.cells[1].textContent)"
    head.click()
    assert head.evaluate(column) == ["0.5 ms", "10", "2 of 9", "Infinity", "-", ""]
    head.click()
    assert head.evaluate(column) == ["Infinity", "2 of 9", "10", "0.5 ms", "-", ""]


def test_without_scripts_the_page_is_whole_and_prints(browser: Any, pages: dict[str, Path]) -> None:
    page = Opened(browser, pages["whole"], java_script_enabled=False).page
    assert page.locator("svg[role=img]").count() > 8
    assert page.locator("thead button").count() == 0
    page.emulate_media(media="print")
    assert page.pdf().startswith(b"%PDF")
