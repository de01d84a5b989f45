"""Reads results, and refuses what evaltools never writes: figures that contradict each other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.errors import DataError
from evaltools.result.figure import Change, Figure
from evaltools.result.json_file import json_in, read_content, require_version
from evaltools.result.result import VERSION, Result, Row

_WHAT: Final = "evaltools result"
_ROUNDING: Final = 1e-9


def read(path: Path) -> Result:
    """The result in a file; raises as :func:`result_in` does, and for a file that cannot be read."""
    return result_in(read_content(path), path)


def result_in(content: bytes, path: Path) -> Result:
    """The result in the content of a file.

    Raises :class:`~evaltools.errors.DataError` for a content that does not fit, naming the field, for another version,
    and for one whose figures contradict each other.
    """
    head = json_in(content, path, _Head, _WHAT)
    require_version(head.version or head.schema_version or head.suite_version, VERSION, path, _WHAT)
    found = json_in(content, path, Result, _WHAT)
    wrong = contradiction(found)
    if wrong:
        raise DataError(f"{path}: its figures contradict each other ({wrong}); take the file as evaltools wrote it")
    return found


class _Head(Struct):
    """What a file, also an earlier one, says of itself before anything else is read."""

    version: str = ""
    schema_version: str = ""
    suite_version: str = ""


def contradiction(result: Result) -> str:
    """The first thing that cannot be, as a sentence without its end; empty for a result that holds together."""
    return next(_contradictions(result), "")


def _contradictions(result: Result) -> Iterator[str]:
    names = Counter((row.job, row.model, row.name) for row in result.rows)
    yield from (f"{row[-1]!r} is the name of {count} rows" for row, count in names.items() if count > 1)
    for row in result.rows:
        if not 0 <= row.model < max(1, len(result.models)):
            yield f"{row.name!r} is of model {row.model}, and there are {len(result.models)}"
        beside = [each for each in result.rows if not row.job or (each.job, each.model) == (row.job, row.model)]
        yield from (f"{row.name!r}: {text}" for text in _of_row(row, beside))


def _of_row(row: Row, beside: Sequence[Row]) -> Iterator[str]:
    """Of those ``beside`` it, each with a name of its own, are the ones that it was compared with."""
    yield from (f"{name} is {count}" for name, count in row.counts.items() if count < 0)
    proof = row.delegation
    if proof is not None and not 0 <= proof.delegated_nodes <= proof.total_nodes:
        yield f"{proof.delegated_nodes} of {proof.total_nodes} nodes are delegated"
    yield from of_figures(row.figures, {each.name: each.figures for each in beside})
    known = {each.name for each in beside}
    for verdict in row.verdicts:
        if verdict.against and verdict.against not in known:
            yield f"it was judged against {verdict.against!r}, which is not a row"
        numbers = (verdict.change, verdict.low, verdict.high, verdict.margin, verdict.p_value)
        if not all(number is None or math.isfinite(number) for number in numbers):
            yield f"a number of its verdict on {verdict.metric} is not finite"
    for part in row.rows:
        yield from (f"{part.name!r}: {text}" for text in _of_row(part, beside))


def of_figures(figures: Mapping[str, Figure], others: Mapping[str, Mapping[str, Figure]]) -> Iterator[str]:
    """What the figures of a row say that cannot be; ``others`` has those of each row by its name."""
    for name, figure in figures.items():
        yield from _of_figure(name, figure)
        least = figures.get(figure.at_least)
        if least is not None and None not in (least.value, figure.value) and (figure.value or 0) < (least.value or 0):
            yield f"{name} is {figure.value}, and {figure.at_least}, which is never above it, is {least.value}"
        if figure.change is not None:
            yield from _of_change(name, figure, figure.change, others)


def _of_figure(name: str, figure: Figure) -> Iterator[str]:
    value, count, interval = figure.value, figure.count, figure.interval
    if count is not None and count < 0:
        yield f"{name} is of {count}"
    if value is None:
        return
    if not math.isfinite(value):
        yield f"{name} is {value}"
    elif figure.is_share and not 0 <= value <= 1:
        yield f"{name} is {value}, and a share is 0 to 1"
    elif figure.is_share and count is not None and abs(value * count - round(value * count)) > _ROUNDING * (count + 1):
        yield f"{name} is {value}, and no number of {count} is such a share"
    if interval is not None and not interval.low - _ROUNDING <= value <= interval.high + _ROUNDING:
        yield f"{name} is {value}, and its interval is {interval.low} to {interval.high}"
    scores = [score for score in figure.scores if score is not None]
    if scores and count is not None:
        if len(scores) != count:
            yield f"{name} is of {count}, and {len(scores)} scores are recorded"
        elif abs(math.fsum(scores) / count - value) > _ROUNDING * (1 + abs(value)):
            yield f"{name} is {value}, and the mean of the recorded scores is {math.fsum(scores) / count}"


def _of_change(name: str, figure: Figure, change: Change, others: Mapping[str, Mapping[str, Figure]]) -> Iterator[str]:
    if change.against not in others:
        yield f"{name} is compared with {change.against!r}, which is not a row"
        return
    lost, gained = change.lost, change.gained
    if lost is not None and gained is not None:
        if min(lost, gained) < 0 or lost + gained > change.count:
            yield f"{name} has {lost} lost and {gained} gained of {change.count}"
        elif abs(change.value * change.count - (gained - lost)) > _ROUNDING * (change.count + 1):
            yield f"{name} changed by {change.value}, with {lost} lost and {gained} gained of {change.count}"
    base = others[change.against].get(name)
    of_same = base is not None and base.count == figure.count and figure.count in (None, change.count)
    if base is None or base.value is None or figure.value is None or not of_same:
        return
    if abs(change.value - (figure.value - base.value)) > _ROUNDING * (1 + abs(figure.value)):
        yield f"{name} changed by {change.value}, and it is {figure.value} where {change.against!r} has {base.value}"
