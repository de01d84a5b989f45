"""The figures of a benchmark, for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from evaltools.metrics.op_profile import OpProfile, explained_share, slowdown, top_on_cpu, total_us
from evaltools.report.tables.cells import (
    Said,
    delegated,
    megabytes,
    milliseconds,
    paired_speed,
    percent,
    print_said,
    print_steps,
    says_something,
    three_digits,
    times_as_fast,
)
from evaltools.report.tables.columns import Column, print_columns
from evaltools.report.tables.short_answers import where_it_did_not_run
from evaltools.report.tables.shown_figures import Shown, shown_figures
from evaltools.report.words.load import load_in_words
from evaltools.report.words.next_commands import next_command
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.stats.latency import FEWEST_PROCESSES, FEWEST_TIMES
from evaltools.text import printable

_MOST_OPERATORS: Final = 5
_MOST_DISTURBANCES: Final = 3
_MOST_NAMED: Final = 2
_LOW_SHARE: Final = 0.8
_MUCH_SLOWER: Final = 1.5
_ALL_IN_THE_FILE: Final = "--output_file_path=result.json lists all"
_ENOUGH_ROUNDS: Final = 8


def print_benchmark(result: BenchmarkResult, console: Console, is_quiet: bool = False) -> None:
    """Print measured rows by latency, failed ones with reasons, disturbances, operators left on the CPU, what next.

    ``is_quiet``: print only which configuration is the fastest, instead of the table and what follows it.
    """
    measured = sorted(
        (row for row in result.rows if row.status == "measured"),
        key=lambda row: shown_figures(row).latency_us or 0.0,
    )
    if measured and is_quiet:
        console.print(_fastest(result, measured))
    elif measured:
        _print_table(result, measured, console)
    print_said(_not_as_asked(result), console)
    if is_quiet:
        return
    if len(measured) == 1:
        _print_disturbances(label(result, measured[0]), measured[0], console)
    else:
        _print_disturbances_of_several(result, measured, console)
    if measured and (busy := load_in_words(result.environment.load)):
        console.print(busy, style="yellow")
    for row in measured:
        _print_operators(label(result, row), row, console)
    print_steps((step for row in result.rows for step in after_benchmark(result, row)), console)


def _fastest(result: BenchmarkResult, by_latency: Sequence[BenchmarkRow]) -> str:
    """The first row with its median, and how many times as fast as the next one it is."""
    first, *others = by_latency
    median = _median(shown_figures(first))
    if not others:
        return f"{label(result, first)}: {median}"
    own, next_one = (shown_figures(row).latency_us for row in (first, others[0]))
    fast = f", {times_as_fast(next_one / own)} the speed of {label(result, others[0])}" if own and next_one else ""
    return f"fastest by median: {label(result, first)} with {median}{fast}"


def _not_as_asked(result: BenchmarkResult) -> Iterator[Said]:
    """The rows that failed, or ran on the CPU instead of what they asked for."""
    for row in result.rows:
        if row.status == "failed":
            word = "not measured" if row.figures is None else "failed"
            yield Said(label(result, row), f"{word}: {row.reason}", "bold red")
        elif row.fallback:
            yield Said(label(result, row), f"FALLBACK: {row.fallback}", "bold red")


def label(result: BenchmarkResult, row: BenchmarkRow) -> str:
    """The configuration's name, with the model where there are several."""
    if len(result.models) == 1:
        return row.name
    return f"{row.name} of {_model_name(result, row)}"


def model_names(paths: Sequence[Path]) -> list[str]:
    """The files' names without their endings; with the folder where two files have the same name.

    >>> model_names([Path("a/m.tflite"), Path("b/m.tflite"), Path("b/n.tflite")])
    ['a/m.tflite', 'b/m.tflite', 'n']
    """
    names = Counter(path.name for path in paths)
    return [printable(path.stem if names[path.name] == 1 else str(path)) for path in paths]


