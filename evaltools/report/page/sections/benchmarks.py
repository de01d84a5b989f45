"""A benchmark: how fast each row is, each run in its turn, what it needs, what was not quiet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from evaltools.metrics.op_profile import OpProfile, explained_share, op_figures, total_us
from evaltools.report.page.charts.figures import Spread, intervals_chart
from evaltools.report.page.charts.times import bars_chart
from evaltools.report.page.content.page import Saying, each_step_once, first_few, sentences, some_of
from evaltools.report.page.sections.speed import each_run, moments, temperatures
from evaltools.report.tables.benchmark import after_benchmark, label, rows_by_latency, versus_first
from evaltools.report.tables.cells import megabytes, milliseconds, three_digits
from evaltools.report.tables.evaluation import describe_configuration
from evaltools.report.tables.shown_figures import shown_figures
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow, Conditions
from evaltools.result.section import Block, Cell, Chart, Lines, Number, Section, Table, number_cell

_MOST_DRAWN: Final = 8
_MOST_INTERVALS: Final = 24
_MOST_CLOUDS: Final = 4
_MOST_OPERATORS: Final = 12
_MOST_DISTURBANCES: Final = 4
_MOST_KINDS: Final = 3
_MB: Final = 1024
_WIDE: Final = 8


def sayings(result: BenchmarkResult, is_brief: bool = False) -> tuple[Saying, ...]:
    """The measured rows by latency, the fastest first, then those that failed; where there is no row, why.

    ``is_brief``: beside other results, of rows that ran as asked for the fastest alone.
    """
    if not result.rows:
        return (Saying("nothing", "bad", f"nothing was measured: {result.stopped or 'the result has no rows'}"),)
    measured = rows_by_latency(result)
    as_asked = [row for row in measured if not row.fallback]
    fastest = as_asked[0] if len(measured) > 1 and as_asked else None
    found = []
    for row in measured:
        if not is_brief:
            found.append(_measured(result, row, row is fastest))
        elif row.fallback or row is as_asked[0]:
            found.append(_measured(result, row, row is fastest, () if row.fallback else as_asked[1:]))
    for row in result.rows:
        if row not in measured:
            word = "not measured" if row.status == "failed" else "without a time"
            why = (("why", row.reason or "no run was timed"),)
            found.append(Saying(label(result, row), "bad", word, why, tuple(after_benchmark(result, row))))
    return each_step_once(found)


def not_quiet(result: BenchmarkResult) -> list[str]:
    """One warning about all rows that were disturbed; none where the machine was quiet."""
    disturbed = [row for row in result.rows if any(each.disturbances for each in row.rounds)]
    if not disturbed:
        return []
    is_all = len(disturbed) == len(rows_by_latency(result))
    who = "all rows" if is_all else ", ".join(label(result, row) for row in disturbed)
    return [f"the machine was not quiet while {who} ran: small differences of times say nothing; see Speed for more"]


def _slower(others: Sequence[BenchmarkRow]) -> str:
    """How many other rows there are, by latency, and from how fast to how slow."""
    times = [shown_figures(row).latency_us or 0.0 for row in others]
    span = " to ".join(dict.fromkeys((milliseconds(times[0]), milliseconds(times[-1]))))
    return f"{len(others)} more configuration{'s' * (len(others) != 1)}, {span}: see Speed"


def _longest(profile: OpProfile) -> str:
    """The kinds of operators that take longest, with their shares of all operators' time."""
    spent: Counter[str] = Counter()
    for each in op_figures(profile.ops):
        spent[each.op.type] += each.sum_us
    whole = total_us(profile)
    return ", ".join(f"{name} {100 * us / whole:.0f} %" for name, us in spent.most_common(_MOST_KINDS))


