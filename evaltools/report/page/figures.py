"""The figures of rows on a page: accuracy with its changes, and speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.known_tasks import task_command
from evaltools.metrics.words import change, ends
from evaltools.report.content import first_lines, sentences, some_of
from evaltools.report.screen.charts import each_run, in_ms
from evaltools.report.screen.rows import is_share
from evaltools.report.screen.table import BENCHMARK
from evaltools.report.words.facts import by_latency, label, speed_of
from evaltools.report.words.numbers import (
    figure_with_interval,
    in_milliseconds,
    milliseconds,
    p_value,
    times_as_fast,
)
from evaltools.result.figure import Change, Figure
from evaltools.result.metrics import of_task
from evaltools.result.places import reference_of
from evaltools.result.result import INVOKE, Result, Row
from evaltools.result.row_word import is_clean, word_of
from evaltools.result.section import Axis, Block, Cell, Chart, Mark, Number, Section, Table, number_cell, path_to

_MOST_FIGURES: Final = 24
_MOST_CONFIGURATIONS: Final = 8
_MOST_DRAWN: Final = 8
_OF_TIMES: Final = ("avg_us", "min_us", "max_us")
_TIMES: Final = ("first_run_ms", "latency_average_ms", "latency_with_reading_ms")


def accuracy(result: Result) -> Section:
    """Figures of the task by configuration, and how each one changes."""
    changed = _changes(result)
    blocks: list[Block] = [_figures(result), *([changed] if changed.rows else [])]
    return Section("Accuracy" if task_command(result.command).accuracy else "Figures", blocks, "accuracy")


def _figures(result: Result) -> Table:
    measured = [(place, entry) for place, entry in enumerate(result.rows) if entry.status == "measured"]
    headings = {name: found.heading for _, entry in measured for name, found in of_task(entry).items()}
    shown = sorted(headings, key=lambda name: not headings[name])[:_MOST_FIGURES]
    rows: list[Sequence[Cell]] = [
        [headings[name] or name, *(_figure_of_task(place, name, entry) for place, entry in measured)] for name in shown
    ]
    counts = [
        number_cell(entry.finished_examples, path=f"rows/{place}/figures/examples/value") for place, entry in measured
    ]
    rows.append(["examples with an answer", *counts])
    below = some_of(len(shown), len(headings), "figures")
    return Table("Figures by configuration", ("figure", *(entry.name for _, entry in measured)), rows, below)


def _figure_of_task(place: int, name: str, entry: Row) -> Cell:
    if name not in entry.figures:
        return "-"
    found = entry.figures[name]
    path = path_to("rows", place, "figures", name, "value")
    return Number(figure_with_interval(found), found.value, path)


def _changes(result: Result) -> Table:
    """How figures differ from those of another row on the same examples: what was judged, then the others."""
    rows: list[Sequence[Cell]] = []
    for place, entry in enumerate(result.rows):
        known = of_task(entry)
        for number, verdict in enumerate(entry.verdicts):
            path, of = f"rows/{place}/verdicts/{number}", (verdict.metric, verdict.against)
            figure = known.get(verdict.metric)
            found = figure.change if figure is not None and figure.change is not None else None
            own = found if found is not None and found.against == verdict.against else None
            said = verdict.sentence.removeprefix(f"{verdict.metric} ")
            words = said if is_clean(result, entry) else f"{word_of(result, entry)}; {said}"
            rows.append(
                [
                    entry.name,
                    *_named(of, figure),
                    _change(verdict.change, verdict.low, verdict.high, is_share(entry, verdict), f"{path}/change"),
                    *_of_examples(own),
                    number_cell(verdict.p_value, p_value, f"{path}/p_value"),
                    number_cell(verdict.examples_needed, path=f"{path}/examples_needed"),
                    words,
                ]
            )
        judged = {(verdict.metric, verdict.against) for verdict in entry.verdicts}
        for name, figure in known.items():
            found = figure.change
            if found is None or (name, found.against) in judged:
                continue
            low, high = (None, None) if found.interval is None else (found.interval.low, found.interval.high)
            path = path_to("rows", place, "figures", name, "change")
            rows.append(
                [
                    entry.name,
                    *_named((name, found.against), figure),
                    _change(found.value, low, high, figure.is_share, f"{path}/value"),
                    *_of_examples(found),
                    number_cell(found.p_value, p_value, f"{path}/p_value"),
                    "-",
                    "",
                ]
            )
    columns = (
        "configuration", "figure", "compared with", "change [95 %]", "by stated bounds", "lost", "gained",
        "examples that differ", "examples", "test, corrected", "examples that would decide", "verdict",
    )  # fmt: skip
    ranks = (0, 0, 5, 1, 9, 3, 4, 8, 10, 6, 7, 2)
    return Table("Changes on the same examples", columns, rows, names=2, ranks=ranks).compact


def _named(of: tuple[str, str], figure: Figure | None) -> tuple[str, str]:
    """A figure as it is called, and what it was compared with."""
    name, against = of
    return (figure.heading if figure is not None else "") or name, against


def _change(size: float | None, low: float | None, high: float | None, of_share: bool, path: str) -> Cell:
    return "" if size is None else Number(change(size, low, high, of_share), size, path)


def _of_examples(found: Change | None) -> Sequence[Cell]:
    """The interval that a metric's bounds guarantee, then how many examples changed."""
    if found is None:
        return ["", "", "", "", ""]
    wide = found.guaranteed
    bounds = "" if wide is None else ends(f"{wide.low:+.3g}", f"{wide.high:+.3g}")
    differing = None if found.spread is None else found.spread.unequal
    return [bounds, *map(number_cell, (found.lost, found.gained, differing, found.count or None))]


