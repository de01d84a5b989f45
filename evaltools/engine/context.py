"""Contexts of examples, values of a task's own types, as they come from another process: data, never code."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np
from msgspec import Struct, structs

from evaltools.runtime.process.messages import WrongMessage, decoded, encoded, from_plain, to_plain


def packed(value: Any) -> bytes:
    """A value of a user's own types as MessagePack, for :func:`unpacked`.

    Empty for one that is not made of None, numbers, texts, bytes, arrays, lists, tuples, dictionaries, and dataclasses
    and structs of modules.
    """
    try:
        return encoded(_described(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return b""


def unpacked(content: bytes) -> Any:
    """What was packed; raises :class:`WrongMessage` for anything else.

    Only dataclasses and structs that are there already are made, without a call of any function of theirs.
    """
    try:
        return _restored(decoded(content, Any))
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        raise WrongMessage(f"a value that cannot be read ({error})") from error


def _described(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str, bytes):
        return value
    if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind in "biufcSU":
        return ["array" if kind is np.ndarray else "number", *to_plain(np.asarray(value))]
    if kind in (list, tuple):
        return [kind.__name__, *map(_described, value)]
    if kind is dict:
        name, items = "dict", value
    else:
        _require_data(kind)
        name = f"{kind.__module__}:{kind.__qualname__}"
        items = structs.asdict(value) if isinstance(value, Struct) else vars(value)
    return [name, *([_described(key), _described(each)] for key, each in items.items())]


def _restored(plain: Any) -> Any:
    if not isinstance(plain, list):
        return plain
    name, *items = plain
    if name in ("array", "number"):
        array = from_plain(np.ndarray, items).copy()
        return array if name == "array" else array[()]
    if name in ("list", "tuple"):
        return (list if name == "list" else tuple)(map(_restored, items))
    values = {_restored(key): _restored(each) for key, each in items}
    if name == "dict":
        return values
    module, _, path = name.partition(":")
    kind = operator.attrgetter(path)(sys.modules[module])
    _require_data(kind)
    if issubclass(kind, Struct):
        return kind(**values)
    restored = object.__new__(kind)
    vars(restored).update(values)
    return restored


def _require_data(kind: Any) -> None:
    """Raise :class:`TypeError` for a class of whose instances the fields are not all."""
    if isinstance(kind, type) and "<locals>" not in kind.__qualname__:
        if issubclass(kind, Struct) and not hasattr(kind, "__post_init__"):
            return
        if "__dataclass_fields__" in vars(kind) and kind.__bases__ == (object,) and "__slots__" not in vars(kind):
            return
    raise TypeError(f"{kind} is no class of data alone")
