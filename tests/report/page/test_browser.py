"""Pages in a real browser, without network: nothing runs that is not ours, all widths fit, all can be reached."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools.report.content import Page, Part, Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.html import html_of
from evaltools.result.section import Cell, Number, Section, Table
from evaltools.tasks.framework.topk_report import Effect, FirstAnswer
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
    """A page with all sections, one of a benchmark, one whose names attack it, one with pictures of every kind."""
    folder = tmp_path_factory.mktemp("pages")
    for number in range(4):
        Image.effect_noise((320, 240), 90).convert("RGB").save(folder / f"{number}.jpg")
    whole = Sources(
        {"whole": timed(), "pictures": classifier(changed(5), str(folder))}, located={"whole": [search(30)]}
    )
    made = {"whole": whole, "benchmark": measured_benchmark(), "hostile": hostile(), "gallery": gallery(folder)}
    files = {name: folder / f"{name}.html" for name in made}
    for name, sources in made.items():
        files[name].write_bytes(html_of(page_of(sources)))
    return files


def gallery(folder: Path) -> Sources:
    """Four pictures, the first lost and a cat, the second gained and a dog, the others wrong both ways, and birds."""
    kinds: list[tuple[Effect, str, float]] = [
        ("lost", "cat", 0.5), ("gained", "dog", 0.75), ("neither", "bird", 0.25), ("neither", "bird", 0.875)
    ]  # fmt: skip
    changes = [
        replace(found, effect=effect, truth=truth, other=FirstAnswer("fish", score))
        for found, (effect, truth, score) in zip(changed(4), kinds, strict=True)
    ]
    return Sources({"r": classifier(changes, str(folder))})


class Opened:
    """A page without network, with what it complained about, asked for, and tried to show."""

    def __init__(self, browser: Any, file: Path, place: str = "", **more: Any) -> None:
        context = browser.new_context(viewport={"width": 1400, "height": 900}, offline=True, **more)
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.requests.append(request.url.partition(",")[0]))
        self.page.goto(f"{file.as_uri()}{place}")

    def _dismiss(self, dialog: Any) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()


EVERY = ("whole", "benchmark", "hostile", "gallery")


@pytest.mark.parametrize("name", EVERY)
def test_nothing_runs_or_is_fetched_that_is_not_the_page(name: str, browser: Any, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages[name])
    assert opened.complaints == []
    others = set(opened.requests) - {pages[name].as_uri()}
    assert others <= {"data:image/jpeg;base64"}


@pytest.mark.parametrize("name", EVERY)
def test_no_page_is_wider_than_the_window(name: str, browser: Any, pages: dict[str, Path]) -> None:
    page = Opened(browser, pages[name]).page
    for width in (380, 800, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", EVERY)
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


def test_the_keyboard_reaches_links_copies_commands_and_sorts_tables(browser: Any, pages: dict[str, Path]) -> None:
    page = Opened(browser, pages["whole"]).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the answers"
    command = page.locator(".steps code")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == command.text_content()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.context.grant_permissions(["clipboard-read"])
    assert page.evaluate("navigator.clipboard.readText()") == command.text_content()
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
    assert page.locator("thead button, .tools, dialog").count() == 0
    page.locator("summary").first.press("Enter")
    assert page.locator("details[open]").count() == 1
    page.emulate_media(media="print")
    assert page.pdf().startswith(b"%PDF")


def shown(page: Any) -> list[str]:
    """The names of the pictures that are shown, in their order."""
    names: list[str] = page.locator(".picture:visible a.name").all_inner_texts()
    return names


def test_pictures_are_filtered_and_sorted_by_the_keyboard(browser: Any, pages: dict[str, Path]) -> None:
    page = Opened(browser, pages["gallery"]).page
    assert shown(page) == ["0.jpg", "1.jpg", "2.jpg", "3.jpg"]
    page.get_by_role("button", name="wrong both ways 2").press("Enter")
    assert shown(page) == ["2.jpg", "3.jpg"]
    assert page.get_by_role("button", pressed=True).all_inner_texts() == ["wrong both ways 2"]
    assert page.get_by_role("status").inner_text() == "2 of 4 shown"
    page.get_by_role("button", name="all 4").press("Space")
    orders = page.get_by_label("Order", exact=True)
    assert orders.locator("option").all_inner_texts()[1:3] == ["by class", "by score, highest first"]
    orders.press("ArrowDown")
    assert shown(page) == ["2.jpg", "3.jpg", "0.jpg", "1.jpg"]
    orders.press("ArrowDown")
    assert shown(page) == ["3.jpg", "1.jpg", "0.jpg", "2.jpg"]
    classes = page.get_by_label("Class", exact=True)
    assert classes.locator("option").all_inner_texts() == ["every class", "bird", "cat", "dog"]
    classes.press("ArrowDown")
    assert shown(page) == ["3.jpg", "2.jpg"]


def test_an_example_has_an_address_that_opens_it_and_follows_what_is_opened(
    browser: Any, pages: dict[str, Path]
) -> None:
    page = Opened(browser, pages["gallery"], "#example=1.jpg").page
    viewer = page.get_by_role("dialog")
    assert "right: dog" in viewer.inner_text()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash === '#example=2.jpg'")
    assert "right: bird" in viewer.inner_text()
    page.keyboard.press("Escape")
    page.wait_for_function("!location.hash && document.activeElement.textContent === '2.jpg'")
    assert viewer.count() == 0
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('dialog').open && location.hash === '#example=1.jpg'")


def test_an_open_example_has_no_fault_by_axe_and_skips_what_is_filtered_out(
    browser: Any, pages: dict[str, Path]
) -> None:
    page = Opened(browser, pages["gallery"], bypass_csp=True).page
    page.get_by_role("button", name="wrong both ways 2").click()
    page.get_by_role("link", name="3.jpg").click()
    page.get_by_role("button", name="Next").click()
    page.wait_for_function("location.hash === '#example=2.jpg'")
    assert faults_by_axe(page) == []
