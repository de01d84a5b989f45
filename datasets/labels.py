"""Label lists and lists of excluded examples."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from evaltools.errors import DataError

_NUMBER = re.compile(r"[0-9]{1,18}")


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
    content = _read_bytes(path, flag)
    text = _decode(content, path, flag)
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
    indices = set()
    for number, line in enumerate(_decode(_read_bytes(path, flag), path, flag).splitlines(), start=1):
        if not line.strip():
            continue
        if not _NUMBER.fullmatch(line.strip()):
            message = f"{flag}={path}, line {number}: {line.strip()!r} is no number; give one picture number per line"
            raise DataError(message)
        position = int(line)
        if not 1 <= position <= example_count:
            message = f"{flag}={path}, line {number}: no picture {position}; numbers go from 1 to {example_count}"
            raise DataError(message)
        indices.add(position - 1)
    return frozenset(indices)


def _read_bytes(path: Path, flag: str) -> bytes:
    try:
        return path.read_bytes()
    except IsADirectoryError:
        raise DataError(f"{flag}={path} is a folder; give a text file") from None
    except FileNotFoundError:
        raise DataError(f"{flag}={path}: no such file") from None
    except OSError as error:
        raise DataError(f"{flag}={path} cannot be read: {error.strerror}") from error


def _decode(content: bytes, path: Path, flag: str) -> str:
    if b"\0" in content:
        raise DataError(f"{flag}={path} is no text file: it holds zero bytes")
    return content.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")
