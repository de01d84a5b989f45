"""A fault in the code of a task, in one sentence that names its file and line."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from evaltools.errors import DEBUG

_OURS: Final = Path(__file__).resolve().parents[1]
_LONGEST: Final = 300


def sentence(error: BaseException, doing: str, place: str) -> str:
    """What was raised, and where: the last line of the file of ``place``, which is what is known without an error."""
    if os.environ.get(DEBUG):
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}, line {error.lineno}"
    else:
        place = _raised_at(error, place.partition(", line ")[0]) or place
    said = " ".join(_text_of(error).split())[:_LONGEST]
    return f"{place}: {doing}: {type(error).__name__}{f': {said}' if said else ''}"


def _text_of(error: BaseException) -> str:
    """What an error says; its own code may fail at that."""
    try:
        return str(error)
    except Exception as own_fault:
        return f"its text cannot be made: {type(own_fault).__name__}"


def place_of(function: Callable[..., Any]) -> str:
    """File and first line of a function, as far as they are known.

    >>> place_of(place_of).rpartition("/")[2].partition(", line")[0]
    'faults.py'
    """
    while hasattr(function, "func"):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return getattr(function, "__name__", type(function).__name__)
    return f"{code.co_filename}, line {code.co_firstlineno}"


def _raised_at(error: BaseException, file: str) -> str | None:
    """The last line in the file, else the last one that is not in evaltools."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == file]
    others = [frame for frame in frames if _OURS not in Path(frame.filename).resolve().parents]
    found = (own or others)[-1:]
    return f"{found[0].filename}, line {found[0].lineno}" if found else None
