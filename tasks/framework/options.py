"""The options of a task: the typed parameters of its function."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.parameter import Parameter, TypeName, Value, did_you_mean
from evaltools.tasks.framework.definition import is_setting
from evaltools.text import with_article

_TYPES: Final[dict[type, TypeName]] = {
    bool: "bool", int: "int32", float: "float", str: "string", Path: "string", tuple: "string"
}  # fmt: skip
_KNOWN: Final = (
    "bool, int, float, str, Path, one of these | None, Literal[...] of texts or numbers, or tuple[str, ...] for an "
    "option that may be repeated"
)


class Option(Struct, frozen=True):
    """One option: its flag, and what the function takes."""

    parameter: Parameter
    type: type
    default: Any = None

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.parameter.required

    def read(self, given: Any) -> Any:
        """What the function is given for a flag's text, or for a value from Python; raises :class:`UsageError`."""
        name = self.parameter.name
        if self.type is tuple:
            return (given,) if isinstance(given, str) else tuple(map(str, given))
        if isinstance(given, str):
            if not given and self.type is Path:
                raise UsageError(f"--{name} is empty; give a path")
            return self.type(self.parameter.parse(given))
        if given is None and not self.required and self.default is None:
            return None
        if _is_one_of(given, self.type, self.parameter.choices):
            return float(given) if self.type is float else given
        expected = " or ".join(map(repr, self.parameter.choices)) or _shown(self.type)
        raise UsageError(f"{name}={given!r}: expected {expected}, got {_shown(type(given))}")


def options_of(function: Callable[..., Any], place: str) -> tuple[Option, ...]:
    """The options that a function's parameters declare; ``place`` is its file and line, for messages.

    A text in ``Annotated[Path, "Folder of pictures"]`` is the option's help. Raises :class:`UsageError` for a parameter
    that cannot be an option.

    >>> def own(images: Path, size: int = 3): ...
    >>> [(option.parameter.name, option.required, option.default) for option in options_of(own, "own.py")]
    [('images', True, None), ('size', False, 3)]
    """
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError, AttributeError, SyntaxError) as error:
        raise UsageError(f"{place}: the types of its parameters cannot be read: {error}") from error
    return tuple(
        _option(parameter, hints.get(parameter.name), place)
        for parameter in parameters
        if not is_setting(hints.get(parameter.name))
    )


def values_of(options: tuple[Option, ...], given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """What the function is called with; raises :class:`UsageError` for options that are unknown, missing or wrong.

    >>> def own(images: Path, size: int = 3): ...
    >>> values_of(options_of(own, "own.py"), {"images": "val", "size": "5"}, "own")
    {'images': PosixPath('val'), 'size': 5}
    """
    known = {option.parameter.name: option for option in options}
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known)
            there_are = ", ".join(f"--{each}" for each in known) or "none"
            raise UsageError(f"{what} has no option {name!r}.{hint} It has {there_are}")
    missing = [f"--{name}=..." for name, option in known.items() if option.required and name not in given]
    if missing:
        raise UsageError(f"{what} needs {' '.join(missing)}")
    return {name: option.read(given[name]) if name in given else option.default for name, option in known.items()}


def _option(parameter: inspect.Parameter, hint: Any, place: str) -> Option:
    name = parameter.name
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise UsageError(f"{place}: the parameter {parameter} cannot be an option; give each option a name of its own")
    if hint is None:
        raise UsageError(f"{place}: the parameter {name} has no type; write such as {name}: Path, or one of {_KNOWN}")
    stated, hint = _stated(hint)
    wanted, choices, may_be_none = _type_of(hint)
    if wanted is None:
        raise UsageError(f"{place}: no option can be of the type of {name}, {_shown(hint)}; use {_KNOWN}")
    required = parameter.default is parameter.empty
    default = None if required else parameter.default
    if default is None and not required and not may_be_none:
        raise UsageError(f"{place}: the default of {name} is None; write {name}: {_shown(wanted)} | None = None")
    if default is not None and not _is_one_of(default, wanted, choices):
        raise UsageError(f"{place}: the default of {name} is {default!r}, which is not {with_article(_shown(hint))}")
    must = "Required." if required and not stated.help.endswith("Required.") else ""
    declared = replace(
        stated,
        name=name,
        help=f"{stated.help} {must}".strip(),
        default=stated.default if default is None else _flag_default(wanted, default),
        declared_type=_TYPES[wanted],
        choices=choices,
        repeatable=wanted is tuple,
        role="input_file" if wanted is Path and stated.role == "plain" else stated.role,
        required=required,
    )
    return Option(declared, wanted, default)


def _is_one_of(value: Any, wanted: type, choices: tuple[Value, ...]) -> bool:
    if choices and value not in choices:
        return False
    if isinstance(value, bool):
        return wanted is bool
    return isinstance(value, wanted) or (wanted is float and isinstance(value, int))


def _flag_default(wanted: type, default: Any) -> Value:
    """What ``--help`` says."""
    if wanted is tuple:
        return " ".join(default)
    value: Value = str(default) if wanted is Path else wanted(default)
    return value


def _stated(hint: Any) -> tuple[Parameter, Any]:
    """What ``Annotated`` says of an option, and the type without ``Annotated``.

    It has the help as a text, or a :class:`Parameter`, which says more. In ``Annotated[...] | None`` they are the inner
    one's.
    """
    if _is_union(hint):
        found = (_stated(entry)[0] for entry in typing.get_args(hint))
        return next((each for each in found if each.help), Parameter("", "")), hint
    if typing.get_origin(hint) is not typing.Annotated:
        return Parameter("", ""), hint
    for entry in hint.__metadata__:
        if isinstance(entry, Parameter):
            return entry, hint.__origin__
        if isinstance(entry, str):
            return Parameter("", entry), hint.__origin__
    return Parameter("", ""), hint.__origin__


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _type_of(hint: Any) -> tuple[type | None, tuple[Value, ...], bool]:
    """Type, choices, and whether None is allowed; no type for what cannot be an option."""
    if typing.get_origin(hint) is typing.Annotated:
        return _type_of(hint.__origin__)
    if _is_union(hint):
        others = [entry for entry in typing.get_args(hint) if entry is not type(None)]
        if len(others) != 1:
            return None, (), False
        wanted, choices, _ = _type_of(others[0])
        return wanted, choices, True
    if hint == tuple[str, ...]:
        return tuple, (), False
    if typing.get_origin(hint) is Literal:
        values = typing.get_args(hint)
        kinds = {type(value) for value in values}
        only = kinds.pop() if len(kinds) == 1 else None
        return (only if only in (str, int, float) else None), values, False
    return (hint if hint in _TYPES else None), (), False


def _shown(hint: Any) -> str:
    is_plain = isinstance(hint, type) and not typing.get_args(hint)
    return hint.__name__ if is_plain else re.sub(r"\b(?:\w+\.)+", "", str(hint))
