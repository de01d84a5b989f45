"""A limit as a user writes it: ``top1 >= 70 %``, ``top1 drop <= 0.5 points at 95 %``, ``max_quanta[scores] <= 2``.

``iou drop <= 0.02 guaranteed at 95 %`` asks for the bound that the stated bounds of a metric guarantee. Drops, rises
and ratios are against the reference of the same run; with ``vs old`` behind them they are against the earlier result of
``--against``: ``top1 drop vs old <= 0.5 points at 95 %``. Flags of a task may be limits as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.gates.units import HUNDREDTHS, share_in, without_unit
from evaltools.known_tasks import all_metrics, metrics_of_own_tasks
from evaltools.metrics.metric import Metric, metric_of_own_task
from evaltools.metrics.resampled import MOST_CONFIDENCE
from evaltools.parameter import Parameter, did_you_mean

LimitKind = Literal["value", "drop", "rise", "ratio"]

_MOST_FOR_RATIO: Final = 0.975
_LEAST_SHARE: Final = 0.01
"""A share that is to be reached, below which a limit is a slip: so little even a model has that is ruined."""
_LIMIT: Final = re.compile(
    r"\s*(?P<figure>\w+)\s*(?:\[(?P<output>[^\]]+)\])?\s*(?P<kind>drop|rise|ratio)?\s*(?P<old>vs\s+old)?\s*"
    r"(?P<sign><=|>=)\s*"
    r"(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>%|points?|ms)?\s*"
    r"(?:(?P<guaranteed>guaranteed\s+)?at\s+(?P<confidence>\d+(?:\.\d+)?)\s*%)?\s*"
)


class Criterion(Struct, frozen=True):
    """One limit on one figure, that of ``metric``.

    ``kind``: the figure itself, its ``drop`` or ``rise`` against the reference, or its ``ratio`` to that of the
    reference; ``of_old``: against the earlier result instead.
    ``at_most`` is ``<=``, else ``>=``. ``confidence``, 0.5..1, asks for a bound instead of the figure as it is found;
    ``is_guaranteed``: for the one that the bounds of a metric guarantee.
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
    is_guaranteed: bool = False

    @property
    def figure(self) -> str:
        """The name of the figure."""
        return self.metric.name

    @property
    def is_relative(self) -> bool:
        """Whether the limit is on a comparison with the reference."""
        return not self.of_old and (self.kind != "value" or self.metric.of_reference)


OfOwnTask = Literal["no", "perhaps", "yes"]
"""Whether a limit is about the result of a task of one's own, whose metrics only that result knows."""


def parse_criterion(text: str, of_own_task: OfOwnTask = "no") -> Criterion:
    """Read a limit; raises :class:`UsageError` for what is none, what could never be decided, and what cannot fail.

    A metric of a task of one's own may have the name of another task's metric, and mean something else.

    >>> criterion = parse_criterion("top1 drop <= 0.5 points at 95 %")
    >>> criterion.figure, criterion.kind, criterion.value, criterion.confidence
    ('top1', 'drop', 0.005, 0.95)
    """
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is not a limit; write such as 'top1 >= 70 %' or 'top1 drop <= 0.5 points at 95 %'")
    if found["kind"] == "ratio":
        raise UsageError(f"{text!r}: only times have a ratio: 'latency_ratio <= 0.8'")
    known = metrics_of_own_tasks() if of_own_task == "yes" else all_metrics()
    aliases = {alias: name for name, metric in known.items() for alias in metric.aliases}
    name = aliases.get(found["figure"], found["figure"])
    if name not in known and of_own_task == "no":
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
        value=share_in(found["value"], unit),
        confidence=float(found["confidence"]) / 100 if found["confidence"] else None,
        unit="points" if unit == "point" else unit,
        of_old=found["old"] is not None,
        is_guaranteed=found["guaranteed"] is not None,
    )
    for mistake in _mistakes(criterion, found["value"], unit, known):
        raise UsageError(f"{criterion.text!r}{mistake}")
    return criterion


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


