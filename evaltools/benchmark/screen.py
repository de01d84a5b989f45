"""The first screen of a benchmark: which row is the fastest, all rows in one table, what failed, what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.benchmark.rows import FRONT, accuracy_of_row, by_latency, latency_ms
from evaltools.metrics.interval import Interval
from evaltools.metrics.words import ends
from evaltools.parameter import Value
from evaltools.report.words.facts import delegated, label, model_name
from evaltools.report.words.next_steps import next_command, where_it_did_not_run
from evaltools.report.words.numbers import (
    in_milliseconds,
    in_times,
    in_times_with_interval,
    megabytes,
    percent,
    says_something,
    three_digits,
)
from evaltools.result.facts import Model
from evaltools.result.figure import Figure
from evaltools.result.result import Row
from evaltools.result.rounds import Measured
from evaltools.result.section import Block, Cell, Note, Number, Sentence, Table, Word, number_cell, path_to

_MOST_NAMED: Final = 2
_MOST_NAMED_FASTEST: Final = 4
_ENOUGH_ROUNDS: Final = 8
_SHORTEST_MS: Final = 0.0005
"""What 0 stands for in whole microseconds."""


def first_screen(rows: Sequence[Row], models: Sequence[Model], stopped: str) -> list[Block]:
    """Which row is the fastest, and all rows in one table, the fastest first."""
    return [Sentence(_fastest(rows, models, stopped)), *([_table(rows, models)] if rows else [])]


def _fastest(rows: Sequence[Row], models: Sequence[Model], stopped: str) -> str:
    """The fastest row that ran as asked, and how many times faster than the next one it is."""
    timed = [row for row in by_latency(rows) if not row.fallback]
    if not timed:
        return f"Nothing was measured{f': {stopped}' if stopped else ' as asked for'}."
    fastest = {row.model: row for row in reversed(timed)}
    if 1 < len(fastest) <= _MOST_NAMED_FASTEST:
        texts = [f'{model_name(models, row)} "{row.name}" {_time(row)}' for row in reversed(fastest.values())]
        return f"The fastest of each model: {'; '.join(texts)}."
    row, *others = timed
    text = f"{label(models, row)}: {_median(row)}"
    if not others:
        return f"{text}."
    own, other = (max(_SHORTEST_MS, latency_ms(each) or 0.0) for each in (row, others[0]))
    times = in_times(own / other)
    compared = "as fast as" if times == "as fast" else f"{times} than"
    return f"The fastest is {text}, {compared} {label(models, others[0])}."


def _table(rows: Sequence[Row], models: Sequence[Model]) -> Table:
    ranked = sorted(enumerate(rows), key=lambda each: latency_ms(each[1]) or math.inf)
    cells = [_cells(row, models, place) for place, row in ranked]
    columns = (
        "model", "configuration", "median [95 %]", "vs first", "accuracy", "on the front", "delegated", "peak memory",
        "load", "p95", "file MB",
    )  # fmt: skip
    table = Table("All rows, the fastest first", columns, cells, "", 2, (0, 0, 0, 4, 1, 2, 3, 5, 6, 7, 8))
    several = len({row[0] for row in cells}) > 1
    table = replace(table, sorted_by="median [95 %]")
    return table.of_columns(range(0 if several else 1, len(columns))).compact.with_facts({"file MB": "a file of {} MB"})


def more_figures(rows: Sequence[Row], models: Sequence[Model]) -> Table:
    """What the first table has no room for."""
    cells: list[Sequence[Cell]] = []
    for place, row in enumerate(rows):
        if row.status != "measured" or row.fallback:
            continue
        rounds, runs = row.counts["rounds"], row.counts["runs"]
        times = ("first_run_ms", "latency_average_ms", "latency_with_reading_ms")
        cells.append(
            [
                label(models, row),
                Number(f"{runs}" + (f" in {rounds} rounds" if rounds > 1 else ""), runs),
                *(_time_cell(row, place, name) for name in times),
                _memory_cell(row, place, "steady_memory_mb"),
            ]
        )
    columns = ("configuration", "runs", "first run", "average", "with reading", "steady memory")
    return Table("More figures", columns, cells).compact


def _cells(row: Row, models: Sequence[Model], place: int) -> list[Cell]:
    name = model_name(models, row)
    if row.status != "measured":
        return [name, row.name, Word("failed", "bad") if row.figures else Word("not measured", "missing"), *([""] * 8)]
    if row.fallback:
        return [name, row.name, delegated(row), *([""] * 8)]
    latency, ratio, accuracy = latency_ms(row), row.figures.get("latency_ratio"), accuracy_of_row(row)
    median = "latency_ms" if "latency_ms" in row.figures else "latency_average_ms"
    size = models[row.model].size_bytes
    return [
        name,
        _marked_name(row),
        number_cell(latency, lambda _: _median(row), _path(place, median)),
        "" if ratio is None or is_uneven(row) else _ratio_cell(ratio, place),
        "" if accuracy is None else Number(f"{accuracy.heading} {percent(accuracy.value or 0.0)}", accuracy.value),
        "yes" if row.counts.get(FRONT) else "",
        delegated(row),
        _memory_cell(row, place, "peak_memory_mb"),
        _time_cell(row, place, "load_ms"),
        _time_cell(row, place, "latency_p95_ms"),
        Number(megabytes(size), size, f"models/{row.model}/size_bytes"),
    ]


def _ratio_cell(ratio: Figure, place: int) -> Number:
    return Number(in_times_with_interval(ratio), ratio.value, _path(place, "latency_ratio"))


def _time_cell(row: Row, place: int, name: str) -> Cell:
    return number_cell(row.value(name), in_milliseconds, _path(place, name))


def _memory_cell(row: Row, place: int, name: str) -> Cell:
    return number_cell(row.value(name), "{:.1f} MB".format, _path(place, name))


def _path(place: int, name: str) -> str:
    return path_to("rows", place, "figures", name, "value")


def _time(row: Row) -> str:
    return in_milliseconds(latency_ms(row) or 0.0)


def _marked_name(row: Row) -> str:
    """The name, with a word where the CPU did what an accelerator was asked for."""
    is_software = any(delegate.requested and delegate.is_cpu for delegate in row.delegates)
    return row.name + (" [software]" if is_software else "")


def _median(row: Row) -> str:
    """The median time with its interval; the average where a log has no median."""
    found = row.figures.get("latency_ms")
    if found is None:
        return f"{_time(row)} (average)"
    if is_uneven(row):
        return f"{_time(row)} [too uneven]"
    if found.interval is None:
        return f"{_time(row)} [{found.withheld}]" if found.withheld else _time(row)
    return f"{_time(row)} {ends(three_digits(found.interval.low), three_digits(found.interval.high))}"


def interval_of(row: Row) -> Interval | None:
    """That of the median."""
    found = row.figures.get("latency_ms")
    return None if found is None else found.interval


def is_uneven(row: Row) -> bool:
    """Whether times differ so much that their median says little, and a ratio of medians nothing."""
    interval = interval_of(row)
    return interval is not None and not says_something(interval)


def notes_of(rows: Sequence[Row], measured: Sequence[Measured], models: Sequence[Model]) -> Iterator[Note]:
    """The rows that failed, or ran on the CPU instead of what they asked for; what was not quiet or not profiled."""
    for row, each in zip(rows, measured, strict=True):
        name = label(models, row)
        if row.status != "measured" and row.figures:
            yield Note(name, f"failed: {row.reason}", "bad")
        elif row.status != "measured":
            yield Note(name, f"not measured: {row.reason}", "missing")
        elif row.fallback:
            yield Note(name, f"fell back to the CPU: {row.fallback}", "bad")
        if each.profile_failure:
            yield Note(name, f"operators are not profiled: {each.profile_failure}", "open")
    disturbed = [
        (row, texts)
        for row, each in zip(rows, measured, strict=True)
        if row.status == "measured" and (texts := _disturbances(each))
    ]
    if disturbed:
        first, *others = dict.fromkeys(text for _, texts in disturbed for text in texts)
        more = f" (and {len(others)} more)" if others else ""
        names = ", ".join(label(models, row) for row, _ in disturbed)
        if len(disturbed) > _MOST_NAMED:
            names = f"{len(disturbed)} of {len(rows)} configurations"
        yield Note(names, f"not quiet: {first}{more}: small differences of times say nothing", "open")


def _disturbances(measured: Measured) -> list[str]:
    """All disturbances, each once, whichever round it disturbed."""
    return list(dict.fromkeys(text for entry in measured.rounds for text in entry.disturbances))


def next_steps(
    rows: Sequence[Row], models: Sequence[Model], options: Mapping[str, Value], typed: Sequence[str]
) -> Iterator[str]:
    """Of the fastest row how sure that is, and whether its outputs are right; of others only why they did not run."""
    ranked = [row for row in by_latency(rows) if not row.fallback]
    for row in rows:
        model = models[row.model].file
        yield from where_it_did_not_run(row, model, typed)
        if ranked and row is ranked[0]:
            yield from _whether_it_is_sure(ranked)
            if row.delegates and accuracy_of_row(row) is None:
                command = next_command("diff", model, [*row.flags, *_input_shapes(options)], typed)
                yield f"{command} says whether its outputs are still those of the CPU"


def _input_shapes(options: Mapping[str, Value]) -> Iterator[str]:
    """The shapes of inputs that were stated, as ``evaltools diff`` takes them."""
    names, shapes = (str(options.get(name) or "") for name in ("input_layer", "input_layer_shape"))
    for name, shape in zip(names.split(","), shapes.split(":"), strict=False):
        if shape:
            yield f"--input_shape={name}:{shape}"


def _whether_it_is_sure(ranked: Sequence[Row]) -> Iterator[str]:
    """More rounds where the two fastest rows cannot be separated, or the only one has no interval."""
    fastest, *others = ranked[:2]
    if not fastest.series or fastest.counts["rounds"] >= _ENOUGH_ROUNDS:
        return
    more = f"the same command with --rounds={_ENOUGH_ROUNDS}"
    interval, following = interval_of(fastest), [interval_of(row) for row in others]
    if interval is None:
        yield f"{more} says how sure the medians are"
    elif any(each is None or each.low <= interval.high for each in following):
        yield f"{more} may separate the two fastest, whose intervals overlap"
