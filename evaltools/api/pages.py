"""Pages about results from Python."""

from __future__ import annotations

from pathlib import Path

from evaltools.report.files.output_file import write_file
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.file import page_file, require_page_file


def write_page(sources: Sources, path: str | Path, images: str | Path | None = None) -> None:
    """Write a page to the file that its name asks for."""
    file = Path(path)
    require_page_file(file, "report")
    write_file(file, page_file(sources, file, None if images is None else Path(images)))
