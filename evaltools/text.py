"""Text from elsewhere that is safe to print."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""A text of one line, safe for a terminal: what is no printable character becomes ``?``.

    >>> printable("two\nlines"), printable("no\x1b[2Jspace")
    ('two?lines', 'no?[2Jspace')
    """
    return "".join(character if character.isprintable() else "?" for character in text)