def _measured(
    result: BenchmarkResult, row: BenchmarkRow, is_fastest: bool, others: Sequence[BenchmarkRow] = ()
) -> Saying:
    """What is said of a row, and in a word of ``others`` that are not shown."""
    shown = shown_figures(row)
    word = "median" if shown.median_us is not None else "average"
    said = f"{'fastest: ' if is_fastest else ''}{word} {milliseconds(shown.latency_us or 0.0)}"
    facts = []
    if shown.interval is not None:
        span = f"{milliseconds(shown.interval.low)} to {milliseconds(shown.interval.high)} (95 %)"
        facts.append(("how sure", f"{span}; {shown.runs} runs in {shown.rounds} rounds"))
    if row.versus_first is not None and row.versus_first.ratio:
        first = next(each for each in result.rows if each.model == row.model and each.status == "measured")
        facts.append(("how fast", f"{versus_first(row)} the speed of {first.name}"))
    needs = [f"peak memory {shown.peak_mb:.0f} MB"] if shown.peak_mb is not None else []
    needs += [f"load {milliseconds(shown.load_us)}"] if shown.load_us is not None else []
    needs += [f"first run {milliseconds(shown.first_run_us)}"] if shown.first_run_us is not None else []
    facts += [("what it needs", ", ".join(needs))] if needs else []
    facts += [("operators", _longest(row.profile))] if row.profile is not None and total_us(row.profile) else []
    facts.append(("did it run", describe_configuration(row)))
    facts += [("the others", _slower(others))] if others else []
    steps = tuple(after_benchmark(result, row))
    return Saying(label(result, row), "bad" if row.fallback else "", said, tuple(facts), steps)


def speed(result: BenchmarkResult) -> list[Section]:
    """Times, what each row needs, operators, what disturbed."""
    ranked = rows_by_latency(result)
    timed = [row for row in result.rows if any(row is each for each in ranked)]
    if not timed:
        return []
    blocks: list[Block] = [_times(result, timed)]
    blocks += [medians(result, timed)] if len(timed) > 1 else []
    for drawn in (_runs(result, timed), _memory(result, timed), _warmth(result, timed)):
        blocks += [] if drawn is None else [drawn]
    disturbed = list(dict.fromkeys(text for row in result.rows for each in row.rounds for text in each.disturbances))
    blocks += [_disturbed(disturbed)] if disturbed else []
    profiled = [chart for row in timed for chart in _operators(result, row)]
    operators: list[Block] = [*profiled[:_MOST_DRAWN]]
    left = some_of(len(operators), len(profiled), "configurations")
    operators += [Lines([left])] if left else []
    return [Section("Speed", blocks), *([Section("Operators", operators)] if operators else [])]


def _disturbed(disturbances: Sequence[str]) -> Lines:
    """The first few, as later ones differ in their numbers alone."""
    shown = [f"not quiet: {text}" for text in disturbances[:_MOST_DISTURBANCES]]
    left = some_of(len(shown), len(disturbances), "disturbances")
    return Lines([*shown, *([left] if left else [])])


def _times(result: BenchmarkResult, timed: Sequence[BenchmarkRow]) -> Table:
    rows = []
    for row in timed:
        path, shown = f"rows/{result.rows.index(row)}", shown_figures(row)
        figures = row.figures
        cells: list[Cell] = [label(result, row)]
        if figures is None:
            cells += [
                number_cell(shown.median_us, milliseconds, f"{path}/logged/median_us"),
                number_cell(shown.average_us, milliseconds, f"{path}/logged/avg_us"),
                "-",
                "-",
                number_cell(shown.load_us, milliseconds),
                number_cell(shown.first_run_us, milliseconds),
            ]
        else:
            cells += [
                number_cell(figures.inference.p50_us, milliseconds, f"{path}/figures/inference/p50_us"),
                number_cell(figures.inference.avg_us, milliseconds, f"{path}/figures/inference/avg_us"),
                number_cell(figures.percentiles.get("95"), milliseconds, f"{path}/figures/percentiles/95"),
                number_cell(figures.run_and_read.p50_us, milliseconds, f"{path}/figures/run_and_read/p50_us"),
                number_cell(figures.init.p50_us, milliseconds, f"{path}/figures/init/p50_us"),
                number_cell(figures.first_run.p50_us, milliseconds, f"{path}/figures/first_run/p50_us"),
            ]
        cells += [number_cell(shown.peak_mb, "{:.1f} MB".format)]
        size = result.models[row.model].size_bytes
        cells += [Number(f"{megabytes(size)} MB", size, f"models/{row.model}/size_bytes")]
        rows.append(cells)
    columns = ("configuration", "median", "average", "p95", "with reading", "load", "first run", "peak memory", "model")
    return Table("Times of one run, and what it needs", columns, rows)


