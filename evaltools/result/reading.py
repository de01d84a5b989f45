"""Reads results, and refuses what evaltools never writes: figures that contradict each other."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.errors import DataError
from evaltools.metrics.latency import NativeTimes
from evaltools.result.figure import Change, Figure
from evaltools.result.json_file import json_in, require_version
from evaltools.result.metrics import ABOVE_0, NEVER_BELOW_0, of_task
from evaltools.result.result import INVOKE, INVOKE_US, VERSION, Result, Row, missing_records
from evaltools.result.verdict import Verdict

_WHAT: Final = "evaltools result"
_ROUNDING: Final = 1e-9
_LONGEST_US: Final = 1e15
_LATENCIES: Final = ("latency_ms", "latency_p90_ms", "latency_p99_ms")
_MOST_CONFIGURATIONS: Final = 2000
"""Each is compared with the others: a report of so many takes a quarter of a minute, and one of ten times as many an
hour."""


def rows_in(content: bytes, path: Path) -> Result:
    """The result in the content of a file.

    Raises :class:`~evaltools.errors.DataError` for a content that does not fit, naming the field, for another version,
    and for one whose figures contradict each other.
    """
    head = json_in(content, path, _Head, _WHAT)
    stated = head.version or head.schema_version or head.suite_version
    if not stated:
        raise DataError(f"{path} is not an evaltools result: it has no version")
    require_version(stated, VERSION, path, _WHAT)
    found = json_in(content, path, Result, _WHAT)
    configurations = sum(row.role in ("reference", "test") for row in found.rows)
    if configurations > _MOST_CONFIGURATIONS:
        most = f"results of at most {_MOST_CONFIGURATIONS} are read"
        raise DataError(f"{path} has {configurations} configurations; {most}")
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
    if not 0 <= result.examples_done <= result.example_count:
        yield f"{result.examples_done} of {result.example_count} examples are done"
    if not result.models:
        yield "it is of no model"
    names = Counter((row.job, row.model, row.name) for row in result.rows)
    yield from (f"{row[-1]!r} is the name of {count} rows" for row, count in names.items() if count > 1)
    for row in result.rows:
        if not 0 <= row.model < len(result.models):
            yield f"{row.name!r} is of model {row.model}, and there are {len(result.models)}"
        beside = [each for each in result.rows if not row.job or (each.job, each.model) == (row.job, row.model)]
        yield from (f"{row.name!r}: {text}" for text in _of_row(row, beside))
        yield from (f"{row.name!r}: {text}" for text in _of_examples(row) if result.example_count)
    if result.complete and (missing := missing_records(result)):
        yield missing


def _of_row(row: Row, beside: Sequence[Row]) -> Iterator[str]:
    """Of those ``beside`` it, each with a name of its own, are the ones that it was compared with."""
    yield from (f"{name} is {count}" for name, count in row.counts.items() if count < 0)
    proof = row.delegation
    if proof is not None and not 0 <= proof.delegated_nodes <= proof.total_nodes:
        yield f"{proof.delegated_nodes} of {proof.total_nodes} nodes are delegated"
    yield from of_figures(row.figures, {each.name: each.figures for each in beside})
    known = {each.name for each in beside}
    for verdict in row.verdicts:
        yield from _of_verdict(verdict, known)
    yield from _of_times(row)
    for part in row.rows:
        yield from (f"{part.name!r}: {text}" for text in _of_row(part, beside))
    for own in row.parts:
        same = {each.name: part.figures for each in beside for part in each.parts if part.name == own.name}
        yield from (f"{own.name!r}: {text}" for text in of_figures(own.figures, same))


def _of_examples(row: Row) -> Iterator[str]:
    """What figures of examples say that were not finished."""
    for name, figure in of_task(row).items() if row.status == "measured" else ():
        if figure.value is not None and not row.finished_examples:
            yield f"{name} is {figure.value}, of no examples"
        elif figure.count is not None and figure.count > row.finished_examples:
            yield f"{name} is of {figure.count} examples, and {row.finished_examples} were finished"


def _of_times(row: Row) -> Iterator[str]:
    for what, times in row.times.items():
        if times.min_us < 0:
            yield f"the shortest time of {what} is {times.min_us} us"
        elif times.count and not times.min_us <= times.avg_us <= times.max_us:
            yield f"the average time of {what} is {times.avg_us} us, of times from {times.min_us} to {times.max_us}"
    if (invoke := row.times.get(INVOKE)) is not None:
        yield from _of_latencies(row, invoke)
    single, stated = row.series.get(INVOKE_US, []), row.figures.get("latency_ms")
    if any(not 0 <= time_us <= _LONGEST_US for time_us in single):
        yield f"a time is {next(time_us for time_us in single if not 0 <= time_us <= _LONGEST_US)} us"
    elif single and stated is not None and stated.value is not None and stated.count == len(single):
        median_ms = statistics.median(single) / 1000
        if not math.isclose(stated.value, median_ms, rel_tol=1e-9):
            yield f"latency_ms is {stated.value}, and the median of the recorded times is {median_ms}"


def _of_latencies(row: Row, invoke: NativeTimes) -> Iterator[str]:
    """Percentiles of the same times, of which the shortest and the longest were rounded to whole microseconds."""
    for name, figure in ((name, row.figures[name]) for name in _LATENCIES if name in row.figures):
        if figure.value is None or figure.count != invoke.count:
            continue
        if not invoke.min_us - 1 <= figure.value * 1000 <= invoke.max_us + 1:
            yield f"{name} is {figure.value}, of times from {invoke.min_us} to {invoke.max_us} us"


def _of_verdict(verdict: Verdict, known: Collection[str]) -> Iterator[str]:
    if verdict.against and verdict.against not in known:
        yield f"it was judged against {verdict.against!r}, which is not a row"
    numbers = (verdict.change, verdict.low, verdict.high, verdict.margin, verdict.p_value)
    if not all(number is None or math.isfinite(number) for number in numbers):
        yield f"a number of its verdict on {verdict.metric} is not finite"
    if verdict.low is not None and verdict.high is not None and verdict.low > verdict.high:
        yield f"its change of {verdict.metric} lies from {verdict.low} to {verdict.high}"


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
    if not math.isfinite(value) or (value < 0 and name in NEVER_BELOW_0) or (value == 0 and name in ABOVE_0):
        yield f"{name} is {value}"
    elif figure.is_share and not 0 <= value <= 1:
        yield f"{name} is {value}, and a share is 0 to 1"
    elif figure.is_share and count is not None and abs(value * count - round(value * count)) > _ROUNDING * (count + 1):
        yield f"{name} is {value}, and no number of {count} is such a share"
    if interval is not None and not interval.low - _ROUNDING <= value <= interval.high + _ROUNDING:
        yield f"{name} is {value}, and its interval is {interval.low} to {interval.high}"
    elif interval is not None and interval.low < 0 and name in NEVER_BELOW_0:
        yield f"{name} is never below 0, and its interval is {interval.low} to {interval.high}"
    scores = [score for score in figure.of_examples if score is not None]
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
