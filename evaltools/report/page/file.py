"""A page as the file that its name asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evaltools.errors import OutputError, UsageError
from evaltools.report.content import Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.html import html_of, require_page
from evaltools.report.page.rendering.markdown import markdown_of

_MARKDOWN: Final = ".md"
_HTML: Final = (".html", ".htm")


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


def measured_page(sources: Sources, path: Path) -> bytes:
    """The same of what was measured just now; raises :class:`OutputError` where the page cannot be made."""
    try:
        return page_file(sources, path)
    except UsageError as error:
        raise OutputError(f"{path} cannot be written: {error}") from error
