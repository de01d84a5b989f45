"""The result as JSON, and its JSON Schema."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from evaltools.errors import DataError, UsageError
from evaltools.result.evaluation import SCHEMA_VERSION, EvaluationResult
from evaltools.result.version_1 import from_version_1
from evaltools.task_kind import kind_of, registered_kinds, with_task_figures

ResultType = TypeVar("ResultType")
_WHAT: Final = "evaltools result"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def to_json(result: EvaluationResult) -> bytes:
    """The result as indented JSON; bytes of file names and labels that are no UTF-8 are replaced."""
    return encode_json(result)


def encode_json(value: Any) -> bytes:
    """Dataclasses as indented JSON, which is UTF-8 whatever the texts hold."""
    return msgspec.json.format(msgspec.json.encode(_valid_text(msgspec.to_builtins(value))), indent=1) + b"\n"


def _valid_text(value: Any) -> Any:
    """The same with every text fit for UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_valid_text(key): _valid_text(item) for key, item in value.items()}
    return [_valid_text(item) for item in value] if isinstance(value, list | tuple) else value


class _Head(msgspec.Struct):
    """What a result says of itself before anything else is read."""

    schema_version: str
    task: str


def read_result(path: Path) -> EvaluationResult:
    """Read and check a result file, of this version or of version 1.

    Raises :class:`DataError` naming the field that does not fit, or the version or the task that is not known.
    """
    head = read_json(path, _Head, _WHAT)
    try:
        kind = kind_of(head.task)
    except UsageError as error:
        raise DataError(f"{path} is the result of a task that is not here: {error}") from None
    if head.schema_version == "1":
        document = read_json(path, dict[str, Any], _WHAT)
        return with_task_figures(_typed(path, from_version_1(document, path), kind.part_type))
    if head.schema_version != SCHEMA_VERSION:
        raise DataError(
            f"{path} is an {_WHAT} of version {head.schema_version!r}; this evaltools reads 1 and {SCHEMA_VERSION}, so "
            "read it with the evaltools that wrote it"
        )
    return _typed(path, read_json(path, dict[str, Any], _WHAT), kind.part_type)


def _typed(path: Path, document: dict[str, Any], part_type: type) -> EvaluationResult:
    """A document as the types that it must hold; raises :class:`DataError` for the field that does not fit."""
    holder: Any = msgspec.defstruct("Holder", [("part", part_type)])
    try:
        result = msgspec.convert(document, EvaluationResult, str_keys=True)
        return replace(result, part=msgspec.convert(document, holder, str_keys=True).part)
    except msgspec.ValidationError as error:
        raise _misfit(path, _WHAT, error) from error


def read_json(path: Path, kind: type[ResultType], what: str, hint: str = "") -> ResultType:
    """Read a file that holds dataclasses as JSON; ``what`` it is, and a ``hint`` where it is missing, for messages.

    Raises :class:`DataError` for a file that cannot be read, and for one that does not fit, naming the field.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}{hint}") from error
    except msgspec.DecodeError as error:
        raise _misfit(path, what, error) from error


def _misfit(path: Path, what: str, error: msgspec.DecodeError) -> DataError:
    """A file that does not fit its types, or whose values cannot be together."""
    if isinstance(error.__cause__, ValueError):
        return DataError(f"{path}: its figures contradict each other ({error}); take the file as evaltools wrote it")
    return DataError(f"{path} is no {what}: {error}")


def json_schema(kind: type, title: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a kind of result, derived from its types."""
    schema: dict[str, Any] = _tidy(msgspec.json.schema(kind))
    return {"$schema": _DRAFT, "title": title} | schema


def result_schema() -> dict[str, Any]:
    """JSON Schema of the result of an evaluation, with the part of each task that comes with evaltools."""
    kinds = list(registered_kinds())
    types = [EvaluationResult, *(kind.part_type for kind in kinds)]
    (envelope, *parts), definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    by_task = [
        {"if": {"properties": {"task": {"const": kind.name}}}, "then": {"properties": {"part": part}}}
        for kind, part in zip(kinds, parts, strict=True)
    ]
    schema = {"$schema": _DRAFT, "title": _WHAT, **envelope, "allOf": by_task, "$defs": definitions}
    tidy: dict[str, Any] = _tidy(schema)
    return tidy


def _tidy(value: Any) -> Any:
    """The same with descriptions free of the indentation of docstrings, which differs between Python versions."""
    if isinstance(value, dict):
        return {
            key: inspect.cleandoc(item) if key == "description" and isinstance(item, str) else _tidy(item)
            for key, item in value.items()
        }
    return [_tidy(item) for item in value] if isinstance(value, list) else value


def schema_text(schema: dict[str, Any]) -> str:
    """The content of ``result.schema.json``, or that of another kind of result."""
    return json.dumps(schema, indent=1) + "\n"
