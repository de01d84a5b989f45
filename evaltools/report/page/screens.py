"""What commands show of results on a terminal: the first screen of the page about them, and more if asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.known_tasks import Detail
from evaltools.report.content import First, Page, Part, Sources, bounded_first
from evaltools.report.page.rendering.terminal import show_block, show_page, show_section
from evaltools.report.page.sections.answer import first_of_task, first_screen, warnings_of
from evaltools.report.page.sections.proof import opened_lines
from evaltools.result.device import DeviceList
from evaltools.result.result import Result, Row
from evaltools.result.section import Section

if TYPE_CHECKING:
    from evaltools.result.result import Result

_HINT: Final = "--verbose shows all figures and reasons"


def print_configurations(configurations: list[Row], console: Console) -> None:
    """What each configuration runs on, a line each."""
    show_block(opened_lines(configurations), console)


def print_result(result: Result, console: Console, detail: Detail = "figures") -> None:
    """The answer, the table of all configurations, what is special of some, what to do next; with all detail the page.

    Without reasons why a configuration could not be opened, which :func:`print_configurations` has shown.
    """
    name = Path(result.model.file).stem
    if detail == "all":
        from evaltools.report.page.make import page_of

        page = page_of(Sources({name: result}))
    else:
        part = Part(name, "", _of_devices(result), warnings_of(result))
        page = Page("", (bounded_first(first_of_task({name: result}, {})),), (part,))
    if detail != "answer":
        console.print()
        known = {row.reason for row in result.rows if row.runtime is None}
        (first,) = page.first
        notes = tuple(note for note in first.notes if note.text.removeprefix("not measured: ") not in known)
        page = replace(page, first=(replace(first, notes=notes),))
    show_page(page, console, detail, _HINT)


def _of_devices(result: Result) -> tuple[Section, ...]:
    if result.device_run is None:
        return ()
    from evaltools.report.page.sections.devices import devices

    found = devices(result.device_run)
    return () if found is None else (found,)


def print_models(results: Mapping[str, Result], console: Console) -> None:
    """The answer to several results of a task, and one table over all; what is special was shown with each."""
    show_page(Page("", (First("", first_screen(results).blocks),), ()), console)


def print_rows(result: Result, console: Console, is_quiet: bool = False) -> None:
    """The answer, and what failed; unless ``is_quiet`` all rows, what to do next, and the brief sections."""
    from evaltools.report.page.make import page_of

    page = page_of(Sources(results={result.command: result}))
    if is_quiet:
        (first,) = page.first
        failed = tuple(note for note in first.notes if note.tone in ("bad", "missing"))
        page = Page(page.title, (replace(first, notes=failed, steps=()),), ())
    show_page(page, console, "answer" if is_quiet else "figures")


def print_devices(found: DeviceList, console: Console) -> None:
    """The table, then a line for each device that cannot be used."""
    from evaltools.report.page.sections.devices import connected

    for block in connected(found):
        show_block(block, console)


def print_sections(result: Result, console: Console) -> None:
    """Everything that there is to show of a result."""
    for section in result.blocks:
        show_section(section, console)