def medians(result: BenchmarkResult, timed: Sequence[BenchmarkRow]) -> Chart:
    """The median of each row that has a latency, with its 95 % interval."""
    spreads, told = [], []
    for row in timed:
        shown = shown_figures(row)
        low, high = (shown.interval.low / 1000, shown.interval.high / 1000) if shown.interval else (None, None)
        spreads.append(Spread(label(result, row), (shown.latency_us or 0.0) / 1000, low, high))
        told.append(f"{label(result, row)} {milliseconds(shown.latency_us or 0.0)}")
    values = [spread.value for spread in spreads]
    drawn = spreads[:_MOST_INTERVALS]
    is_wide = bool(values) and max(values) > _WIDE * min(values) > 0
    spec = intervals_chart(drawn, "ms (95 % interval)", is_wide=is_wide)
    said = sentences(first_few(told), some_of(len(drawn), len(spreads), "configurations"))
    return Chart("Median time with its interval", spec, said)


def _runs(result: BenchmarkResult, timed: Sequence[BenchmarkRow]) -> Chart | None:
    times_ms = {
        label(result, row): [time / 1000 for each in row.rounds for time in each.regular.invokes_us]
        for row in sorted(timed, key=lambda row: shown_figures(row).latency_us or 0.0)
    }
    return each_run("Each run in its turn, round after round", times_ms, _MOST_CLOUDS)


def _memory(result: BenchmarkResult, timed: Sequence[BenchmarkRow]) -> Chart | None:
    """Resident memory of the first round of each row: before and after opening, after the runs, at the peak."""
    found = {}
    for row in timed:
        memory = row.rounds[0].memory if row.rounds else None
        if memory is None:
            continue
        sizes = {
            "start": memory.start_kb,
            "opened": memory.init_kb,
            "after the runs": memory.steady_kb,
            "peak": memory.peak_kb,
        }
        known = {name: kb / _MB for name, kb in sizes.items() if kb is not None}
        if len(known) > 1:
            found[label(result, row)] = known
    if not found:
        return None
    told = [f"{name}: {', '.join(f'{moment} {mb:.1f} MB' for moment, mb in by.items())}" for name, by in found.items()]
    return moments("Memory of the process", found, "MB", told, "configurations")


def _warmth(result: BenchmarkResult, timed: Sequence[BenchmarkRow]) -> Chart | None:
    """The hottest sensor before and after the rounds, where there are sensors."""
    found = {
        label(result, row): (_hottest(row.rounds[0].before), _hottest(row.rounds[-1].after))
        for row in timed
        if row.rounds
    }
    return temperatures(found, "configurations")


def _hottest(conditions: Conditions) -> float | None:
    return max(conditions.temperatures.values(), default=None)


def _operators(result: BenchmarkResult, row: BenchmarkRow) -> list[Chart]:
    """The operators that take longest, with their times per run, as the profiler or the delegate itself gave them."""
    profile = row.profile
    if profile is None or not profile.ops or not profile.runs:
        return []
    ranked = sorted(op_figures(profile.ops), key=lambda each: -each.sum_us)
    times: dict[str, float] = {}
    for each in ranked[:_MOST_OPERATORS]:
        place = f" (node {each.op.node})" if each.op.node is not None else " (delegate)" if each.op.internal else ""
        name = f"{each.op.type}{place}"
        times[name] = times.get(name, 0.0) + each.sum_us / profile.runs / 1000
    share = explained_share(profile)
    explained = "" if share is None else f" All operators together are {100 * share:.0f} % of a run."
    told = f"{first_few([f'{name} {three_digits(ms)} ms' for name, ms in times.items()])}{explained}"
    return [Chart(f"Operators that take longest: {label(result, row)}", bars_chart(times, "ms per run"), told)]
