"""Results as JSON, and the JSON Schema of their types."""

from __future__ import annotations

import codecs
import inspect
import json
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from evaltools.documents import json_as
from evaltools.errors import DataError
from evaltools.file_content import DATA_BYTES, Unreadable, content_of
from evaltools.text import with_article

ResultType = TypeVar("ResultType")
_HALVES: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Halves of characters, but for those that stand for bytes of a file's name."""
DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def encode_json(value: Any) -> bytes:
    """Structs or dataclasses as indented JSON, which is UTF-8 whatever the texts hold."""
    return msgspec.json.format(msgspec.json.encode(valid_text(value)), indent=1) + b"\n"


def valid_text(value: Any) -> Any:
    """The same with every text fit for UTF-8, and structs and dataclasses with all of their fields by name.

    Of dataclasses only msgspec leaves out fields that a file did not have, and that got their defaults as it was read.
    """
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, msgspec.Struct):
        return _fields(value)
    if is_dataclass(value):  # of a task from elsewhere
        return {each.name: valid_text(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {valid_text(key): valid_text(item) for key, item in value.items()}
    return [valid_text(item) for item in value] if isinstance(value, list | tuple) else value


def _fields(value: msgspec.Struct) -> dict[str, Any]:
    """The fields of a struct by name: its tag, if it has one, and without defaults where its type leaves these out.

    As msgspec does it, a field whose default a function gives is always there.
    """
    config = value.__struct_config__
    found = {config.tag_field: config.tag} if config.tag_field is not None else {}
    for each in msgspec.structs.fields(value):
        item = getattr(value, each.name)
        default = each.default_factory() if isinstance(each.default_factory, type) else each.default
        if not (config.omit_defaults and item == default and type(item) is type(default)):
            found[each.name] = valid_text(item)
    return found


def read_content(path: Path) -> bytes:
    """All of a file, which may be a pipe, without a byte order mark.

    Raises :class:`DataError` where that fails, and for what has more than a GiB, as devices that have no end.
    """
    try:
        return content_of(path, DATA_BYTES, may_be_pipe=True).removeprefix(codecs.BOM_UTF8)
    except Unreadable as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def json_in(content: bytes, path: Path, kind: type[ResultType], what: str) -> ResultType:
    """Structs from the content of a file; raises :class:`DataError` for one that does not fit."""
    try:
        return json_as(content, kind)
    except ValueError as error:
        raise misfit(path, what, error.__cause__ or error) from error


def require_version(found: Any, current: str, path: Path, what: str) -> None:
    """Raise :class:`DataError`, naming both, for a file of another version than the ``current`` one, counted from 1."""
    if found in [str(earlier) for earlier in range(1, int(current))]:
        raise DataError(f"{path} was written by an earlier evaltools, version {found}; measure again")
    if found != current:
        raise DataError(
            f"{path} is {with_article(what)} of version {found!r}; this evaltools reads {current}, so read it with the "
            "evaltools that wrote it"
        )


def misfit(path: Path, what: str, error: BaseException) -> DataError:
    """A file that does not fit its types, or whose values cannot be together."""
    if isinstance(error.__cause__, ValueError):
        return DataError(f"{path}: its figures contradict each other ({error}); take the file as evaltools wrote it")
    return DataError(f"{path} is not {with_article(what)}: {error}")


def json_schema(kind: type, title: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a kind of result, derived from its types."""
    schema: dict[str, Any] = without_indentation(msgspec.json.schema(kind))
    return {"$schema": DRAFT, "title": title} | schema


def without_indentation(value: Any) -> Any:
    """A schema without the indentation of docstrings in descriptions, which differs between Python versions."""
    if isinstance(value, dict):
        return {
            key: inspect.cleandoc(item) if key == "description" and isinstance(item, str) else without_indentation(item)
            for key, item in value.items()
        }
    return [without_indentation(item) for item in value] if isinstance(value, list) else value


def schema_text(schema: dict[str, Any]) -> str:
    """A JSON Schema as a document to read: a line for each field of a type."""
    facts = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in schema.items() if name != "$defs"]
    types = [f"{json.dumps(name)}: {_type_text(value)}" for name, value in schema["$defs"].items()]
    return "{\n" + ",\n".join([*facts, f'"$defs": {{\n{_JOINED.join(types)}\n}}']) + "\n}\n"


_JOINED: Final = ",\n"


def _type_text(found: dict[str, Any]) -> str:
    facts = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items() if name != "properties"]
    fields = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in found.get("properties", {}).items()]
    return "{" + ", ".join(facts) + f', "properties": {{\n{_JOINED.join(fields)}\n}}}}'
