"""What a result says against itself: names that nobody has, shares beyond 1, ratios of 0, figures of no examples.

evaltools writes no such result; one that was edited, or written by something else, is refused before it is shown or
judged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from evaltools.metrics.interval import Interval
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.verdict import Verdict
from evaltools.task_kind import metric_named


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
    delegation = entry.delegation
    if delegation is not None and not 0 <= delegation.delegated_nodes <= delegation.total_nodes:
        yield f"{delegation.delegated_nodes} of {delegation.total_nodes} nodes are delegated"
    for figure, value in entry.figures.items():
        metric = metric_named(figure)
        if value is None:
            continue
        if not math.isfinite(value):
            yield f"{figure} is {value}"
        elif metric is not None and metric.is_share and not metric.may_be_negative and not 0 <= value <= 1:
            yield f"{figure} is {value}, and a share is 0 to 1"
        elif not entry.finished_examples and entry.status == "measured":
            yield f"{figure} is {value}, of no examples"
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
