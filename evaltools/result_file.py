"""Result files of evaluations: the task of a result says which type its part has."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from evaltools.command import TaskCommand
from evaltools.errors import DataError, UsageError
from evaltools.known_tasks import recorded_task, tasks_of_results
from evaltools.result.evaluation import SCHEMA_VERSION, EvaluationResult
from evaltools.result.json_file import DRAFT, json_in, misfit, read_content, require_version, without_indentation
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
        task = recorded_task(head.task)
    except UsageError as error:
        raise DataError(f"{path} is the result of a task that is not here: {error}") from None
    require_version(head.schema_version, SCHEMA_VERSION, path, _WHAT)
    return _typed(path, json_in(content, path, dict[str, Any], _WHAT), task)


def _typed(path: Path, document: dict[str, Any], task: TaskCommand) -> EvaluationResult:
    """A document as the types that it must hold; raises :class:`DataError` for the field that does not fit."""
    try:
        result = msgspec.convert(document, EvaluationResult, str_keys=True)
    except msgspec.ValidationError as error:
        raise misfit(path, _WHAT, error) from error
    return _with_part(path, result, task)


def with_typed_part(path: Path, result: EvaluationResult) -> EvaluationResult:
    """A result from within another file, whose task's part has no type yet; raises :class:`DataError` as above."""
    return _with_part(path, result, recorded_task(result.task))


def _with_part(path: Path, result: EvaluationResult, task: TaskCommand) -> EvaluationResult:
    count = len(result.configurations)
    if count > _MOST_CONFIGURATIONS:
        raise DataError(f"{path} has {count} configurations; results of at most {_MOST_CONFIGURATIONS} are read")
    holder: Any = msgspec.defstruct("Holder", [("part", task.part_type)])
    try:
        typed = replace(result, part=msgspec.convert({"part": result.part}, holder, str_keys=True).part)
    except msgspec.ValidationError as error:
        raise misfit(path, _WHAT, error) from error
    wrong = contradiction(typed)
    if wrong:
        raise DataError(f"{path}: its figures contradict each other ({wrong}); take the file as evaltools wrote it")
    return typed


def result_schema() -> dict[str, Any]:
    """JSON Schema of the result of an evaluation, with the part of each task that comes with evaltools."""
    tasks = list(tasks_of_results())
    types = [EvaluationResult, *(task.part_type for task in tasks)]
    (envelope, *parts), definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    by_task = [
        {"if": {"properties": {"task": {"const": task.name}}}, "then": {"properties": {"part": part}}}
        for task, part in zip(tasks, parts, strict=True)
    ]
    schema = {"$schema": DRAFT, "title": _WHAT, **envelope, "allOf": by_task, "$defs": definitions}
    found: dict[str, Any] = without_indentation(schema)
    return found
