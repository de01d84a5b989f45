"""Result files of ``evaltools locate``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from evaltools.result.json_file import json_in, misfit
from evaltools.result.locate import LocateResult

_WHAT: Final = "result of evaltools locate"
_ERRORS: Final = (("operators", ("local", "accumulated")), ("outputs", ("errors",)))
_SIZES: Final = ("worst", "median", "relative")


def located_in(content: bytes, path: Path) -> LocateResult:
    """The result in the content of a file; JSON has no infinity, so that an infinite error stands there as null.

    Raises :class:`DataError` for content that does not fit, naming the field.
    """
    document = json_in(content, path, dict[str, Any], _WHAT)
    for errors in _errors(document):
        errors.update({name: math.inf for name in _SIZES if name in errors and errors[name] is None})
    try:
        return msgspec.convert(document, LocateResult, str_keys=True)
    except msgspec.ValidationError as error:
        raise misfit(path, _WHAT, error) from error


def _errors(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The errors of tensors, wherever a document that may be anything has some."""
    for name, fields in _ERRORS:
        entries = document.get(name)
        for entry in entries if isinstance(entries, list) else ():
            for field in fields:
                errors = entry.get(field) if isinstance(entry, dict) else None
                if isinstance(errors, dict):
                    yield errors
