"""Makes text from elsewhere safe to print."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Sequence
from itertools import takewhile
from typing import Final, TextIO

_BREAKS: Final = re.compile(r"[^\n\t]+")
_WORKFLOW_COMMAND: Final = re.compile(r"^[^\S\n]*:(?=:\w)|#(?=#\[\w)", re.MULTILINE)
"""How a line begins that GitHub Actions takes for a command, such as ``::error::``; an old form may stand anywhere."""
_LAST_LINES: Final = 3
_STACK: Final = re.compile(r"\s*(@|#\d+|PC: @)\s+(0x)?[0-9a-f]{4,}\b|\s*\*\*\* .*(stack trace|received by PID).*\*\*\*")
_WHY: Final = re.compile(
    r"\b(check failed|assertion .*failed|assert|fatal|panic|terminate called|what\(\):|error|failed|cannot|abort)", re.I
)
_COMMAND: Final = "$ "
_LEFT_OUT: Final = "..."
_LONG_LINE: Final = 100
_GAPS: Final = re.compile(r"(?<=\S) {2,}(?=\S)")
_FARTHEST_COLUMN: Final = 0.6
"""Of the width: a column that begins farther to the right leaves too little for its text."""


def printable(text: str) -> str:
    r"""A text of one line, safe for a terminal: control characters are shown as Python writes them, not sent to it.

    >>> print(printable("two\nlines"), printable("no\x1b[2Jspace"))
    two\nlines no\x1b[2Jspace
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def printable_lines(text: str) -> str:
    r"""The same for a text of several lines, in which tabs stay, too, and none is a command to GitHub Actions.

    >>> print(printable_lines("two\nlin\res"))
    two
    lin\res
    >>> print(printable_lines("no file a\n::error::b"))
    no file a
    \x3a:error::b
    """
    shown = _BREAKS.sub(lambda between: printable(between[0]), text)
    return _WORKFLOW_COMMAND.sub(lambda found: f"{found[0][:-1]}\\x{ord(found[0][-1]):02x}", shown)


def in_paragraphs(text: str) -> str:
    """The text with lines joined that were only broken to fit into the source: the long ones."""
    return re.sub(rf"(?m)^(.{{{_LONG_LINE},}})\n(?=\S)", r"\1 ", text)


def can_be_written(text: str) -> bool:
    r"""Whether a text has no half of a character; the bytes of file names that are no Unicode can be written.

    >>> can_be_written("caf\udce9"), can_be_written("half \ud800")
    (True, False)
    """
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def with_article(noun: str) -> str:
    """A noun with its indefinite article.

    >>> with_article("evaltools result"), with_article("JSON result")
    ('an evaltools result', 'a JSON result')
    """
    return f"{'an' if noun[:1] in 'aeio' else 'a'} {noun}"


def shortened(text: str, most: int) -> str:
    """The text with its middle left out where it has more than ``most`` characters, which are 5 or more.

    >>> shortened("functional_1/conv/Relu6;functional_1/bn/Fused", 24)
    'functional_...1/bn/Fused'
    """
    if len(text) <= most:
        return text
    left = most - len(_LEFT_OUT)
    return f"{text[: left - left // 2]}{_LEFT_OUT}{text[len(text) - left // 2 :]}"


def distinct(names: Sequence[str]) -> list[str]:
    """Each name without the words, parted by ``_``, that all begin and end with; whole where nothing else is left.

    >>> distinct(["mobilenet_v1_0.25_quant", "mobilenet_v1_0.5_quant"]), distinct(["net", "net_int8"])
    (['0.25', '0.5'], ['net', 'net_int8'])
    """
    words = [name.split("_") for name in names]
    begin, end = _alike(words), _alike([each[::-1] for each in words])
    if len(set(names)) < 2 or any(begin + end >= len(each) for each in words):
        return [*names]
    return ["_".join(each[begin : len(each) - end]) for each in words]


def _alike(lists: Sequence[Sequence[str]]) -> int:
    """How many words all begin with."""
    return sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, zip(*lists, strict=False)))


def steps(number: str) -> str:
    """A number of steps of a quantised tensor, in words.

    >>> steps("1"), steps("-1"), steps("0.5"), steps("inf")
    ('1 step', '-1 step', '0.5 steps', 'inf steps')
    """
    return f"{number} step{'' if number.lstrip('+-') == '1' else 's'}"


def last_words(text: str, longest: int) -> str:
    r"""What native code printed before its end, in one line of about ``longest`` characters that begins at a word.

    Addresses of a stack are left out. Where all of it is too long, the last line that says why comes first.

    >>> last_words("a.cc:7] Check failed: x > 0\n*** Check failure stack trace: ***\n    @  0x7f01  main\n", 80)
    'a.cc:7] Check failed: x > 0'
    """
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip() and not _STACK.match(line)]
    whole = " ".join(lines)
    if len(whole) <= longest:
        return whole
    why = next((line for line in reversed(lines) if _WHY.search(line)), "")
    rest = whole[-max(longest - len(why), 0) :] if len(why) < longest else ""
    if why in rest:
        why, rest = "", whole[-longest:]
    tail = f"... {rest.partition(' ')[2] or rest}" if rest else ""
    return f"{_why_shortened(why, longest)} {tail}".strip()


def _why_shortened(why: str, longest: int) -> str:
    """The line, from the words that say why on where it is too long, and then cut behind a word."""
    found = _WHY.search(why)
    if found is None or len(why) <= longest:
        return why
    line = why[found.start() :]
    return line if len(line) <= longest else f"{line[:longest].rpartition(' ')[0] or line[:longest]} ..."


def columns_of(stream: TextIO | None) -> int | None:
    """The width of the terminal that a stream writes to; None where it is not a terminal."""
    try:
        if stream is None or not stream.isatty():
            return None
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def wrapped(text: str, columns: int | None) -> str:
    """The text with lines of at most so many columns, broken only at spaces; None: as it is.

    What a line goes on with stands below the last column that it has; commands, behind ``$``, stay as they are.

    >>> print(wrapped("yes  XNNPACK  runs all of a model", 24))
    yes  XNNPACK  runs all
                  of a model
    """
    if columns is None:
        return text
    return "\n".join(_wrapped_line(line, columns) for line in text.split("\n"))


def _wrapped_line(line: str, columns: int) -> str:
    if len(line) <= columns or line.startswith(_COMMAND):
        return line
    indent = len(line) - len(line.lstrip())
    starts = [indent, *(gap.end() for gap in _GAPS.finditer(line))]
    start = max((start for start in starts if start <= _FARTHEST_COLUMN * columns), default=0)
    lines = textwrap.wrap(line, columns, subsequent_indent=" " * start, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def last_lines(text: str, leave_out: str = "") -> str:
    """The last three lines that a program printed, on one line for a message; "nothing" if there are none.

    Blank lines are skipped, as are lines that begin with ``leave_out``, unless that is empty.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not leave_out or not line.startswith(leave_out)]
    return " | ".join(map(printable, kept[-_LAST_LINES:])) or "nothing"
