"""Results from files."""

from __future__ import annotations

from pathlib import Path

from evaltools.api.result import Result
from evaltools.result.json_file import read_result


def load(path: str | Path) -> Result:
    """The result that a JSON file holds; raises :class:`~evaltools.errors.DataError` for a file that holds none."""
    return Result(read_result(Path(path)))
