"""A page as the file that its name asks for, and what it is about from files: results of every command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from evaltools.errors import DataError, UsageError
from evaltools.report.content import Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.html import html_of, require_page
from evaltools.report.page.rendering.markdown import markdown_of
from evaltools.result.json_file import json_in, read_content
from evaltools.result.result import Result
from evaltools.result_file import result_in
from evaltools.text import printable

_MARKDOWN: Final = ".md"
_HTML: Final = (".html", ".htm")

_OF_OPERATORS: Final = "locate"


def require_page_file(path: Path, flag: str) -> None:
    """Raise :class:`UsageError`, before any long work, for a name without a format, and for a missing package."""
    ending = path.suffix.lower()
    if ending not in (*_HTML, _MARKDOWN):
        raise UsageError(
            f"{flag}={path}: the ending {ending or '(none)'} says no format; use .html for the page, or .md for its "
            "first screen in Markdown"
        )
    if ending in _HTML:
        require_page()


def page_file(sources: Sources, path: Path, images: Path | None = None) -> bytes:
    """The content of the file. ``images`` is the folder where pictures lie now, None: as in the results."""
    page = page_of(sources)
    return markdown_of(page) if path.suffix.lower() == _MARKDOWN else html_of(page, images, path.absolute().parent)


def source_in(content: bytes, path: Path) -> Result:
    """What the content of a file of ours is, by the fields that it has.

    Raises :class:`DataError` for one that holds nothing that a page can show.
    """
    document = json_in(content, path, dict[str, msgspec.Raw], "JSON result of evaltools")
    if "baseline_version" in document:
        raise DataError(f"{path} is a baseline of an earlier evaltools; a saved result takes its place: measure again")
    if not {"rows", "configurations", "entries", "suspects", "culprits", "reports"}.isdisjoint(document):
        return result_in(content, path)
    raise DataError(
        f"{path} holds no result: it has {', '.join(map(printable, list(document)[:5])) or 'no fields'}; give "
        "files that --output_file_path of an evaluation, benchmark, locate, suite or gate wrote"
    )


def read_sources(paths: Iterable[Path], read: Callable[[Path], bytes] = read_content) -> Sources:
    """All files by their names without the ending, the whole path where two would be equal.

    What was located in the model of only one evaluation are layers of that. Each file is read once, by ``read``.
    Raises :class:`DataError` for a file that cannot be read or shown, :class:`UsageError` for one that is given twice.
    """
    files = list(paths)
    given = [os.path.realpath(path) for path in files]
    twice = next((path for place, path in enumerate(files) if given[place] in given[:place]), None)
    if twice is not None:
        raise UsageError(f"{twice} is given twice; give each result once")
    stems = [path.stem for path in files]
    names = [path.stem if stems.count(path.stem) == 1 else str(path.absolute()) for path in files]
    contents = [read(path) for path in files]
    sources = [source_in(content, path) for content, path in zip(contents, files, strict=True)]
    names = _by_model(names, sources)
    saved = dict(zip(names, contents, strict=True))
    found = dict(zip(names, sources, strict=True))
    evaluations = {name: each for name, each in found.items() if each.is_of_examples}
    located: dict[str, list[Result]] = {}
    for name in [name for name, each in found.items() if each.command == _OF_OPERATORS]:
        sha256 = found[name].model.sha256
        of_model = [own for own, each in evaluations.items() if each.model.sha256 == sha256]
        if len(of_model) == 1:
            located.setdefault(of_model[0], []).append(found.pop(name))
    return Sources(
        results=found,
        located=located,
        saved=saved,
        folders={name: path.absolute().parent for name, path in zip(names, files, strict=True)},
    )


def _by_model(names: list[str], sources: list[Result]) -> list[str]:
    """The names with only the model, where files are ``RESULT.MODEL.json`` as one command writes them for several."""
    short = [
        Path(source.model.file).stem
        if source.is_of_examples and name.endswith(f".{Path(source.model.file).stem}")
        else name
        for name, source in zip(names, sources, strict=True)
    ]
    return short if len(set(short)) == len(short) else names