def _model_name(result: BenchmarkResult, row: BenchmarkRow) -> str:
    return model_names([Path(model.file) for model in result.models])[row.model]


def _print_table(result: BenchmarkResult, rows: Sequence[BenchmarkRow], console: Console) -> None:
    names = [Column[BenchmarkRow]("configuration", _marked_name)]
    if len(result.models) > 1:
        model = Column[BenchmarkRow]("model", lambda row: _model_name(result, row))
        size = Column[BenchmarkRow]("model MB", lambda row: megabytes(result.models[row.model].size_bytes))
        names = [model, size, *names]
    print_columns(names, _columns(rows), rows, console)


def _columns(rows: Sequence[BenchmarkRow]) -> list[Column[BenchmarkRow]]:
    def of_shown(heading: str, cell: Callable[[Shown], str], rank: int) -> Column[BenchmarkRow]:
        return Column(heading, lambda row: cell(shown_figures(row)), rank)

    columns = [
        Column[BenchmarkRow]("delegated", delegated, 3),
        of_shown("median [95 %]", _median, 0),
        Column("vs first", versus_first, 4),
        of_shown("runs", _runs, 9),
        of_shown("average", lambda shown: _time(shown.average_us), 10),
        of_shown("p95", lambda shown: _time(shown.p95_us), 8),
        of_shown("with reading", lambda shown: _time(shown.with_reading_us), 11),
        of_shown("load", lambda shown: _time(shown.load_us), 6),
        of_shown("first run", lambda shown: _time(shown.first_run_us), 7),
        of_shown("peak MB", lambda shown: _megabytes(shown.peak_mb), 5),
        of_shown("steady MB", lambda shown: _megabytes(shown.steady_mb), 12),
    ]
    if not any(row.versus_first for row in rows):
        columns = [column for column in columns if column.heading != "vs first"]
    if any(row.accuracy for row in rows):
        columns.append(Column("accuracy", _accuracy, 1))
        columns.append(Column("on the front", lambda row: "yes" if row.on_latency_front else "", 2))
    return columns


def _marked_name(row: BenchmarkRow) -> str:
    """The name, with a word where the CPU did what an accelerator was asked for."""
    is_software = any(delegate.requested and delegate.is_cpu for delegate in row.delegates)
    return row.name + (" [software]" if is_software else "") + (" [FALLBACK]" if row.fallback else "")


def _time(microseconds: float | None) -> str:
    return "-" if microseconds is None else milliseconds(microseconds)


def _median(shown: Shown) -> str:
    """The median time; the average where a log has no median."""
    if shown.median_us is None:
        return "-" if shown.average_us is None else f"{milliseconds(shown.average_us)} (average)"
    span, note = shown.interval, f" [{_why_without_interval(shown)}]"
    if shown.is_logged and shown.rounds < 2:
        note = ""
    if span and not says_something(span):
        span, note = None, " [too uneven]"
    interval = f" [{three_digits(span.low / 1000)}, {three_digits(span.high / 1000)}]" if span else note
    return milliseconds(shown.median_us) + interval


def _why_without_interval(shown: Shown) -> str:
    if 1 < shown.rounds < FEWEST_PROCESSES:
        return "too few rounds"
    return "too few runs" if shown.runs < FEWEST_TIMES else "times jumped"


def versus_first(row: BenchmarkRow) -> str:
    """How many times as fast as the first row."""
    return "" if row.versus_first is None else paired_speed(row.versus_first)


def _runs(shown: Shown) -> str:
    return f"{shown.runs}" + (f" in {shown.rounds} rounds" if shown.rounds > 1 else "")


def _megabytes(size_mb: float | None) -> str:
    return "-" if size_mb is None else f"{size_mb:.1f}"


def _accuracy(row: BenchmarkRow) -> str:
    return f"{row.accuracy.metric} {percent(row.accuracy.value)}" if row.accuracy else "-"


def _disturbances(row: BenchmarkRow) -> list[str]:
    """All disturbances, each once, whichever round it disturbed."""
    return list(dict.fromkeys(text for entry in row.rounds for text in entry.disturbances))


