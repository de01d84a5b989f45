"""Result files of evaluations: the task of a result says which type its part has."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from evaltools.errors import DataError, UsageError
from evaltools.known_tasks import recorded_task
from evaltools.result.evaluation import SCHEMA_VERSION, EvaluationResult
from evaltools.result.json_file import json_in, json_schema, read_content, require_version
from evaltools.result_consistency import contradiction

_WHAT: Final = "evaltools result"
_MOST_CONFIGURATIONS: Final = 2000
"""Each is compared with the others: a report of so many takes a quarter of a minute, and one of ten times as many an
hour."""


class _ResultHead(msgspec.Struct):
    """What a result says of itself before anything else is read."""

    schema_version: str
    task: str


def read_result(path: Path) -> EvaluationResult:
    """Read and check a result file.

    Raises :class:`DataError` naming the field that does not fit, or the version or the task that is not known.
    """
    return result_in(read_content(path), path)


def result_in(content: bytes, path: Path) -> EvaluationResult:
    """The same from the content of a file that was read already."""
    head = json_in(content, path, _ResultHead, _WHAT)
    try:
        recorded_task(head.task)
    except UsageError as error:
        raise DataError(f"{path} is the result of a task that is not here: {error}") from None
    require_version(head.schema_version, SCHEMA_VERSION, path, _WHAT)
    return sound(path, json_in(content, path, EvaluationResult, _WHAT))


def sound(path: Path, result: EvaluationResult) -> EvaluationResult:
    """The result in a file; raises :class:`DataError` where its figures contradict each other."""
    count = len(result.configurations)
    if count > _MOST_CONFIGURATIONS:
        raise DataError(f"{path} has {count} configurations; results of at most {_MOST_CONFIGURATIONS} are read")
    wrong = contradiction(result)
    if wrong:
        raise DataError(f"{path}: its figures contradict each other ({wrong}); take the file as evaltools wrote it")
    return result


def result_schema() -> dict[str, Any]:
    """JSON Schema of the result of an evaluation."""
    return json_schema(EvaluationResult, _WHAT)
