"""Options as Python writes them, as the flags that say the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evaltools.parameter import Parameter
from evaltools.request import text_of
from evaltools.request.flags import GivenFlags

AnyPath = str | Path


def flags_of(values: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> GivenFlags:
    """The flags; None is none, several values give a flag that may be repeated so often.

    Raises :class:`~evaltools.errors.UsageError` for one that has no effect without another.

    >>> flags_of({"graph": ["a", "b"], "quiet": True}, {"graph": Parameter("graph", "", repeatable=True),
    ...     "quiet": Parameter("quiet", "", default=False)}).given
    (('graph', 'a'), ('graph', 'b'), ('quiet', 'true'))
    """
    given = []
    for name, value in values.items():
        if value is None:
            continue
        is_one = isinstance(value, str) or not isinstance(value, Iterable) or not parameters[name].repeatable
        given += [(name, text_of(each)) for each in ([value] if is_one else value)]
    flags = GivenFlags(tuple(given), parameters)
    flags.refuse_without_effect()
    return flags
