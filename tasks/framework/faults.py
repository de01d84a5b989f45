"""A fault in the code of a task, in one sentence that names its file and line."""

from __future__ import annotations

import inspect
import os
import reprlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from evaltools.errors import DEBUG

FAULTS: Final = (Exception, SystemExit, GeneratorExit)
"""What the code of a task may raise; all else, such as Ctrl-C, ends the run."""
_OURS: Final = Path(__file__).resolve().parents[1]
_LONGEST: Final = 300
_SHORT: Final = reprlib.Repr()
"""Of a container it writes a few elements: a few lines of YAML can stand for thousands of millions."""
_SHORT.maxother = _SHORT.maxstring = _LONGEST
_SHORT.maxlevel = 3


def shown(value: object) -> str:
    """A value as Python writes it, or its type where its own code fails at that.

    >>> shown("x"), shown(None)
    ("'x'", 'None')
    """
    try:
        return repr(value)[:_LONGEST] if isinstance(value, (str, int, float)) else _SHORT.repr(value)[:_LONGEST]
    except FAULTS:
        return f"a {type(value).__name__}"


def sentence(error: BaseException, doing: str, place: str) -> str:
    """What was raised, and where: the last line of the file of ``place``, which is what is known without an error."""
    if os.environ.get(DEBUG):
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}, line {error.lineno}"
    else:
        place = _raised_at(error, place.partition(", line ")[0]) or place
    message = " ".join(_text_of(error).split())[:_LONGEST]
    return f"{place}: {doing}: {type(error).__name__}{f': {message}' if message else ''}"


def _text_of(error: BaseException) -> str:
    """What an error says; its own code may fail at that."""
    try:
        return str(error)
    except FAULTS as own_fault:
        return f"its text cannot be made: {type(own_fault).__name__}"


def described(error: Exception, place: str) -> str:
    """An error that states what is wrong, behind its place; without that where it is evaltools' own code."""
    is_ours = _OURS in Path(place.partition(", line ")[0]).resolve().parents
    return str(error) if is_ours else f"{place}: {error}"


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
