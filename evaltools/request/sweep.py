"""``--sweep``: every combination of some values, as configurations."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.delegates import DELEGATES
from evaltools.errors import UsageError
from evaltools.parameter import Value, did_you_mean, split_flag

_ALIASES: Final = {"num_interpreter_threads": "num_threads", "threads": "num_threads"}
_LONGEST_NAME: Final = 60
_AS_FLAG: Final = re.compile(r"(?<=\w):|=")


def sweep_configurations(texts: Sequence[str], own: Sequence[tuple[str, str]]) -> list[Configuration]:
    """Every combination of the values in ``--sweep``, each on top of the flags ``own`` of the command line.

    A text has one or more ``flag=value,value`` or ``flag:value,value``, with blanks between; ``threads`` is short for
    ``num_threads``. Raises :class:`UsageError`.

    >>> found = sweep_configurations(["num_threads=1,2 use_xnnpack=true,false"], [])
    >>> [entry.name for entry in found][:2]
    ['num_threads=1 use_xnnpack=true', 'num_threads=1 use_xnnpack=false']
    """
    axes: dict[str, list[str]] = {}
    for word in " ".join(texts).split():
        name, values = split_flag(_AS_FLAG.sub("=", word, count=1), CONFIGURATION_PARAMETERS)
        name = _ALIASES.get(name, name)
        if name not in CONFIGURATION_PARAMETERS:
            hint = did_you_mean(name, CONFIGURATION_PARAMETERS)
            raise UsageError(f"--sweep: {name!r} is not a flag of a configuration.{hint}")
        if name in axes:
            raise UsageError(f"--sweep: {name} is given twice; put all its values behind one, {name}=a,b,c")
        axes[name] = values.split(",")
        if "" in axes[name] or len(_parsed(name, axes[name])) < len(axes[name]):
            raise UsageError(f"--sweep: {word!r} has an empty value, or one twice; use {name}=a,b,c")
    if texts and not axes:
        raise UsageError('--sweep is empty; use "num_threads=1,2,4 use_xnnpack=true,false"')
    switches = {delegate.enabled_by for delegate in DELEGATES}
    replaced = {*axes, "delegate"} if switches & set(axes) else set(axes)
    kept = [(name, value) for name, value in own if _ALIASES.get(name, name) not in replaced]
    combinations = itertools.product(*([(name, value) for value in values] for name, values in axes.items()))
    return [_swept(kept, list(combination)) for combination in combinations] if axes else []


def _parsed(name: str, values: Sequence[str]) -> set[Value]:
    try:
        return {CONFIGURATION_PARAMETERS[name].parse(value) for value in values if value}
    except UsageError as error:
        raise UsageError(f"--sweep: {error}") from None


def _swept(kept: list[tuple[str, str]], combination: list[tuple[str, str]]) -> Configuration:
    """The configuration of a combination, named after its values.

    Of a path only the last part is in the name, which has 60 characters at most.
    """
    name = " ".join(f"{flag}={PurePath(value).name or value}" for flag, value in combination)
    if len(name) > _LONGEST_NAME:
        raise UsageError(f"--sweep: the name {name!r} is too long; state it with --config NAME: flags instead")
    try:
        return Configuration.from_flags(name, [*kept, *combination])
    except UsageError as error:
        raise UsageError(f"--sweep, {name}: {error}") from None
