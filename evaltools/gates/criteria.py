"""A limit as a user writes it: ``top1 >= 0.70``, ``top1 drop <= 0.005 at 95 %``, ``max_quanta[scores] <= 2``.

Drops, rises and ratios are against the reference of the same run; with ``vs old`` behind them they are against the
earlier result of ``--against``: ``top1 drop vs old <= 0.5 points at 95 %``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, Literal

from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.known_tasks import all_metrics
from evaltools.metrics.metric import Metric, metric_of_own_task
from evaltools.metrics.resampled import MOST_CONFIDENCE
from evaltools.parameter import did_you_mean

LimitKind = Literal["value", "drop", "rise", "ratio"]

_MOST_FOR_RATIO: Final = 0.975
_HUNDREDTHS: Final = ("%", "point", "points")
_LIMIT: Final = re.compile(
    r"\s*(?P<figure>\w+)\s*(?:\[(?P<output>[^\]]+)\])?\s*(?P<kind>drop|rise|ratio)?\s*(?P<old>vs\s+old)?\s*"
    r"(?P<sign><=|>=)\s*"
    r"(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>%|points?|ms)?\s*"
    r"(?:at\s+(?P<confidence>\d+(?:\.\d+)?)\s*%)?\s*"
)


class Criterion(Struct, frozen=True):
    """One limit on one figure, that of ``metric``.

    ``kind``: the figure itself, its ``drop`` or ``rise`` against the reference, or its ``ratio`` to that of the
    reference; ``of_old``: against the earlier result instead.
    ``at_most`` is ``<=``, else ``>=``. ``confidence``, 0.5..1, asks for a bound instead of the figure as it is found.
    ``unit`` is that in which the limit is written; ``value`` of a share is 0..1 all the same. ``broken_from`` is where
    one with a confidence begins to be broken, if not at ``value``.
    """

    text: str
    metric: Metric
    output: str | None
    kind: LimitKind
    at_most: bool
    value: float
    confidence: float | None
    unit: str = ""
    of_old: bool = False
    broken_from: float | None = None

    @property
    def figure(self) -> str:
        """The name of the figure."""
        return self.metric.name

    @property
    def is_relative(self) -> bool:
        """Whether the limit is on a comparison with the reference."""
        return not self.of_old and (self.kind != "value" or self.metric.of_reference)


def parse_criterion(text: str, of_own_task: bool = False) -> Criterion:
    """Read a limit; raises :class:`UsageError` for what is none, what could never be decided, and what cannot fail.

    ``of_own_task``: it may be about a metric that a task of one's own gives, which only its result knows.

    >>> criterion = parse_criterion("top1 drop <= 0.5 points at 95 %")
    >>> criterion.figure, criterion.kind, criterion.value, criterion.confidence
    ('top1', 'drop', 0.005, 0.95)
    """
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is not a limit; write such as 'top1 >= 0.70' or 'top1 drop <= 0.005 at 95 %'")
    if found["kind"] == "ratio":
        raise UsageError(f"{text!r}: only times have a ratio: 'latency_ratio <= 0.8'")
    known = all_metrics()
    aliases = {alias: name for name, metric in known.items() for alias in metric.aliases}
    name = aliases.get(found["figure"], found["figure"])
    if name not in known and not of_own_task:
        listed = ", ".join(known)
        raise UsageError(
            f"{text!r}: no such figure {name!r}.{did_you_mean(name, known)} Known are {listed}. "
            'A metric of a task of your own needs task = "own", or the name of its function, beside the limits'
        )
    metric = known.get(name) or metric_of_own_task(name)
    kind: LimitKind = found["kind"] or ("ratio" if metric.is_ratio else "value")  # type: ignore[assignment]
    unit = found["unit"] or ""
    criterion = Criterion(
        text=" ".join(text.split()),
        metric=metric,
        output=found["output"].strip() if found["output"] else None,
        kind=kind,
        at_most=found["sign"] == "<=",
        value=_value(found["value"], unit),
        confidence=float(found["confidence"]) / 100 if found["confidence"] else None,
        unit="points" if unit == "point" else unit,
        of_old=found["old"] is not None,
    )
    _require_sense(criterion, known)
    _require_unit(criterion, unit)
    _require_possible(criterion)
    _require_direction(criterion)
    return criterion


def _value(number: str, unit: str) -> float:
    """The number in a limit; ``70 %`` gives exactly the float of 7 / 10."""
    return float(Decimal(number) / 100) if unit in _HUNDREDTHS else float(number)


def _require_sense(criterion: Criterion, known: Mapping[str, Metric]) -> None:
    text, figure, kind, metric = criterion.text, criterion.figure, criterion.kind, criterion.metric
    if kind == "rise" and not metric.is_of_own_task:
        raise UsageError(f"{text!r}: only metrics of tasks of your own can rise; limit {figure} itself, or its drop")
    can_drop = {name for name, entry in known.items() if entry.can_drop or (criterion.of_old and _is_good_share(entry))}
    if criterion.of_old and kind == "value":
        raise UsageError(f"{text!r}: 'vs old' stands behind drop, rise or ratio, such as 'top1 drop vs old <= 0.005'")
    if kind == "drop" and figure not in can_drop and not metric.is_of_own_task:
        droppable = sorted(can_drop)
        raise UsageError(f"{text!r}: only {', '.join(droppable)} can drop")
    if criterion.output is not None and not metric.is_per_output:
        raise UsageError(f"{text!r}: {figure} is not a figure of one output; leave [{criterion.output}] out")
    if kind in ("drop", "rise") and not criterion.at_most:
        raise UsageError(f"{text!r}: a {kind} is limited from above: {figure} {kind} <= ...")
    if criterion.confidence is not None:
        _require_confidence(criterion, criterion.confidence, known)


def _is_good_share(metric: Metric) -> bool:
    return metric.is_share and metric.better == "higher"


def _require_confidence(criterion: Criterion, confidence: float, known: Mapping[str, Metric]) -> None:
    text, kind, metric = criterion.text, criterion.kind, criterion.metric
    if not 0.5 < confidence < 1:
        raise UsageError(f"{text!r}: use a confidence above 50 % and below 100 %")
    if kind == "ratio" and confidence > _MOST_FOR_RATIO:
        raise UsageError(f"{text!r}: results hold the 95 % interval of the ratio, so 97.5 % on one side is the most")
    if kind == "drop" and metric.bounds == "draws" and confidence > MOST_CONFIDENCE:
        raise UsageError(f"{text!r}: {metric.name} is judged by a thousand draws, so 99 % is the most")
    if kind == "value" and metric.bounds != "counts" and not metric.is_of_own_task:
        shares = [name for name, entry in known.items() if entry.bounds == "counts"]
        listed = f"{shares[0]} to {shares[-1]}, " if shares else ""
        raise UsageError(f"{text!r}: only {listed}drops and latency_ratio have an interval; leave 'at ...' out")


def _require_direction(criterion: Criterion) -> None:
    """Raise :class:`UsageError` for a limit that bad results keep, and for one that no result breaks."""
    text, figure, better = criterion.text, criterion.figure, criterion.metric.better
    is_inverted = criterion.kind == "value" and better is not None and (better == "lower") != criterion.at_most
    if is_inverted or (criterion.kind == "ratio" and not criterion.at_most):
        right = "<=" if criterion.at_most is False else ">="
        raise UsageError(f"{text!r} is the wrong way round: {better or 'lower'} is better; write {figure} {right} ...")
    cannot_be_below = 0.0 if not criterion.metric.may_be_negative else -math.inf
    is_kept_by_all = criterion.kind == "value" and not criterion.at_most and criterion.value <= cannot_be_below
    is_drop_of_all = criterion.kind == "drop" and criterion.metric.is_share and criterion.value >= 1
    if is_kept_by_all or is_drop_of_all:
        raise UsageError(f"{text!r} is kept by every result, so it shows nothing; give a limit that can be broken")


def _require_unit(criterion: Criterion, unit: str) -> None:
    text, figure = criterion.text, criterion.figure
    if unit == "ms" and criterion.metric.unit != "ms":
        raise UsageError(f"{text!r}: {figure} is not measured in ms; leave the unit out")
    if unit in _HUNDREDTHS and not (criterion.metric.is_share or criterion.metric.is_of_own_task):
        raise UsageError(f"{text!r}: {figure} is not a share, so it has no {unit}; leave the unit out")


def _require_possible(criterion: Criterion) -> None:
    """Raise :class:`UsageError` for a number that the figure can never satisfy, or that is outside its range."""
    text, figure, value = criterion.text, criterion.figure, criterion.value
    if not math.isfinite(value):
        raise UsageError(f"{text!r}: {value:g} limits nothing; give a finite number")
    lowest = -1.0 if criterion.kind == "drop" else 0.0
    if criterion.metric.is_share and not lowest <= value <= 1:
        raise UsageError(
            f"{text!r}: {figure} is a share, 0..1, and {value:g} is none; write such as 0.70 or 70 %, "
            "and a drop as 0.005 or 0.5 points"
        )
    if value < 0 and criterion.kind != "drop" and not criterion.metric.may_be_negative:
        raise UsageError(f"{text!r}: {figure} is never negative; give a number of 0 or more")
