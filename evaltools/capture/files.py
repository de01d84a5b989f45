"""The folder of a capture: the names of its files, and who may write there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from evaltools.errors import UsageError
from evaltools.report.files.output_file import write_file
from evaltools.result.json_file import encode_json

TRACE: Final = "trace.json"
SUMMARY: Final = "summary.json"
_open_folders: Final[set[Path]] = set()


@contextlib.contextmanager
def taken(folder: Path) -> Iterator[None]:
    """A folder that is made if missing, and that no other open capture writes to; raises :class:`UsageError`."""
    if folder in _open_folders:
        raise UsageError(f"{folder}: another profile that is still open writes there; give each a folder of its own")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}; give a folder that can be written") from error
    _open_folders.add(folder)
    try:
        yield
    finally:
        _open_folders.discard(folder)


def write_summary(folder: Path, summary: Any) -> None:
    """Write what was found as JSON; raises :class:`~evaltools.errors.OutputError`."""
    write_file(folder / SUMMARY, encode_json(summary))
