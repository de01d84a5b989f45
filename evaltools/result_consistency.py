"""What a result says against itself: figures that its own counts, records or times deny, names that nobody has.

evaltools writes no such result; one that was edited, or written by something else, is refused before it is shown or
judged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.reading import of_figures
from evaltools.result.verdict import Verdict


def contradiction(result: EvaluationResult) -> str:
    """The first thing that cannot be, as a sentence without its end; empty for a result that holds together."""
    return next(_contradictions(result), "")


def missing_records(result: EvaluationResult) -> str:
    """Which configuration has neither an answer nor a failure for some of the examples that were done, in words.

    Empty where none is missing. A reference whose outputs were loaded has no records at all.
    """
    for entry in result.configurations:
        known = entry.finished_examples + entry.failed_examples
        if entry.status == "measured" and known not in (0, result.examples_done):
            return f"{entry.name!r} has records of {known} of {result.examples_done} examples"
    return ""


def _contradictions(result: EvaluationResult) -> Iterator[str]:
    names = Counter(entry.name for entry in result.configurations)
    yield from (f"{name!r} is the name of {count} configurations" for name, count in names.items() if count > 1)
    if result.examples_done < 0:
        yield f"examples_done is {result.examples_done}"
    for entry in result.configurations:
        yield from (f"{entry.name!r}: {text}" for text in _of_configuration(entry, names))
        figures = {each.name: each.figures for each in result.configurations}
        yield from (f"{entry.name!r}: {text}" for text in of_figures(entry.figures, figures))
        for part in entry.parts:
            same = {
                each.name: own.figures for each in result.configurations for own in each.parts if own.name == part.name
            }
            yield from (f"{entry.name!r}: {part.name!r}: {text}" for text in of_figures(part.figures, same))
    for found in result.latency_comparisons:
        for name in (found.baseline, found.other):
            if name not in names:
                yield f"a latency is compared with {name!r}, which is not a configuration"
        if not (math.isfinite(found.ratio) and found.ratio > 0):
            yield f"the latency ratio of {found.other!r} to {found.baseline!r} is {found.ratio}"
        if found.interval is not None:
            yield from _of_interval(found.interval, f"the latency ratio of {found.other!r}")
    if result.complete and (missing := missing_records(result)):
        yield missing


def _of_configuration(entry: ConfigurationResult, names: Counter[str]) -> Iterator[str]:
    counts = {
        "failed_examples": entry.failed_examples,
        "finished_examples": entry.finished_examples,
        "crashes": entry.crashes,
        "nan_outputs": entry.nan_outputs,
    }
    yield from (f"{name} is {count}" for name, count in counts.items() if count < 0)
    measured = {"load_ms": entry.load_ms, "peak_memory_mb": entry.peak_memory_mb}
    yield from (f"{name} is {value}" for name, value in measured.items() if value is not None and not value >= 0)
    if entry.inference_latency is not None:
        yield from _of_latency(entry.inference_latency)
    times_us = entry.times_us
    if any(not time_us >= 0 for time_us in times_us):
        yield f"a time is {min(times_us)} us"
    elif times_us and entry.inference_latency is not None and entry.inference_latency.count == len(times_us):
        stated, p50_us = entry.inference_latency.p50_us, summarise_latency(times_us).p50_us
        if stated is None or p50_us is None or not math.isclose(stated, p50_us, rel_tol=1e-9):
            yield f"p50_us is {stated}, and that of the recorded times is {p50_us}"
    delegation = entry.delegation
    if delegation is not None and not 0 <= delegation.delegated_nodes <= delegation.total_nodes:
        yield f"{delegation.delegated_nodes} of {delegation.total_nodes} nodes are delegated"
    for name, figure in entry.figures.items():
        if entry.status != "measured" or figure.value is None:
            continue
        if not entry.finished_examples:
            yield f"{name} is {figure.value}, of no examples"
        elif figure.count is not None and figure.count > entry.finished_examples:
            yield f"{name} is of {figure.count} examples, and {entry.finished_examples} were finished"
    for verdict in entry.verdicts:
        yield from _of_verdict(verdict, names)


def _of_verdict(verdict: Verdict, names: Counter[str]) -> Iterator[str]:
    if verdict.against not in names and (verdict.against or verdict.kind != "not measured"):
        yield f"it was judged against {verdict.against!r}, which is not a configuration"
    numbers = (verdict.change, verdict.low, verdict.high, verdict.margin, verdict.p_value)
    if not all(number is None or math.isfinite(number) for number in numbers):
        yield f"a number of its verdict on {verdict.metric} is not finite"
    if verdict.low is not None and verdict.high is not None and verdict.low > verdict.high:
        yield f"its change of {verdict.metric} lies from {verdict.low} to {verdict.high}"


def _of_interval(interval: Interval, what: str) -> Iterator[str]:
    if not (math.isfinite(interval.low) and math.isfinite(interval.high) and interval.low <= interval.high):
        yield f"{what} lies from {interval.low} to {interval.high}"


def _of_latency(latency: Latency) -> Iterator[str]:
    lowest, highest = latency.min_us - 1, latency.max_us + 1  # those were rounded
    if latency.min_us < 0:
        yield f"its shortest time is {latency.min_us} us"
    for name in ("avg_us", "p50_us", "p90_us", "p99_us"):
        value = getattr(latency, name)
        if latency.count and value is not None and not lowest <= value <= highest:
            yield f"{name} is {value}, and its times lie from {latency.min_us} to {latency.max_us}"