def _mistakes(limit: Criterion, number: str, unit: str, known: Mapping[str, Metric]) -> Iterator[str]:
    """What makes a limit none, could never be decided or never fail; what is wrong first comes first.

    ``number`` is the limit as it was written, in that ``unit``.
    """
    figure, kind, metric, value = limit.figure, limit.kind, limit.metric, limit.value
    if kind == "rise" and not metric.is_of_own_task:
        yield f": only metrics of tasks of your own can rise; limit {figure} itself, or its drop"
    if limit.of_old and kind == "value":
        yield ": 'vs old' stands behind drop, rise or ratio, such as 'top1 drop vs old <= 0.5 points'"
    droppable = {
        name
        for name, each in known.items()
        if each.can_drop or (limit.of_old and each.is_share and each.better == "higher")
    }
    if kind == "drop" and figure not in droppable and not metric.is_of_own_task:
        yield f": only {', '.join(sorted(droppable))} can drop"
    if limit.output is not None and not metric.is_per_output:
        yield f": {figure} is not a figure of one output; leave [{limit.output}] out"
    if kind in ("drop", "rise") and not limit.at_most:
        yield f": a {kind} is limited from above: {figure} {kind} <= ..."
    if limit.confidence is not None:
        yield from _mistakes_of_confidence(limit, limit.confidence, known)
    if unit == "ms" and metric.unit != "ms":
        yield f": {figure} is not measured in ms; leave the unit out"
    if unit in HUNDREDTHS and not (metric.is_share or metric.is_of_own_task):
        yield f": {figure} is not a share, so it has no {unit}; leave the unit out"
    if not math.isfinite(value):
        yield f": {value:g} limits nothing; give a finite number"
    if value < 0 and kind != "drop" and not metric.may_be_negative:
        yield f": {figure} is never negative; give a number of 0 or more"
    is_inverted = kind == "value" and metric.better is not None and (metric.better == "lower") != limit.at_most
    if is_inverted or (kind == "ratio" and not limit.at_most):
        right = ">=" if limit.at_most else "<="
        yield f" is the wrong way round: {metric.better or 'lower'} is better; write {figure} {right} ..."
    share_unit = "points" if kind == "drop" else "%"
    if metric.is_share and not unit and value:
        yield without_unit(number, share_unit)
    if metric.is_share and not (-1.0 if kind == "drop" else 0.0) <= value <= 1:
        yield f": {figure} is a share, 0 to 100 %, and {100 * value:g} {share_unit} is none"
    if metric.is_share and kind == "value" and 0 < value < _LEAST_SHARE:
        yield (
            f" is kept by nearly every model, also by one that is ruined: {value:.3g} of all is enough; was "
            f"{figure} >= {10000 * value:g} % meant? The least is 1 %"
        )
    is_kept_by_all = kind == "value" and not limit.at_most and value <= 0 and not metric.may_be_negative
    if is_kept_by_all or (kind == "drop" and metric.is_share and value >= 1):
        yield " is kept by every result, so it shows nothing; give a limit that can be broken"


def _mistakes_of_confidence(limit: Criterion, confidence: float, known: Mapping[str, Metric]) -> Iterator[str]:
    kind, metric = limit.kind, limit.metric
    if limit.is_guaranteed and not metric.is_of_own_task:
        yield ": only means of tasks have stated bounds that guarantee one; leave 'guaranteed' out"
    if not 0.5 < confidence < 1:
        yield ": use a confidence above 50 % and below 100 %"
    if kind == "ratio" and confidence > _MOST_FOR_RATIO:
        yield ": results hold the 95 % interval of the ratio, so 97.5 % on one side is the most"
    if kind == "drop" and metric.bounds == "draws" and confidence > MOST_CONFIDENCE:
        yield f": {metric.name} is judged by a thousand draws, so 99 % is the most"
    if kind == "value" and metric.bounds != "counts" and not metric.is_of_own_task:
        shares = [name for name, entry in known.items() if entry.bounds == "counts"]
        listed = f"{shares[0]} to {shares[-1]}, " if shares else ""
        yield f": only {listed}drops and latency_ratio have an interval; leave 'at ...' out"