def _print_disturbances(name: str, row: BenchmarkRow, console: Console) -> None:
    found = _disturbances(row)
    left_out = len(found) - _MOST_DISTURBANCES
    more = f" (and {left_out} more; {_ALL_IN_THE_FILE})" if left_out > 0 else ""
    for number, text in enumerate(found[:_MOST_DISTURBANCES], 1):
        console.print(f"{name}: not quiet: {text}{more if number == _MOST_DISTURBANCES else ''}", style="yellow")


def _print_disturbances_of_several(result: BenchmarkResult, rows: Sequence[BenchmarkRow], console: Console) -> None:
    """Print one line for all disturbed rows, with their first disturbance."""
    disturbed = [row for row in rows if _disturbances(row)]
    if not disturbed:
        return
    first, *others = dict.fromkeys(text for row in disturbed for text in _disturbances(row))
    who = ", ".join(label(result, row) for row in disturbed)
    if len(disturbed) > _MOST_NAMED:
        count = "all" if len(disturbed) == len(rows) else f"{len(disturbed)} of"
        who = f"{count} {len(rows)} configurations"
    more = f" (and {len(others)} more; {_ALL_IN_THE_FILE})" if others else ""
    console.print(f"{who}: not quiet: {first}{more}", style="yellow")


def _print_doubts(name: str, profile: OpProfile, console: Console) -> None:
    """Print where the operators' times say little about the runs that were measured."""
    share, factor = explained_share(profile), slowdown(profile)
    if share is not None and share < _LOW_SHARE:
        console.print(
            f"{name}: the operators' times make up only {100 * share:.0f} % of a run, which is short beside the "
            "runtime's own work; judge this model by its latency"
        )
    if factor is not None and factor > _MUCH_SLOWER:
        console.print(f"{name}: profiled runs took {factor:.1f} times as long as others: trust shares, not times")


def _print_operators(name: str, row: BenchmarkRow, console: Console) -> None:
    if row.profile_failure is not None:
        console.print(printable(f"{name}: operators are not profiled: {row.profile_failure}"), style="yellow")
    if row.profile is None or not row.profile.ops:
        return
    _print_doubts(name, row.profile, console)
    total = total_us(row.profile)
    left = top_on_cpu(row.profile, _MOST_OPERATORS)
    if not left:
        console.print(f"{name}: no operator is left on plain CPU kernels")
        return
    console.print(f"{name}: top operators left on the CPU, of {milliseconds(total / row.profile.runs)} per run")
    for op in left:
        time_us = sum(op.times_us)
        share = f"{100 * time_us / total:5.1f} %" if total else "-"
        node = "" if op.node is None else f" node {op.node}"
        console.print(f"  {milliseconds(time_us / row.profile.runs):>9}  {share}  {op.type}{node}")


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


def rows_by_latency(result: BenchmarkResult) -> list[BenchmarkRow]:
    """The rows that have a time, the fastest first."""
    timed = [(shown_figures(row).latency_us, row) for row in result.rows if row.status == "measured"]
    known = [(latency_us, row) for latency_us, row in timed if latency_us is not None]
    return [row for _, row in sorted(known, key=lambda entry: entry[0])]


def _whether_it_is_sure(ranked: Sequence[BenchmarkRow]) -> Iterator[str]:
    """More rounds where the two fastest rows cannot be told apart, or the only one has no interval."""
    fastest, *others = (shown_figures(row) for row in ranked[:2])
    if fastest.is_logged or fastest.rounds >= _ENOUGH_ROUNDS:
        return
    more = f"the same command with --rounds={_ENOUGH_ROUNDS}"
    if fastest.interval is None:
        yield f"{more} says how sure the medians are"
    elif any(next_one.interval is None or next_one.interval.low <= fastest.interval.high for next_one in others):
        yield f"{more} may tell the two fastest apart, whose intervals overlap"
