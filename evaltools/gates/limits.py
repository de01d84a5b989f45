"""Limits that are flags of a task: each is a criterion on a figure of its outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.gates.criteria import Criterion
from evaltools.gates.decide import decide
from evaltools.gates.evidence import Evidence
from evaltools.known_tasks import all_metrics
from evaltools.parameter import Parameter
from evaltools.result.figure import Part


class LimitCheck(Struct, frozen=True):
    """A limit compared with a figure of an output; ``found`` is null where the figure is not a number."""

    limit: str
    output: str
    found: float | None
    kept: bool


def parse_limit(parameter: Parameter, text: str) -> Criterion:
    """Read ``VALUE`` or ``OUTPUT=VALUE`` of a flag with a ``limit``; raises :class:`UsageError`.

    >>> criterion = parse_limit(Parameter("max_quanta", "", limit="max_quanta"), "Identity=2")
    >>> criterion.figure, criterion.output, criterion.at_most, criterion.value
    ('max_quanta', 'Identity', True, 2.0)
    """
    name, metric = parameter.name, all_metrics()[parameter.limit]
    output, equals, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    negative = value < 0 and not metric.may_be_negative
    if not math.isfinite(value) or negative or (equals and not output):
        expected = "a number" if metric.may_be_negative else "a number of 0 or more"
        raise UsageError(f"--{name}={text}: use {expected}, for all outputs or as OUTPUT=NUMBER for one")
    return Criterion(
        text=f"--{name}={output}{equals}{value:g}",
        metric=metric,
        output=output or None,
        kind="value",
        at_most=metric.better == "lower",
        value=value,
        confidence=None,
    )


def check_limits(limits: Sequence[Criterion], outputs: Sequence[Part]) -> list[LimitCheck]:
    """Compare limits with the figures of each output.

    A limit for all outputs skips those without such a figure (quanta of an output that is not quantised); where none
    has it, the limit is broken.
    """
    checks = []
    for limit in limits:
        named = [output for output in outputs if limit.output is None or limit.output in output.names]
        having = [output for output in named if limit.output is not None or limit.figure in output.figures]
        checks += [_check(limit, output) for output in having or named]
    return checks


def _check(limit: Criterion, output: Part) -> LimitCheck:
    figure = output.figures.get(limit.figure)
    found = None if figure is None else figure.number
    verdict = decide(limit, Evidence("", outputs=[output])).verdict
    return LimitCheck(
        limit.text, output.name, found if found is not None and math.isfinite(found) else None, verdict == "pass"
    )
