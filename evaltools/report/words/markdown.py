"""Texts and tables that read in Markdown as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from evaltools.text import printable

_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
_MARKED: Final = re.compile(r"([\\`*_\[\]!~$])")
_NAMES_SOMEBODY: Final = re.compile(r"(?<!\w)@(?=\w)|@(?=[\w-]+\.\w)|(?<!&)#(?=\d)")
"""What hosts of code make a mention, an address or a link of, whatever stands before it."""
_NOTHING: Final = "<!-- -->"
_ENDS_HEADING: Final = re.compile(r"#(?=#*$)")
_BEGINS_BLOCK: Final = re.compile(r"^([-+=#]|\d{1,9}(?=[.)]))")


def escape(text: str) -> str:
    r"""A text of one line that reads in Markdown as it is, within a line or a cell.

    >>> escape("a|b <c> *d*")
    'a&#124;b &lt;c&gt; \\*d\\*'
    >>> escape("red \x1b[31m")
    'red \\\\x1b\\[31m'
    >>> escape("@team: #3 is wrong")
    '@<!-- -->team: #<!-- -->3 is wrong'
    """
    marked = _MARKED.sub(r"\\\1", printable(" ".join(text.split())))
    plain = "".join(_ENTITIES.get(character, character) for character in marked)
    return _ENDS_HEADING.sub(r"\#", _NAMES_SOMEBODY.sub(lambda found: found[0] + _NOTHING, plain))


def escape_line(text: str) -> str:
    r"""The same where it begins a line or an item, and could begin a list, a heading or a rule.

    >>> escape_line("- a"), escape_line("# b"), escape_line("1. c"), escape_line("2 d")
    ('\\- a', '\\# b', '1\\. c', '2 d')
    """
    plain = escape(text)
    return _BEGINS_BLOCK.sub(lambda found: f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}", plain)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already.

    >>> print(table(["name", "top1"], [["xnnpack", "**90 %**"]]))
    | name | top1 |
    | --- | --- |
    | xnnpack | **90 %** |
    """
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings), *rows))
