"""Label lists and lists of excluded examples."""

from __future__ import annotations

from pathlib import Path

from evaltools.errors import DataError


def read_labels(path: Path, flag: str, keep_carriage_return: bool = False) -> list[str]:
    r"""Read one label per line, UTF-8 or else Latin-1; blank lines count, a last line without a line end too.

    The ``\r`` of Windows line ends and a byte order mark are dropped, unless ``keep_carriage_return`` (what the native
    tools do: such labels then never match). Raises :class:`DataError` for a missing, empty or non-text file.
    """
    text = _read_text(path, flag)
    if not keep_carriage_return:
        text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise DataError(f"{flag}={path} is empty; it must have one label per line")
    return lines


def read_denylist(path: Path, flag: str, example_count: int) -> frozenset[int]:
    """Read 1-based numbers of examples to leave out, one per line; returns 0-based indices.

    Blank lines are skipped. Raises :class:`DataError` for a line that is no number or out of range.
    """
    indices = set()
    for number, line in enumerate(_read_text(path, flag).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            position = int(line)
        except ValueError:
            message = f"{flag}={path}, line {number}: {line.strip()!r} is no number; give one picture number per line"
            raise DataError(message) from None
        if not 1 <= position <= example_count:
            message = f"{flag}={path}, line {number}: no picture {position}; numbers go from 1 to {example_count}"
            raise DataError(message)
        indices.add(position - 1)
    return frozenset(indices)


def _read_text(path: Path, flag: str) -> str:
    try:
        content = path.read_bytes()
    except IsADirectoryError:
        raise DataError(f"{flag}={path} is a folder; give a text file") from None
    except FileNotFoundError:
        raise DataError(f"{flag}={path}: no such file") from None
    except OSError as error:
        raise DataError(f"{flag}={path} cannot be read: {error.strerror}") from error
    if b"\0" in content:
        raise DataError(f"{flag}={path} is no text file: it holds zero bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")
