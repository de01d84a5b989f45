"""The result as JSON, and its JSON Schema."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from evaltools.errors import DataError
from evaltools.result.evaluation import EvaluationResult

Kind = TypeVar("Kind")


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


def read_result(path: Path) -> EvaluationResult:
    """Read and check a result file; raises :class:`DataError` naming the field that does not fit."""
    return read_json(path, EvaluationResult, "evaltools result")


def read_json(path: Path, kind: type[Kind], what: str, hint: str = "") -> Kind:
    """Read a file that holds dataclasses as JSON; ``what`` it is, and a ``hint`` where it is missing, for messages.

    Raises :class:`DataError` for a file that cannot be read, and for one that does not fit, naming the field.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}{hint}") from error
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is no {what}: {error}") from error


def json_schema(kind: type = EvaluationResult, title: str = "evaltools result") -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a result, derived from its types."""
    schema: dict[str, Any] = _tidy(msgspec.json.schema(kind))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title} | schema


def _tidy(value: Any) -> Any:
    """The same with descriptions free of the indentation of docstrings, which differs between Python versions."""
    if isinstance(value, dict):
        return {
            key: inspect.cleandoc(item) if key == "description" and isinstance(item, str) else _tidy(item)
            for key, item in value.items()
        }
    return [_tidy(item) for item in value] if isinstance(value, list) else value


def schema_text(kind: type = EvaluationResult, title: str = "evaltools result") -> str:
    """The content of ``result.schema.json``, or that of another kind of result."""
    return json.dumps(json_schema(kind, title), indent=1) + "\n"