def speed(result: Result) -> Section | None:
    """Latencies, single times where they were kept; None without times."""
    timed = [(place, row) for place, row in enumerate(result.rows) if row.latency is not None and row.latency.count]
    found: list[Block | None] = []
    if result.command == BENCHMARK:
        times = [row for row in by_latency(result.rows) if not row.fallback]
        found = [more_figures(result)] if times else []
    elif timed:
        found = [_latencies(result, timed), _runs(result, timed)]
    blocks = [block for block in found if block is not None]
    if not blocks:
        return None
    blocks += [block for each in result.blocks if each.place == "speed" and not each.title for block in each.blocks]
    return Section("Speed", blocks)


def more_figures(result: Result) -> Table:
    """What the first table of a benchmark has no room for."""
    rows: list[Sequence[Cell]] = []
    for place, row in enumerate(result.rows):
        if row.status != "measured" or row.fallback:
            continue
        path, rounds, runs = f"rows/{place}", row.counts["rounds"], row.counts["runs"]
        memory, steady = "steady_memory_mb", row.value("steady_memory_mb")
        rows.append(
            [
                label(result.models, row),
                Number(f"{runs}" + (f" in {rounds} rounds" if rounds > 1 else ""), runs),
                *(_figure(row, name, path) for name in _TIMES),
                number_cell(steady, "{:.1f} MB".format, f"{path}/figures/{memory}/value"),
            ]
        )
    columns = ("configuration", "runs", "first run", "average", "with reading", "steady memory")
    return Table("More figures", columns, rows).compact


def _latencies(result: Result, timed: Sequence[tuple[int, Row]]) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, row in timed:
        ratio, path = speed_of(row, reference_of(row, result.rows)), f"rows/{place}"
        rows.append(
            [
                label(result.models, row),
                _figure(row, "latency_ms", path),
                _figure(row, "latency_p90_ms", path),
                *(
                    number_cell(getattr(row.latency, name), milliseconds, f"{path}/times/{INVOKE}/{name}")
                    for name in _OF_TIMES
                ),
                "" if ratio is None else Number(times_as_fast(ratio), ratio.value),
                number_cell(row.latency.count if row.latency else None, path=f"{path}/times/{INVOKE}/count"),
                number_cell(row.value("peak_memory_mb"), "{:.0f} MB".format, f"{path}/figures/peak_memory_mb/value"),
            ]
        )
    columns = ("configuration", "p50", "p90", "average", "least", "most", "speed", "runs", "peak memory")
    return Table("Time of one run (invoke)", columns, rows, ranks=(0, 1, 3, 5, 6, 7, 2, 8, 4))


def _figure(row: Row, name: str, path: str) -> Cell:
    return number_cell(row.value(name), in_milliseconds, f"{path}/figures/{name}/value")


def _runs(result: Result, timed: Sequence[tuple[int, Row]]) -> Chart | None:
    """Single times, of the first few configurations."""
    models, rows = result.models, result.rows
    times_ms = {label(models, row): in_ms(row) for _, row in timed}
    references = [name for row in rows if row.role == "reference" and times_ms.get(name := label(models, row))]
    names = [label(models, row) for row in rows if row.role == "test"]
    return each_run("Each run in its turn", times_ms, _MOST_CONFIGURATIONS, next(iter(references), None), names)


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
    """A line for each of the first, as many as can be seen; ``what`` they are. The highest come first in ``texts``."""
    shown = dict(list(found.items())[:_MOST_DRAWN])
    highest = [max(by_moment.values()) for by_moment in found.values()]
    lines = [text for _, text in sorted(zip(highest, texts, strict=True), key=lambda each: -each[0])]
    text = sentences(some_of(len(shown), len(found), what))
    marks = [Mark(moment, value, name) for name, by_moment in shown.items() for moment, value in by_moment.items()]
    return Chart(caption, "lines", marks, text, y=Axis(unit), lines=first_lines(lines), names=list(found))
