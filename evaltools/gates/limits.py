"""Limits that the user sets: without them there is no pass or fail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from evaltools.errors import UsageError
from evaltools.metrics.output_difference import OutputDifference

LimitName = Literal["max_avg_error", "max_quanta", "min_snr_db"]
LIMIT_NAMES: Final[tuple[LimitName, ...]] = ("max_avg_error", "max_quanta", "min_snr_db")


@dataclass(frozen=True)
class Limit:
    """One limit; ``output`` is a name, a signature name or a number, None for every output that has such a figure."""

    name: LimitName
    value: float
    output: str | None

    def __str__(self) -> str:
        return f"--{self.name}={f'{self.output}=' if self.output else ''}{self.value:g}"


@dataclass(frozen=True)
class LimitCheck:
    """A limit held against a figure of an output; ``found`` is null where the figure is no number."""

    limit: str
    output: str
    found: float | None
    kept: bool


def parse_limit(name: LimitName, text: str) -> Limit:
    """Read ``VALUE`` or ``OUTPUT=VALUE``; raises :class:`UsageError`.

    >>> parse_limit("max_quanta", "Identity=2")
    Limit(name='max_quanta', value=2.0, output='Identity')
    """
    output, equals, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    negative = value < 0 and name != "min_snr_db"
    if math.isnan(value) or negative or (equals and not output):
        expected = "a number" if name == "min_snr_db" else "a number of 0 or more"
        raise UsageError(f"--{name}={text}: use {expected}, for all outputs or as OUTPUT=NUMBER for one")
    return Limit(name, value, output or None)


def check_limits(
    limits: Sequence[Limit], outputs: Sequence[tuple[OutputDifference, Sequence[str]]]
) -> list[LimitCheck]:
    """Hold limits against the outputs of one configuration, each with the names it goes by.

    NaN and infinite values in an output break every limit on it. A limit for all outputs skips those without such a
    figure (quanta of an output that is not quantised); where none has it, the limit is broken.
    """
    checks = []
    for limit in limits:
        named = [found for found, names in outputs if limit.output is None or limit.output in names]
        having = [found for found in named if limit.output is not None or applies(limit, found)]
        checks += [_check(limit, found) for found in having or named]
    return checks


def applies(limit: Limit, found: OutputDifference) -> bool:
    """Whether an output has the figure that a limit is about, or would have it if the shapes were the same."""
    if limit.name == "max_quanta":
        return found.quanta is not None or not found.same_shape
    return found.elements > 0 and (limit.name != "max_avg_error" or found.native is not None)


def _check(limit: Limit, found: OutputDifference) -> LimitCheck:
    figure = _figure(limit, found)
    sound = found.same_shape and not any(side.nan or side.infinite for side in (found.test, found.reference))
    if limit.name == "min_snr_db":
        kept = found.identical or (figure is not None and figure >= limit.value)
    else:
        kept = figure is not None and figure <= limit.value
    return LimitCheck(str(limit), found.output, figure, kept and sound)


def _figure(limit: Limit, found: OutputDifference) -> float | None:
    if limit.name == "max_quanta":
        return None if found.quanta is None else float(found.quanta.max)
    if limit.name == "min_snr_db":
        return found.snr_db
    return None if found.native is None else found.native.avg_error
