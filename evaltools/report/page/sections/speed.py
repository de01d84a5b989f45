"""How fast an evaluation's configurations are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.report.content import first_few, sentences, some_of
from evaltools.report.page.charts.figures import Spread, intervals_chart
from evaltools.report.page.charts.times import MOST_POINTS, moments_chart, runs_chart
from evaltools.report.words.execution import conditions_in_words
from evaltools.report.words.facts import drift_of, speed_of
from evaltools.report.words.numbers import in_times_with_interval, milliseconds, says_something, three_digits
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.section import Block, Cell, Chart, Lines, Note, Number, Section, Table, number_cell

_MOST_CONFIGURATIONS: Final = 8
_MOST_DRAWN: Final = 8
_OF_LATENCY: Final = ("p50_us", "p90_us", "avg_us", "min_us", "max_us")
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
    blocks: list[Block] = [_latencies(result, timed)]
    blocks += [drawn for drawn in (_ratios(result), _runs(result, timed)) if drawn is not None]
    lines = _conditions(result)
    return Section("Speed", [*blocks, *([Lines(lines)] if lines else [])])


def _latencies(result: EvaluationResult, timed: Sequence[tuple[int, ConfigurationResult]]) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, entry in timed:
        latency, path = entry.inference_latency, f"configurations/{place}"
        assert latency is not None
        ratio = speed_of(entry, reference_of(entry, result.configurations), result.latency_comparisons)
        rows.append(
            [
                entry.name,
                *(
                    number_cell(getattr(latency, name), milliseconds, f"{path}/inference_latency/{name}")
                    for name in _OF_LATENCY
                ),
                "" if ratio is None else Number(in_times_with_interval(ratio), ratio.ratio),
                number_cell(latency.count, path=f"{path}/inference_latency/count"),
                number_cell(entry.peak_memory_mb, "{:.0f} MB".format, f"{path}/peak_memory_mb"),
            ]
        )
    columns = ("configuration", "p50", "p90", "average", "least", "most", "vs reference", "runs", "peak memory")
    return Table("Time of one run (invoke)", columns, rows, ranks=(0, 1, 3, 5, 6, 7, 2, 8, 4))


def _ratios(result: EvaluationResult) -> Chart | None:
    """How many times as fast as its reference each configuration is."""
    spreads, texts = [], []
    for entry in result.configurations:
        reference = reference_of(entry, result.configurations)
        for each in result.latency_comparisons:
            if reference is None or (each.baseline, each.other) != (reference.name, entry.name) or not each.ratio:
                continue
            known = each.interval if each.interval is not None and says_something(each.interval) else None
            low, high = (1 / known.high, 1 / known.low) if known is not None else (None, None)
            spreads.append(Spread(entry.name, 1 / each.ratio, low, high))
            texts.append(f"{entry.name} {in_times_with_interval(each)}, {each.pairs} pairs")
    if not spreads:
        return None
    spec = intervals_chart(spreads[:_MOST_INTERVALS], "times as fast (95 % interval)", 1.0)
    left = some_of(len(texts[:_MOST_INTERVALS]), len(texts), "configurations")
    return Chart("Speed against the reference", spec, sentences("; ".join(texts[:_MOST_INTERVALS]), left))


def _runs(result: EvaluationResult, timed: Sequence[tuple[int, ConfigurationResult]]) -> Chart | None:
    """Single times, of the first few configurations."""
    times = {entry.name: entry.times_us for _, entry in timed}
    times_ms = {name: [time / 1000 for time in found] for name, found in times.items()}
    references = [entry.name for entry in result.configurations if entry.role == "reference" and times.get(entry.name)]
    return each_run("Each run in its turn", times_ms, _MOST_CONFIGURATIONS, next(iter(references), None))


def _conditions(result: EvaluationResult) -> list[str | Note]:
    """The conditions of the latencies, what rose or fell."""
    lines: list[str | Note] = []
    execution = result.execution
    if execution is not None:
        lines += filter(None, [conditions_in_words(result, execution)])
        if execution.startup_seconds:
            phases = ", ".join(f"{name} {spent:.2g} s" for name, spent in execution.startup_seconds.items())
            lines.append(f"until the first example was finished: {phases}")
    return lines + [Note(entry.name, drift, "open") for entry in result.configurations if (drift := drift_of(entry))]


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
    is_bounded = any(len(times) > MOST_POINTS for times in timed.values())
    points = f"At most {MOST_POINTS} runs of each are drawn, all in the JSON result" if is_bounded else ""
    left = some_of(len(timed), len(every), "configurations")
    return Chart(caption, runs_chart(timed, reference), sentences(text, points, left))


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
    return Chart(caption, moments_chart(shown, unit), text)
