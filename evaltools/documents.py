"""JSON, TOML and YAML from elsewhere -> values. Nothing else parses them.

Whatever is wrong with a text, also brackets in brackets without end, is a :class:`ValueError` with the reason.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

if TYPE_CHECKING:
    import yaml

Kind = TypeVar("Kind")

_MOST_KEY_PARTS: Final = 64
_LONG_KEY: Final = re.compile(rf"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{_MOST_KEY_PARTS}}}""")
"""The time that TOML's reader takes for ``a.a.a...`` grows with the square of its length."""


def json_as(content: bytes | str, kind: type[Kind]) -> Kind:
    """JSON as structs or other types; the cause of the error is that of msgspec.

    >>> json_as(b"[1, 2]", tuple[int, int])
    (1, 2)
    """
    with _told():
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error


def json_values(content: bytes | str) -> Any:
    """JSON as plain values; texts may hold file names that are no Unicode.

    >>> json_values("[" * 100_000)
    Traceback (most recent call last):
    ValueError: it is nested too deeply
    """
    with _told():
        return json.loads(content)


def toml_values(text: str) -> dict[str, Any]:
    """TOML as plain values."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    if _LONG_KEY.search(text):
        raise ValueError(f"it has a key of more than {_MOST_KEY_PARTS} parts")
    with _told():
        return tomllib.loads(text)


def yaml_values(text: str, loader: type[yaml.SafeLoader]) -> Any:
    """YAML as plain values."""
    import yaml

    with _told():
        try:
            return yaml.load(text, loader)
        except yaml.YAMLError as error:
            raise ValueError(" ".join(str(error).split())) from error


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
