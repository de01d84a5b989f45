"""A frame of what changed that shows the pictures; imported where pandas is known to be installed."""

from __future__ import annotations

import html
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, ClassVar

import pandas
from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.report.page.rendering.html import sections_html
from evaltools.result.result import Result
from evaltools.result.section import Gallery, Section

_HEIGHT = 640
"""Of a gallery in a notebook, in pixels; it scrolls."""


class Pictures:
    """Pictures that a notebook shows; ``html`` is a page of its own."""

    def __init__(self, page: str) -> None:
        self.html = page

    def save(self, path: str | Path) -> None:
        """Write the page."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        """The page in a frame, so that its looks are not those of the notebook."""
        return f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="{_HEIGHT}" style="border:0"></iframe>'


class ChangedFrame(pandas.DataFrame):  # type: ignore[misc]
    """A row for each answer that changed; a part of the rows, such as ``frame[frame.effect == "lost"]``, is one too."""

    _metadata: ClassVar[list[str]] = ["results"]

    @property
    def _constructor(self) -> Any:
        return ChangedFrame

    def gallery(self, images: str | Path | None = None) -> Pictures:
        """The pictures of these rows, the worst first; ``images`` is the folder where they lie now.

        Raises :class:`~evaltools.errors.UsageError` where the task draws none, and where ``evaltools[report]`` is not
        installed.
        """
        results: tuple[Result, ...] = self.results
        examples = set(self["example"]) if len(self) else set()
        found = [section for result in results for section in _with_pictures_of(examples, result)]
        if not found:
            raise UsageError("there are no pictures of these examples; .report(path) of the result says all about them")
        folders = [Path(result.environment.folder) for result in results]
        return Pictures(sections_html("What changed", found, folders, None if images is None else Path(images)))


def _with_pictures_of(examples: Set[str], result: Result) -> Iterator[Section]:
    """The sections on what changed with the pictures of these examples, which are the worst ones of the result."""
    for section in result.blocks:
        galleries = [block for block in section.blocks if section.place == "changes" and isinstance(block, Gallery)]
        shown = [replace(each, pictures=[one for one in each.pictures if {one.name, *one.lines} & examples])
                 for each in galleries]  # fmt: skip
        if kept := [each for each in shown if each.pictures]:
            yield replace(section, blocks=kept)
