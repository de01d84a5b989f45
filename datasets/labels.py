"""Label lists and lists of excluded examples."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from evaltools.datasets.files import decode_text, numbers_by_line, read_bytes
from evaltools.errors import DataError


@dataclass(frozen=True)
class LabelFile:
    """The lines of a label file, and the sha256 of its bytes."""

    path: Path
    lines: tuple[str, ...]
    sha256: str


def read_labels(path: Path, flag: str, keep_carriage_return: bool = False) -> LabelFile:
    r"""Read one label per line; blank lines count, a last line without a line end too.

    Lines are UTF-8; other bytes are kept as they are (surrogates), so that equal bytes stay equal labels. A byte order
    mark is dropped, and the ``\r`` of Windows line ends, unless ``keep_carriage_return`` (what the native tools do:
    such labels then never match). Raises :class:`DataError` for a missing, empty or non-text file.
    """
    content = read_bytes(path, flag, "a text file")
    text = decode_text(content, f"{flag}={path}")
    if not keep_carriage_return:
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise DataError(f"{flag}={path} is empty; it must have one label per line")
    return LabelFile(path, tuple(lines), hashlib.sha256(content).hexdigest())


def read_denylist(path: Path, flag: str, example_count: int) -> frozenset[int]:
    """Read 1-based numbers of examples to leave out, one per line; returns 0-based indices.

    Blank lines are skipped. Raises :class:`DataError` for a line that is no number or out of range.
    """
    where, content = f"{flag}={path}", read_bytes(path, flag, "a text file")
    positions = numbers_by_line(content, where, "give one picture number per line")
    for line, position in positions.items():
        if not 1 <= position <= example_count:
            raise DataError(f"{where}, line {line}: no picture {position}; numbers go from 1 to {example_count}")
    return frozenset(position - 1 for position in positions.values())
