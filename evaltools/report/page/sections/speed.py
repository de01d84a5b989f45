"""How fast an evaluation's configurations are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.report.page.charts.figures import Spread, intervals_chart
from evaltools.report.page.charts.times import MOST_POINTS, runs_chart
from evaltools.report.page.content.page import sentences, some_of
from evaltools.report.tables.cells import milliseconds, p_value, says_something, three_digits
from evaltools.report.tables.execution import conditions_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.section import Block, Cell, Chart, Lines, Number, Section, Table
from evaltools.stats.latency_ratio import is_clear
from evaltools.task_kind import kind_of

_MOST_CONFIGURATIONS: Final = 8
_MOST_INTERVALS: Final = 24


def speed(result: EvaluationResult) -> Section | None:
    """Latencies, ratios with intervals, single times where they were kept; None without times."""
    timed = [
        (place, entry)
        for place, entry in enumerate(result.configurations)
        if entry.inference_latency is not None and entry.inference_latency.count
    ]
    if not timed:
        return None
    blocks: list[Block] = [_latencies(timed)]
    blocks += [drawn for drawn in (_ratios(result), _runs(result, timed)) if drawn is not None]
    said = _said(result)
    return Section("Speed", [*blocks, *([Lines(said)] if said else [])])


def _latencies(timed: Sequence[tuple[int, ConfigurationResult]]) -> Table:
    rows = []
    for place, entry in timed:
        latency, path = entry.inference_latency, f"configurations/{place}"
        assert latency is not None
        rows.append(
            [
                entry.name,
                *(
                    _time(value, f"{path}/inference_latency/{name}")
                    for name, value in (
                        ("p50_us", latency.p50_us),
                        ("p90_us", latency.p90_us),
                        ("avg_us", latency.avg_us),
                        ("min_us", latency.min_us),
                        ("max_us", latency.max_us),
                    )
                ),
                Number(str(latency.count), latency.count, f"{path}/inference_latency/count"),
                _megabytes(entry.peak_memory_mb, f"{path}/peak_memory_mb"),
            ]
        )
    columns = ("configuration", "p50", "p90", "average", "least", "most", "runs", "peak memory")
    return Table("Time of one run (invoke)", columns, rows)


def _time(value: float | None, path: str) -> Cell:
    return "-" if value is None else Number(milliseconds(value), value, path)


def _megabytes(value: float | None, path: str) -> Cell:
    return "-" if value is None else Number(f"{value:.0f} MB", value, path)


def _ratios(result: EvaluationResult) -> Chart | None:
    """How many times as fast as its reference each configuration is."""
    spreads, told = [], []
    for entry in result.configurations:
        reference = reference_of(entry, result.configurations)
        for each in result.latency_comparisons:
            if reference is None or (each.baseline, each.other) != (reference.name, entry.name) or not each.ratio:
                continue
            known = each.interval if each.interval is not None and says_something(each.interval) else None
            low, high = (1 / known.high, 1 / known.low) if known is not None else (None, None)
            spreads.append(Spread(entry.name, 1 / each.ratio, low, high))
            span = f" [{low:.2f}, {high:.2f}]" if low is not None and high is not None else ""
            told.append(f"{entry.name} {1 / each.ratio:.2f}x{span} the speed of {reference.name}, {each.pairs} pairs")
    if not spreads:
        return None
    spec = intervals_chart(spreads[:_MOST_INTERVALS], "times as fast (95 % interval)", 1.0)
    left = some_of(len(told[:_MOST_INTERVALS]), len(told), "configurations")
    return Chart("Speed against the reference", spec, sentences("; ".join(told[:_MOST_INTERVALS]), left))


def _runs(result: EvaluationResult, timed: Sequence[tuple[int, ConfigurationResult]]) -> Chart | None:
    """Single times, of the first few configurations."""
    evidence = kind_of(result.task).evidence
    times = {entry.name: evidence.judged(result, entry).times_us for _, entry in timed}
    times_ms = {name: [time / 1000 for time in found] for name, found in times.items()}
    references = [entry.name for entry in result.configurations if entry.role == "reference" and times.get(entry.name)]
    return each_run("Each run in its turn", times_ms, _MOST_CONFIGURATIONS, next(iter(references), None))


def _said(result: EvaluationResult) -> list[str]:
    """The conditions of the latencies, what rose or fell."""
    said = []
    execution = result.execution
    if execution is not None:
        if execution.quiet_latency_examples is not None or any(execution.stage_seconds.values()):
            said.append(conditions_in_words(result, execution))
        if execution.startup_seconds:
            phases = ", ".join(f"{name} {spent:.2g} s" for name, spent in execution.startup_seconds.items())
            said.append(f"until the first example was finished: {phases}")
    for entry in result.configurations:
        drift = entry.latency_drift
        if drift is not None and is_clear(drift):
            word = "rose" if drift.change > 0 else "fell"
            said.append(
                f"{entry.name}: its times {word} by {100 * abs(drift.change):.0f} % while they were measured "
                f"({p_value(drift.p_value)}): the machine was not quiet"
            )
    return said


def each_run(
    caption: str, times_ms: Mapping[str, Sequence[float]], most: int, reference: str | None = None
) -> Chart | None:
    """The times of the first configurations in milliseconds, in the order of the runs; None where there are none.

    >>> each_run("Runs", {"cpu": [2.0, 1.5], "gpu": []}, most=8).told
    'cpu: 2 runs from 1.5 to 2 ms.'
    """
    every = {name: times for name, times in times_ms.items() if times}
    timed = dict(list(every.items())[:most])
    if not timed:
        return None
    told = "; ".join(
        f"{name}: {len(times)} runs from {three_digits(min(times))} to {three_digits(max(times))} ms"
        for name, times in timed.items()
    )
    is_bounded = any(len(times) > MOST_POINTS for times in timed.values())
    points = f"At most {MOST_POINTS} runs of each are drawn, all in the JSON result" if is_bounded else ""
    left = some_of(len(timed), len(every), "configurations")
    return Chart(caption, runs_chart(timed, reference), sentences(told, points, left))
