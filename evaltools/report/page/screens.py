"""What commands show of results on a terminal: the first screen of the page about them, and more if asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.known_tasks import Detail
from evaltools.report.content import First, Page, Part, Sources, bounded, bounded_first, merged
from evaltools.report.page.rendering.terminal import show_block, show_page, show_section
from evaltools.report.screen.first import first_screen, warnings_of
from evaltools.report.words.facts import describe_configuration
from evaltools.result.device import DeviceList
from evaltools.result.result import Result, Row
from evaltools.result.section import Lines, Note, Section, Sentence, Table, Tone

_HINT: Final = "--verbose shows all figures and reasons"


def print_configurations(configurations: list[Row], console: Console) -> None:
    """What each configuration runs on or why it cannot, a line each; those with the same text share one."""
    notes = []
    for entry in configurations:
        tone: Tone = "bad" if entry.fallback else "missing" if entry.status != "measured" else ""
        notes.append(Note(entry.name, describe_configuration(entry), tone))
    show_block(Lines(merged(notes)), console)


def print_result(result: Result, console: Console, detail: Detail = "figures") -> None:
    """The answer, the table, what is special of some rows, what to do next, brief sections; with all detail the page.

    The answer alone is that of an evaluation with all remarks, of a benchmark with what failed. Of an evaluation, why
    a configuration could not be opened is left out, as :func:`print_configurations` has shown it.
    """
    name = Path(result.model.file).stem if result.is_of_examples else result.command
    if detail == "all":
        from evaltools.report.page.make import page_of

        page = page_of(Sources({name: result}))
    else:
        first = bounded_first(first_screen({name: result}))
        page = Page("", (first,), (bounded(Part(name, "", tuple(_brief(result)), warnings=warnings_of(result))),))
    if result.is_of_examples and detail != "answer":
        console.print()
        known = {row.reason for row in result.rows if row.runtime is None}
        (first,) = page.first
        notes = tuple(note for note in first.notes if note.text.removeprefix("not measured: ") not in known)
        page = replace(page, first=(replace(first, notes=notes),))
    elif detail == "answer" and not result.is_of_examples:
        failed = tuple(note for each in page.first for note in each.notes if note.tone in ("bad", "missing"))
        page = Page("", (replace(page.first[0], notes=failed, steps=()),), ())
    show_page(page, console, detail, _HINT if result.is_of_examples else "")


def _brief(result: Result) -> Iterator[Section]:
    yield from (section for section in result.blocks if section.is_brief)
    if result.device_run is not None:
        from evaltools.report.page.what_ran import devices

        yield from filter(None, [devices(result.device_run)])


def print_models(results: Mapping[str, Result], console: Console) -> None:
    """The answer to several results of a task, and one table over all; what is special was shown with each."""
    found = first_screen(results)
    blocks = tuple(block for block in found.blocks if isinstance(block, Sentence | Table))
    show_page(Page("", (First("", blocks),), ()), console)


def print_devices(found: DeviceList, console: Console) -> None:
    """The table, then a line for each device that cannot be used."""
    from evaltools.report.page.what_ran import connected

    for block in connected(found):
        show_block(block, console)


def print_sections(result: Result, console: Console) -> None:
    """Everything that there is to show of a result."""
    for section in result.blocks:
        show_section(section, console)
