"""The first screen of benchmarks: which row is the fastest, all rows in one table, what failed, what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from evaltools.metrics.latency import FEWEST_PROCESSES, FEWEST_TIMES
from evaltools.metrics.words import ends
from evaltools.report.content import First
from evaltools.report.page.sections.answer import of_result
from evaltools.report.page.sections.summary import FACTS, versions_in_words
from evaltools.report.words.facts import delegated, label, load_in_words, model_name
from evaltools.report.words.next_steps import next_command, where_it_did_not_run
from evaltools.report.words.numbers import (
    in_times,
    in_times_with_interval,
    megabytes,
    milliseconds,
    percent,
    says_something,
    three_digits,
)
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.places import machine_of
from evaltools.result.section import (
    Block,
    Cell,
    Note,
    Number,
    Sentence,
    Table,
    Word,
    number_cell,
)
from evaltools.result.shown_figures import Shown, rows_by_latency, shown_figures

_MOST_NAMED: Final = 2
_MOST_NAMED_FASTEST: Final = 4
_ENOUGH_ROUNDS: Final = 8


_Found = Sequence[tuple[str, BenchmarkResult, BenchmarkRow]]
"""Rows with the name of their result."""


def answer(results: Mapping[str, BenchmarkResult]) -> First:
    """Which row is the fastest, all rows in one table, the fastest first, what failed or disturbed, what is next."""
    found = [(name, result, row) for name, result in results.items() for row in result.rows]
    found.sort(key=lambda each: _latency(each[2]) or math.inf)
    blocks: list[Block] = [Sentence(_fastest(results, found))]
    blocks += [_table(results, found)] if found else []
    several = len(results) > 1
    notes: list[Note] = []
    steps: list[str] = []
    for name, result in results.items():
        notes += [of_result(name, note) if several else note for note in _notes(result)]
        steps += [step for row in result.rows for step in after_benchmark(result, row)]
    return First("benchmark", tuple(blocks), tuple(notes), tuple(steps), "" if several else next(iter(results)))


def _latency(row: BenchmarkRow) -> float | None:
    """In microseconds; of a row that failed there is none, even where some of its runs have one."""
    return shown_figures(row).latency_us if row.status == "measured" else None


def _fastest(results: Mapping[str, BenchmarkResult], found: _Found) -> str:
    """The fastest row that ran as asked, and how many times faster than the next one it is."""
    timed = [each for each in found if _latency(each[2]) is not None and not each[2].fallback]
    if not timed:
        (result, *_) = results.values()
        return f"Nothing was measured{f': {result.stopped}' if result.stopped else ' as asked for'}."
    fastest = {(name, row.model): (result, row) for name, result, row in reversed(timed)}
    if 1 < len(fastest) <= _MOST_NAMED_FASTEST:
        texts = [
            f'{model_name(result, row)} "{row.name}" {milliseconds(_latency(row) or 0.0)}'
            for result, row in reversed(fastest.values())
        ]
        return f"The fastest of each model: {'; '.join(texts)}."
    (name, result, row), *others = timed
    of = f"{name}, " if len(results) > 1 else ""
    text = f"{of}{label(result, row)}: {_median(shown_figures(row))}"
    if not others:
        return f"{text}."
    name, result, next_one = others[0]
    of = f"{name}, " if len(results) > 1 else ""
    own, other = _latency(row) or 0.0, _latency(next_one) or 0.0
    compared = "as fast as" if in_times(own / other) == "as fast" else f"{in_times(own / other)} than"
    return f"The fastest is {text}, {compared} {of}{label(result, next_one)}."


def _table(results: Mapping[str, BenchmarkResult], found: _Found) -> Table:
    """What is the same for all rows of several results stands in no column of its own."""
    several = len(results) > 1
    rows = []
    for name, result, row in found:
        place = next(place for place, each in enumerate(result.rows) if each is row)
        cells = _cells(result, row, "" if several else f"rows/{place}", "" if several else f"models/{row.model}")
        machine = machine_of(result.environment, result.device_run, row.name.rpartition("@")[2])
        versions = versions_in_words(result.environment.evaltools, row)
        rows.append([name if several else "", *cells, *((machine, versions) if several else ("", ""))])
    columns = (
        "result", "model", "configuration", "median [95 %]", "vs first", "accuracy", "on the front", "delegated",
        "peak memory", "load", "p95", "file MB", "machine", "versions",
    )  # fmt: skip
    ranks = (0, 0, 0, 0, 4, 1, 2, 3, 5, 6, 7, 8, 9, 10)
    table = Table("All rows, the fastest first", columns, rows, "", 3, ranks)
    models = len({row[1] for row in rows}) > 1 or several
    table = table.of_columns([place for place in range(len(columns)) if place != 1 or models]).compact
    return table.with_facts(FACTS)


def more_figures(result: BenchmarkResult) -> Table:
    """What the first table has no room for."""
    rows: list[Sequence[Cell]] = []
    for place, row in enumerate(result.rows):
        shown, path = shown_figures(row), f"rows/{place}/figures"
        if row.status == "failed" or row.fallback:
            continue
        rows.append(
            [
                label(result, row),
                Number(f"{shown.runs}" + (f" in {shown.rounds} rounds" if shown.rounds > 1 else ""), shown.runs),
                number_cell(shown.first_run_us, milliseconds, _path(row, f"{path}/first_run/p50_us")),
                number_cell(shown.average_us, milliseconds, _path(row, f"{path}/inference/avg_us")),
                number_cell(shown.with_reading_us, milliseconds, _path(row, f"{path}/run_and_read/p50_us")),
                number_cell(shown.steady_mb, "{:.1f} MB".format),
            ]
        )
    columns = ("configuration", "runs", "first run", "average", "with reading", "steady memory")
    return Table("More figures", columns, rows).compact


def _path(row: BenchmarkRow, path: str) -> str:
    return path if row.figures is not None else ""


def _cells(result: BenchmarkResult, row: BenchmarkRow, path: str, model: str) -> list[Cell]:
    shown, figures = shown_figures(row), row.figures

    def of(name: str, logged: str = "") -> str:
        return "" if not path else f"{path}/figures/{name}" if figures is not None else f"{path}/logged/{logged}"

    if row.status == "failed" or row.fallback:
        lost: Cell = Word("not measured", "missing") if figures is None and not row.fallback else Word("failed", "bad")
        median = delegated(row) if row.status != "failed" else lost
        return [model_name(result, row), row.name, median, *([""] * 8)]
    size = result.models[row.model].size_bytes
    latency = shown.latency_us
    accuracy, versus = row.accuracy, row.versus_first
    return [
        model_name(result, row),
        _marked_name(row),
        number_cell(latency, lambda _: _median(shown), of("inference/p50_us", "median_us")),
        "" if versus is None or _is_uneven(shown) else Number(in_times_with_interval(versus), versus.ratio),
        "" if accuracy is None else Number(f"{accuracy.metric} {percent(accuracy.value)}", accuracy.value),
        "yes" if row.on_latency_front else "",
        delegated(row),
        number_cell(shown.peak_mb, "{:.1f} MB".format),
        number_cell(shown.load_us, milliseconds, of("init/p50_us")),
        number_cell(shown.p95_us, milliseconds, of("percentiles/95")),
        Number(megabytes(size), size, model and f"{model}/size_bytes"),
    ]


def _marked_name(row: BenchmarkRow) -> str:
    """The name, with a word where the CPU did what an accelerator was asked for."""
    is_software = any(delegate.requested and delegate.is_cpu for delegate in row.delegates)
    return row.name + (" [software]" if is_software else "")


def _median(shown: Shown) -> str:
    """The median time; the average where a log has no median."""
    if shown.median_us is None:
        return "-" if shown.average_us is None else f"{milliseconds(shown.average_us)} (average)"
    span, note = shown.interval, f" [{_why_without_interval(shown)}]"
    if shown.is_logged and shown.rounds < 2:
        note = ""
    if _is_uneven(shown):
        span, note = None, " [too uneven]"
    interval = f" {ends(three_digits(span.low / 1000), three_digits(span.high / 1000))}" if span else note
    return milliseconds(shown.median_us) + interval


def _is_uneven(shown: Shown) -> bool:
    """Whether times differ so much that their median says little, and a ratio of medians nothing."""
    return shown.interval is not None and not says_something(shown.interval)


def _why_without_interval(shown: Shown) -> str:
    if 1 < shown.rounds < FEWEST_PROCESSES:
        return "too few rounds"
    return "too few runs" if shown.runs < FEWEST_TIMES else "times jumped"


def _notes(result: BenchmarkResult) -> Iterator[Note]:
    """The rows that failed, or ran on the CPU instead of what they asked for; what was not quiet or not profiled."""
    for row in result.rows:
        name = label(result, row)
        if row.status == "failed":
            word, tone = ("not measured", "missing") if row.figures is None else ("failed", "bad")
            yield Note(name, f"{word}: {row.reason}", "bad" if tone == "bad" else "missing")
        elif row.fallback:
            yield Note(name, f"fell back to the CPU: {row.fallback}", "bad")
        if row.profile_failure is not None:
            yield Note(name, f"operators are not profiled: {row.profile_failure}", "open")
    disturbed = [row for row in result.rows if row.status == "measured" and _disturbances(row)]
    if disturbed:
        first, *others = dict.fromkeys(text for row in disturbed for text in _disturbances(row))
        more = f" (and {len(others)} more)" if others else ""
        names = ", ".join(label(result, row) for row in disturbed)
        if len(disturbed) > _MOST_NAMED:
            names = f"{len(disturbed)} of {len(result.rows)} configurations"
        yield Note(names, f"not quiet: {first}{more}: small differences of times say nothing", "open")
    busy = load_in_words(result.environment.load)
    if busy and busy not in result.warnings:
        yield Note("warning", busy, "open")


def _disturbances(row: BenchmarkRow) -> list[str]:
    """All disturbances, each once, whichever round it disturbed."""
    return list(dict.fromkeys(text for entry in row.rounds for text in entry.disturbances))


def after_benchmark(result: BenchmarkResult, row: BenchmarkRow) -> list[str]:
    """Of the fastest row how sure that is, and whether its outputs are right; of others only why they did not run."""
    model = result.models[row.model].file
    typed = result.environment.command
    steps = list(where_it_did_not_run(row, model, typed))
    ranked = [each for each in rows_by_latency(result) if not each.fallback]
    if ranked and row is ranked[0]:
        steps += _whether_it_is_sure(ranked)
        if row.delegates and row.accuracy is None:
            command = next_command("diff", model, [*row.flags, *_input_shapes(result)], typed)
            steps.append(f"{command} says whether its outputs are still those of the CPU")
    return steps


def _input_shapes(result: BenchmarkResult) -> Iterator[str]:
    """The shapes of inputs that were stated, as ``evaltools diff`` takes them."""
    names, shapes = (str(result.options.get(name) or "") for name in ("input_layer", "input_layer_shape"))
    for name, shape in zip(names.split(","), shapes.split(":"), strict=False):
        if shape:
            yield f"--input_shape={name}:{shape}"


def _whether_it_is_sure(ranked: Sequence[BenchmarkRow]) -> Iterator[str]:
    """More rounds where the two fastest rows cannot be separated, or the only one has no interval."""
    fastest, *others = (shown_figures(row) for row in ranked[:2])
    if fastest.is_logged or fastest.rounds >= _ENOUGH_ROUNDS:
        return
    more = f"the same command with --rounds={_ENOUGH_ROUNDS}"
    if fastest.interval is None:
        yield f"{more} says how sure the medians are"
    elif any(next_one.interval is None or next_one.interval.low <= fastest.interval.high for next_one in others):
        yield f"{more} may separate the two fastest, whose intervals overlap"
