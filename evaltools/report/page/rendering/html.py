"""A page as one HTML file that needs no network, and no script to be read or printed."""

from __future__ import annotations

import base64
import functools
import gzip
import importlib.util
import io
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.errors import OutputError, UsageError
from evaltools.report.content import Download, Page
from evaltools.report.page.rendering.other_files import Pictures, linked
from evaltools.result.json_file import encode_json
from evaltools.result.section import Cell, Chart, Note, Number, Section, Word, text_of

if TYPE_CHECKING:
    from jinja2 import Environment

_NEEDED: Final = ("jinja2", "vl_convert")
_LARGEST_DOWNLOAD: Final = 1_000_000
"""In bytes, as gzip; larger ones are left out of the page."""
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that command a terminal, or turn the direction of what follows them."""
_SIGN: Final = r"(?:(?<![\w.])[+±-])"
_AFTER: Final = r"[\],;:)]*"
_TOGETHER: Final = re.compile(
    rf"\(?--\w[^\s,;:)]*{_AFTER}|{_SIGN}?[\d.]*\d (?:%|ms|MB|dB|points?)(?!\w)[.;,]*"
    rf"|\([-+]?[\d.]+ to [-+]?[\d.]+\){_AFTER}|{_SIGN}\d[\d.]*{_AFTER}"
)
"""A flag, a number with its unit, a sign with its number, an interval: what a line must not end within."""


def require_page() -> None:
    """Raise :class:`UsageError` where a page cannot be made, before any long work."""
    if any(importlib.util.find_spec(name) is None for name in _NEEDED):
        raise UsageError('a page in HTML needs jinja2 and vl-convert-python: pip install "evaltools[report]"')


def html_of(page: Page, images: Path | None = None, folder: Path | None = None) -> bytes:
    """The file's content, UTF-8; every text is escaped. ``images``: where pictures lie now, None: as in the results.

    ``folder`` is where the page will lie, and its links start; None: it has no links to other files.
    Raises :class:`UsageError` where jinja2 or vl-convert-python is missing.
    """
    require_page()
    template = _templates().get_template("page.html.jinja")
    beside = partial(linked, page_folder=folder)
    folders = {part.source: part.folders for part in page.parts}
    return template.render(page=page, pictures=Pictures(images), linked=beside, folders=folders).encode(
        errors="replace"
    )


def sections_html(title: str, sections: Sequence[Section], folders: Sequence[Path], images: Path | None = None) -> str:
    """Only sections as a page, as notebooks show them; ``folders`` are those that pictures may be meant from.

    Raises :class:`UsageError` where jinja2 or vl-convert-python is missing.
    """
    require_page()
    template = _templates().get_template("sections.html.jinja")
    beside = partial(linked, page_folder=None)
    return template.render(title=title, sections=sections, folders=folders, pictures=Pictures(images), linked=beside)


@functools.cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("evaltools.report.page.rendering"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    environment.filters |= {
        "svg": _svg,
        "address": _address,
        "shown": text_of,
        "number": _as_number,
        "word": _as_word,
        "note": _as_note,
        "kept": _kept,
        "named": _named,
    }
    return environment


def _seen(value: Any) -> Any:
    """A text without characters that no reader sees and that change what others look like."""
    return type(value)(_UNSEEN.sub("\N{REPLACEMENT CHARACTER}", value)) if isinstance(value, str) else value


def _kept(text: str) -> Any:
    """The text, in which no line ends within a flag, or between a number and its sign or unit."""
    from markupsafe import Markup, escape

    found, end = Markup(), 0
    for match in _TOGETHER.finditer(text):
        found += escape(text[end : match.start()]) + Markup('<span class="kept">{}</span>').format(match.group())
        end = match.end()
    return found + escape(text[end:])


def _named(text: str) -> Any:
    """A name, in which a line may end behind an underscore."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in text.split("_"))


def _svg(chart: Chart) -> Any:
    from markupsafe import Markup

    from evaltools.report.page.rendering.drawing import svg_of

    try:
        return Markup(svg_of(chart))
    except OutputError as error:
        return Markup('<p class="below">{}</p>').format(str(error))


def _address(download: Download) -> str:
    """The result, compressed, as an address inside the page; empty where it is too large for one."""
    content = _compressed(download.saved or encode_json(download.result))
    return "" if content is None else f"data:application/gzip;base64,{base64.b64encode(content).decode()}"


def _compressed(content: bytes) -> bytes | None:
    """The content as gzip; None where that is too large, which is seen before all of it is compressed."""
    found = io.BytesIO()
    with gzip.GzipFile(fileobj=found, mode="wb", mtime=0) as file:
        for start in range(0, len(content), _LARGEST_DOWNLOAD):
            file.write(content[start : start + _LARGEST_DOWNLOAD])
            if found.tell() > _LARGEST_DOWNLOAD:
                return None
    return found.getvalue() if len(found.getvalue()) <= _LARGEST_DOWNLOAD else None


def _as_word(cell: Cell) -> Word | None:
    return cell if isinstance(cell, Word) else None


def _as_number(cell: Cell) -> Number | None:
    return cell if isinstance(cell, Number) else None


def _as_note(line: str | Note) -> Note | None:
    return line if isinstance(line, Note) else None
