"""What a result says against itself: figures that its own counts, records or times deny, names that nobody has.

evaltools writes no such result; one that was edited, or written by something else, is refused before it is shown or
judged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from evaltools.known_tasks import metric_named, metrics_of
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.metrics.metric import ABSENT, Metric
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.verdict import Verdict

_ROUNDING: Final = 1e-9


def contradiction(result: EvaluationResult) -> str:
    """The first thing that cannot be, as a sentence without its end; empty for a result that holds together."""
    return next(_contradictions(result), "") or next(_against_records(result), "")


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
    measured = {"load_ms": entry.load_ms, "peak_memory_mb": entry.peak_memory_mb}
    yield from (f"{name} is {value}" for name, value in measured.items() if value is not None and not value >= 0)
    if entry.inference_latency is not None:
        yield from _of_latency(entry.inference_latency)
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


def _of_latency(latency: Latency) -> Iterator[str]:
    lowest, highest = latency.min_us - 1, latency.max_us + 1  # those were rounded
    if latency.min_us < 0:
        yield f"its shortest time is {latency.min_us} us"
    for name in ("avg_us", "p50_us", "p90_us", "p99_us"):
        value = getattr(latency, name)
        if latency.count and value is not None and not lowest <= value <= highest:
            yield f"{name} is {value}, and its times lie from {latency.min_us} to {latency.max_us}"


def _against_records(result: EvaluationResult) -> Iterator[str]:
    """What figures say against the counts, the scores and the answers that they are made of."""
    measured = [entry for entry in result.configurations if entry.status == "measured"]
    try:
        metrics = metrics_of(result)
        for entry in measured:
            found = [*_of_figures(result, entry, metrics), *_of_records(result, entry, metrics)]
            nan_outputs = result.part.nan_outputs(entry.name)
            if entry.nan_outputs != nan_outputs:
                found.append(f"nan_outputs is {entry.nan_outputs}, and there are {nan_outputs}")
            reference = reference_of(entry, measured)
            if reference is not None and reference.name != entry.name:
                found += _of_changes(result, entry, reference, metrics)
            yield from (f"{entry.name!r}: {text}" for text in found)
    except (LookupError, ArithmeticError, ValueError) as error:
        yield f"figures cannot be found: {error!r}"


def _of_figures(result: EvaluationResult, entry: ConfigurationResult, metrics: Sequence[Metric]) -> Iterator[str]:
    """Figures that are not those of their counts, and counts that cannot be."""
    before = None
    for metric in metrics:
        name, value = metric.name, metric.read(result, entry)
        if value is ABSENT:
            continue
        stated, share = entry.figures.get(name, value), metric.share(result, entry) if metric.share else None
        if not _is_same(stated, value):
            counts = f"{share.successes} of {share.count} are" if share is not None else "the task's part has"
            yield f"{name} is {stated}, and {counts} {value}"
        if share is not None and metric.ranked:
            if share.count != entry.finished_examples:
                yield f"{name} is of {share.count} examples, and {entry.finished_examples} were finished"
            if before is not None and share.successes < before[1]:
                yield f"{name} has {share.successes} right, and {before[0]} has {before[1]}"
            before = name, share.successes
        mean = metric.mean(result, entry) if metric.mean else None
        if mean is not None and mean.count > entry.finished_examples:
            yield f"{name} is of {mean.count} examples, and {entry.finished_examples} were finished"


def _of_records(result: EvaluationResult, entry: ConfigurationResult, metrics: Sequence[Metric]) -> Iterator[str]:
    """What the recorded answers, scores and times of single examples say otherwise."""
    for metric in metrics:
        scores = metric.each(result, entry) if metric.each else ()
        share = metric.share(result, entry) if metric.share else None
        mean = metric.mean(result, entry) if metric.mean else None
        if scores and share is not None and (sum(scores), len(scores)) != (share.successes, share.count):
            counts = f"{sum(scores):.0f} of {len(scores)} recorded answers are right"
            yield f"{metric.name} counts {share.successes} of {share.count}, and {counts}"
        if scores and mean is not None and not _is_same(mean.mean, math.fsum(scores) / len(scores)):
            recorded = math.fsum(scores) / len(scores)
            yield f"{metric.name} is {mean.mean}, and the mean of the recorded scores is {recorded}"
    latency, times_us = entry.inference_latency, result.part.times_us(entry.name, result.execution)
    if any(not time_us >= 0 for time_us in times_us):
        yield f"a time is {min(times_us)} us"
    elif latency is not None and len(times_us) == latency.count > 0:
        p50_us = summarise_latency(times_us).p50_us
        if not _is_same(latency.p50_us, p50_us):
            yield f"p50_us is {latency.p50_us}, and that of the recorded times is {p50_us}"


def _of_changes(
    result: EvaluationResult, entry: ConfigurationResult, reference: ConfigurationResult, metrics: Sequence[Metric]
) -> Iterator[str]:
    """Changes against the reference that are not the difference of the two figures, where both are of all examples."""
    if entry.failed_examples or reference.failed_examples:
        return
    for metric in metrics:
        change = metric.change(result, entry) if metric.change else None
        own, other = entry.figures.get(metric.name), reference.figures.get(metric.name)
        means = [(of, metric.mean(result, of) if metric.mean else None) for of in (entry, reference)]
        is_of_all = all(mean is None or mean.count == of.finished_examples for of, mean in means)
        if change is None or own is None or other is None or not is_of_all:
            continue
        if not _is_same(abs(change.change), abs(own - other)):
            yield f"{metric.name} changed by {change.change}, and it is {own} where the reference has {other}"


def _is_same(stated: float | None, value: float | None) -> bool:
    if stated is None or value is None:
        return stated is value
    return math.isclose(stated, value, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
