"""The details of a benchmark: each run in its turn, memory and warmth, operators, what disturbed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from evaltools.metrics.op_profile import OpProfile, explained_share, op_figures, slowdown, top_on_cpu, total_us
from evaltools.report.content import first_few, sentences, some_of
from evaltools.report.page.charts.figures import Spread, Tradeoff, intervals_chart
from evaltools.report.page.charts.times import bars_chart
from evaltools.report.page.sections.benchmarks import more_figures
from evaltools.report.page.sections.speed import each_run, moments, temperatures
from evaltools.report.page.sections.tradeoff import drawn, scaled
from evaltools.report.words.facts import label
from evaltools.report.words.numbers import (
    milliseconds,
    three_digits,
)
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow, Conditions
from evaltools.result.section import (
    Block,
    Chart,
    Lines,
    Note,
    Section,
)
from evaltools.result.shown_figures import rows_by_latency, shown_figures

_MOST_DRAWN: Final = 8
_MOST_INTERVALS: Final = 24
_MOST_CLOUDS: Final = 4
_MOST_OPERATORS: Final = 12
_MOST_LEFT: Final = 5
_MOST_DISTURBANCES: Final = 4
_MB: Final = 1024
_WIDE: Final = 8
_LOW_SHARE: Final = 0.8
_MUCH_SLOWER: Final = 1.5


def details(result: BenchmarkResult) -> list[Section]:
    """Charts of times, memory and warmth, what disturbed; operators."""
    ranked = rows_by_latency(result)
    timed = [row for row in result.rows if any(row is each for each in ranked)]
    if not timed:
        return []
    blocks: list[Block] = [more_figures(result)]
    blocks += [medians(result, timed)] if len(timed) > 1 else []
    for chart in (benchmark_tradeoff(result), _runs(result, timed), _memory(result, timed), _warmth(result, timed)):
        blocks += [] if chart is None else [chart]
    disturbed = list(dict.fromkeys(text for row in result.rows for each in row.rounds for text in each.disturbances))
    blocks += [_disturbed(disturbed)] if disturbed else []
    profiled = [row for row in timed if row.profile is not None and row.profile.ops]
    operators: list[Block] = [Lines(_left_on_cpu(result, profiled))] if profiled else []
    operators += [chart for row in profiled[:_MOST_DRAWN] for chart in _operators(result, row)]
    left = some_of(min(len(profiled), _MOST_DRAWN), len(profiled), "configurations")
    operators += [Lines([left])] if left else []
    sections = [Section("Speed", blocks)] if blocks else []
    return [*sections, *([Section("Operators", operators, is_brief=True)] if operators else [])]


def _left_on_cpu(result: BenchmarkResult, profiled: Sequence[BenchmarkRow]) -> list[Note]:
    """The operators on plain CPU kernels that take longest, and where the times of operators say little."""
    notes = []
    for row in profiled:
        profile, name = row.profile, label(result, row)
        assert profile is not None
        notes += [Note(name, doubt, "open") for doubt in _doubts(profile)]
        total, left = total_us(profile), top_on_cpu(profile, _MOST_LEFT)
        texts = []
        for op in left:
            time_us = sum(op.times_us)
            share = f", {100 * time_us / total:.1f} %" if total else ""
            node = "" if op.node is None else f" node {op.node}"
            texts.append(f"{op.type}{node} {milliseconds(time_us / profile.runs)}{share}")
        whole = f"top operators left on the CPU, of {milliseconds(total / profile.runs)} per run: {'; '.join(texts)}"
        notes.append(Note(name, whole if left else "no operator is left on plain CPU kernels"))
    return notes


def _doubts(profile: OpProfile) -> Iterator[str]:
    """Where the operators' times say little about the runs that were measured."""
    share, factor = explained_share(profile), slowdown(profile)
    if share is not None and share < _LOW_SHARE:
        yield (
            f"the operators' times make up only {100 * share:.0f} % of a run, which is short beside the runtime's own "
            "work; judge this model by its latency"
        )
    if factor is not None and factor > _MUCH_SLOWER:
        yield f"profiled runs took {factor:.1f} times as long as others: trust shares, not times"


def _disturbed(disturbances: Sequence[str]) -> Lines:
    """The first few, as later ones differ only in their numbers."""
    shown = [f"not quiet: {text}" for text in disturbances[:_MOST_DISTURBANCES]]
    left = some_of(len(shown), len(disturbances), "disturbances")
    return Lines([*shown, *([left] if left else [])])


def medians(result: BenchmarkResult, timed: Sequence[BenchmarkRow]) -> Chart:
    """The median of each row that has a latency, with its 95 % interval."""
    spreads, texts = [], []
    for row in timed:
        shown = shown_figures(row)
        low, high = (shown.interval.low / 1000, shown.interval.high / 1000) if shown.interval else (None, None)
        spreads.append(Spread(label(result, row), (shown.latency_us or 0.0) / 1000, low, high))
        texts.append(f"{label(result, row)} {milliseconds(shown.latency_us or 0.0)}")
    values = [spread.value for spread in spreads]
    some = spreads[:_MOST_INTERVALS]
    is_wide = bool(values) and max(values) > _WIDE * min(values) > 0
    spec = intervals_chart(some, "ms (95 % interval)", is_wide=is_wide)
    text = sentences(first_few(texts), some_of(len(some), len(spreads), "configurations"))
    return Chart("Median time with its interval", spec, text)


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
    texts = [f"{name}: {', '.join(f'{moment} {mb:.1f} MB' for moment, mb in by.items())}" for name, by in found.items()]
    return moments("Memory of the process", found, "MB", texts, "configurations")


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
    text = f"{first_few([f'{name} {three_digits(ms)} ms' for name, ms in times.items()])}{explained}"
    return [Chart(f"Operators that take longest: {label(result, row)}", bars_chart(times, "ms per run"), text)]


def benchmark_tradeoff(result: BenchmarkResult) -> Chart | None:
    """Rows of a benchmark whose accuracy was given (``--accuracy``); None where fewer than two have one."""
    points = [
        Tradeoff(
            label(result, row),
            row.name,
            (shown_figures(row).latency_us or 0.0) / 1000,
            100 * row.accuracy.value,
            result.models[row.model].size_bytes / 1e6,
            bool(row.on_latency_front),
            latency=scaled(shown_figures(row).interval, 1 / 1000),
        )
        for row in result.rows
        if row.status == "measured" and row.accuracy is not None and shown_figures(row).latency_us
    ]
    return drawn(points, "accuracy in %")
