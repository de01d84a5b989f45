"""Reads a task.yaml. What is wrong with it is one sentence: line and key, what was got, what would be right."""

from __future__ import annotations

import re
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean
from evaltools.request.yaml_file import line_in_yaml, read_yaml
from evaltools.tasks.own.faults import shown
from evaltools.tasks.task_file import schema
from evaltools.tasks.task_file.schema import TaskFile

Keys = Sequence[str | int]
_PLACE: Final = re.compile(r"\.(\w+)|\[(\d+)\]")
_NAMED: Final = re.compile(r"`([^`]*)`")
_KIND: Final = "kind"
_PARTS: Final[dict[str, Any]] = {"inputs": schema.Inputs, "truth": schema.Truth, "output": schema.Output}


def read_task_file(path: Path) -> TaskFile:
    """The task that a file states; raises :class:`UsageError` for anything in it that is wrong."""
    values = read_yaml(path)
    _require_texts(path, values, [], set())
    try:
        return msgspec.convert(values, TaskFile)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        keys = [name or int(number) for name, number in _PLACE.findall(place)]
        raise _in_our_words(path, values, message, keys) from None


def _require_texts(path: Path, values: Any, keys: Keys, seen: set[int]) -> None:
    """Raise :class:`UsageError` for a key that is not a text, and for a text that cannot be a path or a name.

    What several aliases stand for is looked at once.
    """
    if isinstance(values, str) and "\0" in values:
        raise wrong(path, keys, f"{shown(values)} holds a null byte, which no path and no name has")
    if not isinstance(values, dict | list) or id(values) in seen:
        return
    seen.add(id(values))
    for key, below in values.items() if isinstance(values, dict) else enumerate(values):
        if isinstance(values, dict) and not isinstance(key, str):
            raise wrong(path, keys, f"the key {shown(key)} is not a text; write a key that docs/tasks.md names")
        _require_texts(path, below, [*keys, key], seen)


def wrong(path: Path, keys: Keys, message: str) -> UsageError:
    """What is wrong below these keys, behind the file and the line."""
    key = ".".join(map(str, keys))
    return UsageError(f"{path}, line {line_in_yaml(path, keys)}: {f'{key}: ' if key else ''}{message}")


def _in_our_words(path: Path, values: Any, message: str, keys: list[str | int]) -> UsageError:
    """A sentence of msgspec with what would be right there."""
    named = _NAMED.findall(message)
    choices = list(_kinds(keys)) if keys[-1:] == [_KIND] and message.startswith("Invalid") else _choices(values, keys)
    if choices:
        got = _below(values, keys)
        hint = did_you_mean(got, choices) if isinstance(got, str) else ""
        return wrong(path, keys, f"there is no {shown(got)}.{hint} There are {', '.join(choices)}")
    found = _struct(values, keys)
    fields = [] if found is None else [*([_KIND] if len(keys) == 1 else []), *found.__struct_fields__]
    if "unknown field" in message and named:
        right = f"there is no such key.{did_you_mean(named[0], fields)} There are {', '.join(fields)}"
        return wrong(path, [*keys, named[0]], right)
    if "missing required field" in message and named:
        there_are = f"; its keys are {', '.join(fields)}" if fields else ""
        kinds = f", one of {', '.join(_kinds([*keys, _KIND]))}" if named[0] == _KIND else ""
        return wrong(path, keys, f"{named[0]!r} is missing{kinds}{there_are}")
    got = f", not {shown(_below(values, keys))}" if keys else ""
    return wrong(path, keys, f"{message[:1].lower()}{message[1:]}{got}; docs/tasks.md says what a task.yaml holds")


def _kinds(keys: Keys) -> dict[str, Any]:
    """The types that a part of the file may have, by their kinds."""
    return {str(each.__struct_config__.tag): each for each in typing.get_args(_PARTS[str(keys[0])])}


def _struct(values: Any, keys: Keys) -> Any:
    """The type of what is below these keys; None for no struct, or one that is not known."""
    if not keys:
        return TaskFile
    if keys[0] not in _PARTS:
        return None
    part = _below(values, keys[:1])
    named = part.get(_KIND) if isinstance(part, dict) else None
    found = _kinds(keys).get(named) if isinstance(named, str) else None
    for key in keys[1:] if found else ():
        kind = typing.get_type_hints(found).get(str(key))
        found = kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None
    return found


def _choices(values: Any, keys: Keys) -> list[str]:
    """The texts that may stand below these keys, where there are only some."""
    owner = _struct(values, keys[:-1]) if keys else None
    if owner is None or not isinstance(keys[-1], str):
        return []
    kind = typing.get_type_hints(owner).get(keys[-1])
    kinds = [kind, *typing.get_args(kind)]
    return [text for each in kinds if typing.get_origin(each) is typing.Literal for text in typing.get_args(each)]


def _below(values: Any, keys: Keys) -> Any:
    for key in keys:
        values = values[key]
    return values
