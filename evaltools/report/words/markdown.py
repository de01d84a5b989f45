"""Texts and tables that read in Markdown as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
_MARKED: Final = re.compile(r"([\\`*_\[\]!~$])")


def escape(text: str) -> str:
    r"""A text of one line that reads in Markdown as it is.

    >>> escape("a|b <c> *d*")
    'a&#124;b &lt;c&gt; \\*d\\*'
    """
    marked = _MARKED.sub(r"\\\1", " ".join(text.split()))
    return "".join(_ENTITIES.get(character, character) for character in marked)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already.

    >>> print(table(["name", "top1"], [["xnnpack", "**90 %**"]]))
    | name | top1 |
    | --- | --- |
    | xnnpack | **90 %** |
    """
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings), *rows))
