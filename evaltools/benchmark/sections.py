"""The details of a benchmark: each run in its turn, memory and warmth, operators, what disturbed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from evaltools.benchmark.rows import FRONT, accuracy_of_row, latency_ms
from evaltools.benchmark.screen import interval_of, more_figures
from evaltools.metrics.op_profile import OpProfile, explained_share, op_figures, slowdown, top_on_cpu, total_us
from evaltools.report.content import first_few, sentences, some_of
from evaltools.report.page.sections import tradeoff as page_tradeoff
from evaltools.report.page.sections.speed import each_run, moments, temperatures
from evaltools.report.words.facts import label
from evaltools.report.words.numbers import (
    in_milliseconds,
    milliseconds,
    three_digits,
)
from evaltools.result.facts import Model
from evaltools.result.result import Row
from evaltools.result.rounds import Conditions, Measured
from evaltools.result.section import (
    Axis,
    Block,
    Chart,
    Lines,
    Mark,
    Note,
    Section,
)

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


class Timed(Struct, frozen=True):
    """A row that has a time, what it was concluded from, and its ``name`` on the page."""

    name: str
    row: Row
    measured: Measured

    @property
    def latency_ms(self) -> float:
        """The median, or the average where there is none."""
        return latency_ms(self.row) or 0.0


def timed_rows(rows: Sequence[Row], measured: Sequence[Measured], models: Sequence[Model]) -> list[Timed]:
    """The rows that have a time, in their order."""
    return [
        Timed(label(models, row), row, each)
        for row, each in zip(rows, measured, strict=True)
        if latency_ms(row) is not None
    ]


def details(rows: Sequence[Row], measured: Sequence[Measured], models: Sequence[Model]) -> list[Section]:
    """Charts of times, memory and warmth, what disturbed; operators."""
    timed = timed_rows(rows, measured, models)
    if not timed:
        return []
    blocks: list[Block] = [more_figures(rows, models)]
    blocks += [medians(timed)] if len(timed) > 1 else []
    for chart in (tradeoff(rows, models), _runs(timed), _memory(timed), _warmth(timed)):
        blocks += [] if chart is None else [chart]
    disturbed = list(dict.fromkeys(text for each in measured for found in each.rounds for text in found.disturbances))
    blocks += [_disturbed(disturbed)] if disturbed else []
    profiled = {each.name: each.measured.profile for each in timed if each.measured.profile is not None}
    profiles = {name: profile for name, profile in profiled.items() if profile.ops}
    operators: list[Block] = [Lines(_left_on_cpu(profiles))] if profiles else []
    shown = list(profiles.items())[:_MOST_DRAWN]
    operators += [_operators(name, profile) for name, profile in shown if profile.runs]
    left = some_of(len(shown), len(profiles), "configurations")
    operators += [Lines([left])] if left else []
    return [Section("Speed", blocks), *([Section("Operators", operators, is_brief=True)] if operators else [])]


def _left_on_cpu(profiles: Mapping[str, OpProfile]) -> list[Note]:
    """The operators on plain CPU kernels that take longest, and where the times of operators say little."""
    notes = []
    for name, profile in profiles.items():
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


def medians(timed: Sequence[Timed]) -> Chart:
    """The median of each row that has a latency, with its 95 % interval."""
    marks = [Mark(each.latency_ms, each.name, x_interval=interval_of(each.row)) for each in timed]
    texts = [f"{each.name} {in_milliseconds(each.latency_ms)}" for each in timed]
    values = [each.latency_ms for each in timed]
    some = marks[:_MOST_INTERVALS]
    axis = Axis("ms (95 % interval)", "log" if values and max(values) > _WIDE * min(values) > 0 else "")
    text = sentences(first_few(texts), some_of(len(some), len(marks), "configurations"))
    return Chart("Median time with its interval", "points", some, text, axis)


def _runs(timed: Sequence[Timed]) -> Chart | None:
    times_ms = {
        each.name: [time / 1000 for time in each.row.series.get("invoke_us", ())]
        for each in sorted(timed, key=lambda each: each.latency_ms)
    }
    return each_run("Each run in its turn, round after round", times_ms, _MOST_CLOUDS)


def _memory(timed: Sequence[Timed]) -> Chart | None:
    """Resident memory of the first round of each row: before and after opening, after the runs, at the peak."""
    found: dict[str, dict[str, float]] = {}
    for each in timed:
        for memory in (first.memory for first in each.measured.rounds[:1]):
            sizes = {
                "start": memory.start_kb,
                "opened": memory.init_kb,
                "after the runs": memory.steady_kb,
                "peak": memory.peak_kb,
            }
            known = {name: kb / _MB for name, kb in sizes.items() if kb is not None}
            found |= {each.name: known} if len(known) > 1 else {}
    if not found:
        return None
    texts = [f"{name}: {', '.join(f'{moment} {mb:.1f} MB' for moment, mb in by.items())}" for name, by in found.items()]
    return moments("Memory of the process", found, "MB", texts, "configurations")


def _warmth(timed: Sequence[Timed]) -> Chart | None:
    """The hottest sensor before and after the rounds, where there are sensors."""
    rounds = {each.name: each.measured.rounds for each in timed if each.measured.rounds}
    found = {name: (_hottest(each[0].before), _hottest(each[-1].after)) for name, each in rounds.items()}
    return temperatures(found, "configurations")


def _hottest(conditions: Conditions) -> float | None:
    return max(conditions.temperatures.values(), default=None)


def _operators(name: str, profile: OpProfile) -> Chart:
    """The operators that take longest, with their times per run, as the profiler or the delegate itself gave them."""
    ranked = sorted(op_figures(profile.ops), key=lambda each: -each.sum_us)
    times: dict[str, float] = {}
    for each in ranked[:_MOST_OPERATORS]:
        place = f" (node {each.op.node})" if each.op.node is not None else " (delegate)" if each.op.internal else ""
        operator = f"{each.op.type}{place}"
        times[operator] = times.get(operator, 0.0) + each.sum_us / profile.runs / 1000
    share = explained_share(profile)
    explained = "" if share is None else f" All operators together are {100 * share:.0f} % of a run."
    text = f"{first_few([f'{operator} {three_digits(ms)} ms' for operator, ms in times.items()])}{explained}"
    marks = [Mark(ms, operator) for operator, ms in times.items()]
    return Chart(f"Operators that take longest: {name}", "bars", marks, text, Axis("ms per run"))


def tradeoff(rows: Sequence[Row], models: Sequence[Model]) -> Chart | None:
    """Rows whose accuracy was given (``--accuracy``), against their latency; None where fewer than two have one."""
    points = [
        Mark(
            latency_ms(row),
            100 * (accuracy.value or 0.0),
            label(models, row),
            x_interval=interval_of(row),
            shape=row.name,
            size=models[row.model].size_bytes / 1e6,
            joined=bool(row.counts.get(FRONT)),
        )
        for row in rows
        if latency_ms(row) and (accuracy := accuracy_of_row(row)) is not None
    ]
    return page_tradeoff.tradeoff(points, "accuracy in %")
