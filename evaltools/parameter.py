"""One flag, declared once: everything that prints, reads, checks or documents it is derived from the declaration."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from evaltools.errors import UsageError

Value = bool | int | float | str
TypeName = Literal["bool", "int32", "float", "string"]

_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_INT32_LIMIT: Final = 1 << 31
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")


@dataclass(frozen=True)
class Parameter:
    """A command-line flag: its name, type, default and meaning.

    ``choices`` lists the accepted strings or numbers (empty: any). ``platforms`` says where the flag exists or does
    something in the native tools. ``repeatable`` flags may be given several times. ``log`` is what native logs call the
    flag; empty where they do not name it.
    """

    name: str
    type: TypeName
    default: Value
    help: str
    platforms: str = "all"
    choices: tuple[Value, ...] = ()
    repeatable: bool = False
    log: str = ""

    def parse(self, text: str) -> Value:
        """Read the text behind ``--name=``; stricter than the native tools, which accept ``4abc`` as 4.

        >>> Parameter("use_gpu", "bool", False, "").parse("true")
        True
        """
        value = self._read(text)
        if self.choices and value not in self.choices:
            accepted = ", ".join(format_value(choice) for choice in self.choices if choice != "")
            hint = did_you_mean(text, [format_value(choice) for choice in self.choices])
            raise UsageError(f"--{self.name}={text}: not an accepted value; use one of {accepted}.{hint}")
        return value

    def _read(self, text: str) -> Value:
        if self.type == "string":
            return text
        try:
            if self.type == "bool":
                return _BOOLEANS[text]
            if self.type == "float":
                return _finite(float(text))
            return _int32(text)
        except (KeyError, ValueError):
            expected = {"bool": "true, false, 1 or 0", "float": "a finite number", "int32": "a whole number (32 bit)"}
            message = f"--{self.name}={text}: not a valid value; use {expected[self.type]}"
            raise UsageError(message) from None

    def format(self, value: Value) -> str:
        """Print the flag as the native tools read it, ``--name=value``."""
        return f"--{self.name}={format_value(value)}"

    def logged(self, value: Value) -> str:
        """The flag as native logs name it: booleans as 1 and 0, floats with six digits, ``%g``.

        >>> Parameter("min_secs", "float", 1.0, "", log="Min runs duration (seconds)").logged(0.5)
        'Min runs duration (seconds): [0.5]'
        """
        return f"{self.log}: [{_as_streamed(value)}]"


def _int32(text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text) or not -_INT32_LIMIT <= int(text) < _INT32_LIMIT:
        raise ValueError(text)
    return int(text)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(value)
    return value


def format_value(value: Value) -> str:
    """A value as flag text: booleans as ``true`` and ``false``, everything else as ``str`` gives it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _as_streamed(value: Value) -> str:
    """A value as a C++ stream prints it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{value:g}" if isinstance(value, float) else str(value)


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """`` Did you mean ...?`` for the nearest known word, or an empty string.

    >>> did_you_mean("use_xnpack", ["use_gpu", "use_xnnpack"])
    ' Did you mean use_xnnpack?'
    """
    nearest = difflib.get_close_matches(wrong, [word for word in known if word], n=1, cutoff=0.6)
    return f" Did you mean {nearest[0]}?" if nearest else ""


def split_flag(word: str, known: Mapping[str, Parameter]) -> tuple[str, str]:
    """``--use-gpu=true``, ``use_gpu=true``, ``--use_gpu`` and ``--nouse_gpu`` -> name and text.

    >>> known = {"use_gpu": Parameter("use_gpu", "bool", False, "")}
    >>> split_flag("--nouse_gpu", known), split_flag("use-gpu", known), split_flag("--other=a=b", known)
    (('use_gpu', 'false'), ('use_gpu', 'true'), ('other', 'a=b'))
    """
    name, equals, text = word.removeprefix("--").partition("=")
    name = name.replace("-", "_")
    if equals:
        return name, text
    if name in known and known[name].type == "bool":
        return name, "true"
    positive = name.removeprefix("no")
    if name not in known and positive in known and known[positive].type == "bool":
        return positive, "false"
    if name in known:
        raise UsageError(f"--{name} needs a value: --{name}=...")
    raise UsageError(f"{word!r}: no such flag.{did_you_mean(name, known)}")
