"""The options of functions in Python: those of commands, by the names that Python has for them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, TypeVar

from evaltools.configuration import CONFIGURATION_NAMES, CONFIGURATION_PARAMETERS
from evaltools.errors import EvaltoolsError, UsageError
from evaltools.parameter import BOOLEANS, Parameter, did_you_mean
from evaltools.request import Options

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

_TYPES: Final = {"bool": "bool", "int32": "int", "float": "float"}
_FLAG: Final = re.compile(r"(?:evaltools [a-z]|pip install |scripts/)[^,;.]*|--([a-z]\w*)(=(?:true|false)\b)?")
"""A command, whose flags keep their names, or a flag."""


def in_python(parameters: Mapping[str, Parameter], arguments: Collection[str]) -> dict[str, Parameter]:
    """The options that a function has beside its arguments, by their names in Python: the last ones.

    >>> list(in_python({"graph": Parameter("graph", "", short="model"), "seed": Parameter("seed", "")}, ["model"]))
    ['seed']
    """
    return {
        each.names[-1]: each
        for each in parameters.values()
        if each.name not in CONFIGURATION_PARAMETERS
        and not each.instead_in_python
        and not set(arguments) & set(each.names)
    }


def options_of(
    values: Mapping[str, Any],
    parameters: Mapping[str, Parameter],
    options: Mapping[str, Any] | None = None,
    arguments: Collection[str] = (),
) -> Options:
    """The options of a request; None states none, several values are those of an option that may be repeated.

    ``options`` are what a function was given beside its ``arguments``. Raises :class:`~evaltools.errors.UsageError` for
    options that there are not, and for one that has no effect without another.

    >>> dict(options_of({"graph": ["a", "b"], "runs": 3}, {"graph": Parameter("graph", "", repeatable=True),
    ...     "runs": Parameter("runs", "", default=1)}).stated)
    {'graph': ('a', 'b'), 'runs': 3}
    """
    whole_names = {name: each.name for each in parameters.values() for name in each.names}
    known = in_python(parameters, arguments)
    for name in options or {}:
        if name in CONFIGURATION_NAMES:
            configured = f"Configuration({name}=...)"
            shown = f"test={configured}" if "test" in arguments else f'tests={{"{name}": {configured}}}'
            raise UsageError(f"{name} is about a configuration; give {shown}")
        if name not in whole_names:
            raise UsageError(f"there is no option {name!r}.{did_you_mean(name, [*arguments, *known])}")
        parameter = parameters[whole_names[name]]
        if instead := parameter.instead_in_python:
            raise UsageError(f"{name}: {instead}")
        if parameter.names[-1] not in known or parameter.name in values:
            raise UsageError(f"{name}: it has an argument of its own, such as model, images or inputs; give only that")
    stated = {**values, **{whole_names[name]: value for name, value in (options or {}).items()}}
    found = Options.of({name: value for name, value in stated.items() if value not in (None, [], ())}, parameters)
    found.refuse_without_effect()
    return found


def with_options(
    parameters: Mapping[str, Parameter], *, more: bool = False, of_configuration: bool = False
) -> Callable[[Callable[Arguments, Returned]], Callable[Arguments, Returned]]:
    """Give a function the signature with its options, and have its errors name them as Python does.

    The signature is what notebooks complete by, and what ``evaltools/__init__.pyi`` is generated from. ``more``: there
    may be options that only the call itself makes known. ``of_configuration``: all parameters are those of one.
    """

    def decorate(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
        @functools.wraps(function)
        def call(*given: Arguments.args, **options: Arguments.kwargs) -> Returned:
            with errors_in_python(parameters):
                return function(*given, **options)

        vars(call)["__signature__"] = _signature(function, parameters, more, of_configuration)
        return call

    return decorate


@contextmanager
def errors_in_python(parameters: Mapping[str, Parameter]) -> Iterator[None]:
    """Have errors name flags as Python does."""
    try:
        yield
    except EvaltoolsError as error:
        error.args = (text_in_python(str(error), parameters), *error.args[1:])
        raise


def text_in_python(text: str, parameters: Mapping[str, Parameter]) -> str:
    """A message with flags by their names in Python; those of commands in it stay.

    >>> text_in_python("--graph=m: try --seed=true, or evaltools doctor --help.",
    ...     {"graph": Parameter("graph", "", short="model_file model")})
    'model=m: try seed=True, or evaltools doctor --help.'
    """
    names = {name: each.names[-1] for each in parameters.values() for name in each.names}

    def renamed(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        return names.get(found[1], found[1]) + (f"={BOOLEANS[found[2][1:]]}" if found[2] else "")

    return _FLAG.sub(renamed, text)


def _signature(
    function: Callable[..., Any], parameters: Mapping[str, Parameter], more: bool, of_configuration: bool
) -> inspect.Signature:
    """That of the function, with its options in place of ``**options``."""
    signature = inspect.signature(function)
    *own, others = signature.parameters.values()
    known = in_python(parameters, [each.name for each in own])
    if of_configuration:
        known = {name: each for each in parameters.values() for name in each.names}
    options = [parameter_of(name, each) for name, each in known.items()]
    ordered = sorted(options, key=lambda each: each.default is not inspect.Parameter.empty)
    return signature.replace(parameters=[*own, *ordered, *([others] if more else [])])


def parameter_of(name: str, parameter: Parameter) -> inspect.Parameter:
    """An option in a signature: its type and default, and None where it is left out unless given.

    >>> print(parameter_of("seed", Parameter("seed", "", default=1)))
    seed: 'int' = 1
    """
    is_open = parameter.default == "" and not parameter.required
    default: Any = inspect.Parameter.empty if parameter.required else None if is_open else parameter.default
    annotation = _type_of(parameter) + (" | None" if is_open else "")
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _type_of(parameter: Parameter) -> str:
    choices = [choice for choice in parameter.choices if choice != ""]
    if choices and not parameter.has_versions:
        one = f"Literal[{', '.join(map(repr, choices))}]"
    elif parameter.is_path:
        one = "str | Path"
    else:
        one = _TYPES.get(parameter.type, "str | float")
    return f"{one} | Sequence[{one}]" if parameter.may_be_several else one
