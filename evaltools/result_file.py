"""Reads result files, of any command; those of evaluations only where their task is here."""

from __future__ import annotations

from pathlib import Path

from evaltools.errors import DataError, UsageError
from evaltools.known_tasks import recorded_task
from evaltools.result.json_file import read_content
from evaltools.result.reading import rows_in
from evaltools.result.result import Result


def read_result(path: Path) -> Result:
    """Read and check a result file.

    Raises :class:`DataError` naming the field that does not fit, or the version or the task that is not known.
    """
    return result_in(read_content(path), path)


def result_in(content: bytes, path: Path) -> Result:
    """The same from the content of a file that was read already."""
    found = rows_in(content, path)
    if found.is_of_examples:
        try:
            recorded_task(found.command)
        except UsageError as error:
            raise DataError(f"{path} is the result of a task that is not here: {error}") from None
    return found
