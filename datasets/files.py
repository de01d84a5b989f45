"""Reads whole files and lists of numbers, with messages that name the flag."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from evaltools.errors import DataError
from evaltools.file_content import DATA_BYTES, Unreadable, content_of

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")


def read_bytes(path: Path, flag: str, kind: str, may_be_pipe: bool = True, most_bytes: int = DATA_BYTES) -> bytes:
    """The content of a file; raises :class:`DataError`. ``kind`` says what is expected, as in "a text file".

    What a flag names ``may_be_pipe``, as a shell's ``<(command)`` is; what lies in a folder may not.
    """
    try:
        return content_of(path, most_bytes, may_be_pipe)
    except Unreadable as error:
        raise DataError(f"{flag}={path} cannot be read: {error}; give {kind}") from error


def decode_text(content: bytes, where: str) -> str:
    """The text of a file; bytes that are no UTF-8 stay what they are (surrogates), a byte order mark is dropped.

    Raises :class:`DataError` for what is not a text. ``where`` names the file in messages.
    """
    if b"\0" in content:
        raise DataError(f"{where} is not a text file: it holds zero bytes")
    return content.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")


def numbers_by_line(content: bytes, where: str, expected: str, skip_blank: bool = True) -> dict[int, int]:
    r"""The whole number on each line, by the line's number from 1; raises :class:`DataError`.

    ``where`` names the file in messages, ``expected`` says what its lines hold. Without ``skip_blank`` a blank line is
    no number either.

    >>> numbers_by_line(b"7\n\n-12 \r\n", "ids.txt", "give one picture id per line")
    {1: 7, 3: -12}
    """
    numbers = {}
    for line, text in enumerate(map(str.strip, decode_text(content, where).splitlines()), start=1):
        if not text and skip_blank:
            continue
        if not _WHOLE_NUMBER.fullmatch(text):
            raise DataError(f"{where}, line {line}: {text[:80]!r} is not a number; {expected}")
        numbers[line] = int(text)
    return numbers
