"""How fast an evaluation's configurations are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from evaltools.metrics.interval import Interval
from evaltools.report.content import first_few, sentences, some_of
from evaltools.report.words.facts import speed_of
from evaltools.report.words.numbers import (
    in_milliseconds,
    in_times_with_interval,
    milliseconds,
    says_something,
    three_digits,
)
from evaltools.result.places import reference_of
from evaltools.result.result import INVOKE, INVOKE_US, Result, Row
from evaltools.result.section import Axis, Block, Cell, Chart, Mark, Number, Section, Table, number_cell

_MOST_CONFIGURATIONS: Final = 8
_MOST_DRAWN: Final = 8
_OF_TIMES: Final = ("avg_us", "min_us", "max_us")
_MOST_INTERVALS: Final = 24
_MOST_POINTS: Final = 160
"""Of one configuration; of more, as many are drawn, spread evenly."""
_WIDE: Final = 5
"""Times that differ by more lie on a logarithmic axis."""


def speed(result: Result) -> Section | None:
    """Latencies, ratios with intervals, single times where they were kept; None without times."""
    timed = [(place, row) for place, row in enumerate(result.rows) if row.latency is not None and row.latency.count]
    if not timed:
        return None
    blocks: list[Block] = [_latencies(result, timed)]
    blocks += [drawn for drawn in (_ratios(result), _runs(result, timed)) if drawn is not None]
    blocks += [block for each in result.blocks if each.place == "speed" and not each.title for block in each.blocks]
    return Section("Speed", blocks)


def _latencies(result: Result, timed: Sequence[tuple[int, Row]]) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, row in timed:
        ratio, path = speed_of(row, reference_of(row, result.rows)), f"rows/{place}"
        rows.append(
            [
                row.name,
                _figure(row, "latency_ms", path),
                _figure(row, "latency_p90_ms", path),
                *(
                    number_cell(getattr(row.latency, name), milliseconds, f"{path}/times/{INVOKE}/{name}")
                    for name in _OF_TIMES
                ),
                "" if ratio is None else Number(in_times_with_interval(ratio), ratio.value),
                number_cell(row.latency.count if row.latency else None, path=f"{path}/times/{INVOKE}/count"),
                number_cell(row.value("peak_memory_mb"), "{:.0f} MB".format, f"{path}/figures/peak_memory_mb/value"),
            ]
        )
    columns = ("configuration", "p50", "p90", "average", "least", "most", "vs reference", "runs", "peak memory")
    return Table("Time of one run (invoke)", columns, rows, ranks=(0, 1, 3, 5, 6, 7, 2, 8, 4))


def _figure(row: Row, name: str, path: str) -> Cell:
    return number_cell(row.value(name), in_milliseconds, f"{path}/figures/{name}/value")


def _ratios(result: Result) -> Chart | None:
    """How many times as fast as its reference each configuration is."""
    marks, texts = [], []
    for row in result.rows:
        found = row.figures.get("latency_ratio")
        if found is None or not found.value:
            continue
        known = found.interval if found.interval is not None and says_something(found.interval) else None
        inverse = None if known is None else Interval(1 / known.high, 1 / known.low)
        marks.append(Mark(1 / found.value, row.name, x_interval=inverse))
        texts.append(f"{row.name} {in_times_with_interval(found)}, {found.count} pairs")
    if not marks:
        return None
    left = some_of(len(texts[:_MOST_INTERVALS]), len(texts), "configurations")
    text, axis = sentences("; ".join(texts[:_MOST_INTERVALS]), left), Axis("times as fast (95 % interval)", at=1.0)
    return Chart("Speed against the reference", "points", marks[:_MOST_INTERVALS], text, axis)


def _runs(result: Result, timed: Sequence[tuple[int, Row]]) -> Chart | None:
    """Single times, of the first few configurations."""
    times_ms = {row.name: [time / 1000 for time in row.series.get(INVOKE_US, [])] for _, row in timed}
    references = [row.name for row in result.rows if row.role == "reference" and times_ms.get(row.name)]
    return each_run("Each run in its turn", times_ms, _MOST_CONFIGURATIONS, next(iter(references), None))


def each_run(
    caption: str, times_ms: Mapping[str, Sequence[float]], most: int, reference: str | None = None
) -> Chart | None:
    """The times of the first configurations in milliseconds, in the order of the runs; None where there are none.

    >>> each_run("Runs", {"cpu": [2.0, 1.5], "gpu": []}, most=8).text
    'cpu: 2 runs from 1.5 to 2 ms.'
    """
    every = {name: times for name, times in times_ms.items() if times}
    timed = dict(list(every.items())[:most])
    if not timed:
        return None
    text = "; ".join(
        f"{name}: {len(times)} runs from {three_digits(min(times))} to {three_digits(max(times))} ms"
        for name, times in timed.items()
    )
    is_bounded = any(len(times) > _MOST_POINTS for times in timed.values())
    points = f"At most {_MOST_POINTS} runs of each are drawn, all in the JSON result" if is_bounded else ""
    left = some_of(len(timed), len(every), "configurations")
    marks = [
        Mark(place, times[place], name, "missing" if name == reference else "")
        for name, times in timed.items()
        for place in range(0, len(times), -(-len(times) // _MOST_POINTS))
        if times[place] > 0
    ]
    seen = [time for times in timed.values() for time in times if time > 0]
    scale: Literal["log", ""] = "log" if seen and max(seen) > _WIDE * min(seen) else ""
    return Chart(caption, "points", marks, sentences(text, points, left), Axis("run"), Axis("ms", scale))


def temperatures(found: Mapping[str, tuple[float | None, float | None]], what: str) -> Chart | None:
    """The hottest sensor of each before and after; None where none has sensors."""
    known = {
        name: {"before": before, "after": after}
        for name, (before, after) in found.items()
        if before is not None and after is not None
    }
    texts = [f"{name}: {by['before']:.1f} to {by['after']:.1f} °C" for name, by in known.items()]
    return moments("Hottest sensor before and after", known, "°C", texts, what) if known else None


def moments(
    caption: str, found: Mapping[str, Mapping[str, float]], unit: str, texts: Sequence[str], what: str
) -> Chart:
    """A line for each of the first, as many as can be seen; ``what`` they are."""
    shown = dict(list(found.items())[:_MOST_DRAWN])
    text = sentences(first_few(texts), some_of(len(shown), len(found), what))
    marks = [Mark(moment, value, name) for name, by_moment in shown.items() for moment, value in by_moment.items()]
    return Chart(caption, "lines", marks, text, y=Axis(unit))
