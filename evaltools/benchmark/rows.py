"""From the rounds of a configuration to its row: figures in milliseconds and MB, and single times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from evaltools.benchmark.accuracy import AccuracyGiven
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import (
    FEWEST_PROCESSES,
    FEWEST_TIMES,
    median_interval,
    rounds_ratio,
    summarise_latency,
)
from evaltools.metrics.native_numbers import native_percentile
from evaltools.metrics.op_profile import OpProfile
from evaltools.metrics.pareto import pareto_front
from evaltools.report.words.facts import latency_of
from evaltools.result.figure import Figure
from evaltools.result.metrics import RUNS_FOR_P90, RUNS_FOR_P99, partitions_of, share_delegated
from evaltools.result.result import ACCURACY, FRONT, INVOKE_US, STATE, Row
from evaltools.result.rounds import LoggedRound, Measured, Phase, Round

_KB_PER_MB: Final = 1024
_PERCENTILES: Final = {90: RUNS_FOR_P90, 95: 1, 99: RUNS_FOR_P99}
"""Each with the fewest runs of which it is a figure."""


def rows_of(
    measured: Sequence[Measured], accuracies: Sequence[AccuracyGiven | None] = (), place: str = ""
) -> list[Row]:
    """The rows of one place, each with its time as a multiple of the first measured one's of its model.

    The first one of a later model has it as a multiple of the first model's in the same configuration. ``accuracies``
    are those that were given, none for all. ``place`` is part of the names where there are several.
    """
    first: dict[int, Measured] = {}
    of_first_model: dict[str, Measured] = {}
    rows = []
    for each, accuracy in zip(measured, accuracies or [None] * len(measured), strict=True):
        figures = _figures_of(each)
        if each.row.status == "measured":
            base = first.setdefault(each.row.model, each)
            if each.row.model == measured[0].row.model:
                of_first_model[each.row.name] = each
            if base is each:
                base = of_first_model.get(each.row.name, each)
            figures |= _ratio(base, each) if base is not each else {}
        row = _row(each, figures, place)
        rows.append(row if accuracy is None or row.fallback else _with_accuracy(row, accuracy))
    return _with_front(rows, {given.figure for given in accuracies if given is not None})


def _row(measured: Measured, figures: dict[str, Figure], place: str) -> Row:
    row, rounds = measured.row, measured.rounds
    runs = [len(each.regular.invokes_us) for each in rounds] or [each.regular.count for each in measured.logged]
    has_times = bool(rounds)
    return replace(
        row,
        name=f"{row.name}@{place}" if place else row.name,
        command="benchmark",
        place=place,
        counts={"rounds": len(runs), "runs": sum(runs)} if figures else {},
        texts=row.texts | ({STATE: "failed"} if figures and row.status != "measured" else {}),
        figures=figures,
        series={INVOKE_US: _all(rounds), "runs_of_round": [float(count) for count in runs]} if has_times else {},
        rows=[] if measured.profile is None else _operators(measured.profile),
    )


def _all(rounds: Sequence[Round]) -> list[float]:
    return list(chain.from_iterable(each.regular.invokes_us for each in rounds))


def _operators(profile: OpProfile) -> list[Row]:
    """A row for each operator, in the order in which they were first seen."""
    return [
        Row(
            op.type,
            "operator",
            counts={"calls": op.calls_per_run} | ({} if op.node is None else {"node": op.node}),
            texts={"name": op.name},
            figures={"time_ms": _ms(sum(op.times_us) / max(1, profile.runs))},
            series={"times_us": [float(time) for time in op.times_us]},
        )
        for op in profile.ops
    ]


def _figures_of(measured: Measured) -> dict[str, Figure]:
    """Those of times and memory, then those of delegation; without a round only that its process crashed."""
    if measured.rounds:
        found = _of_rounds(measured.rounds)
    elif measured.logged and measured.row.status == "measured":
        found = _of_logs(measured.logged)
    else:
        return measured.row.figures
    proof = measured.row.delegation
    of_nodes = {
        "delegated_share": (share_delegated(proof), "higher"),
        "partitions": (partitions_of(measured.row.delegates, proof), "lower"),
    }
    for name, (value, better) in of_nodes.items():
        if isinstance(value, float | int):
            found[name] = Figure(value, better="higher" if better == "higher" else "lower", is_share=better == "higher")
    return found


def _of_rounds(rounds: Sequence[Round]) -> dict[str, Figure]:
    """Over the runs of all rounds together; of memory the largest."""
    runs = _all(rounds)
    found = {}
    if runs:
        reads = chain.from_iterable(each.regular.reads_us for each in rounds)
        both = [run + read for run, read in zip(runs, reads, strict=True)]
        first = [time for each in rounds if (time := _first_run_us(each.warm_up, each.regular)) is not None]
        summary, interval = summarise_latency(runs), median_interval([each.regular.invokes_us for each in rounds])
        why = "" if interval is not None else _why_without_interval(len(rounds), len(runs))
        found = {
            "latency_ms": _ms(summary.p50_us or 0.0, interval, why, len(runs)),
            "latency_average_ms": _ms(summary.avg_us),
            **{
                f"latency_p{percent}_ms": _ms(native_percentile(runs, percent))
                for percent, fewest in _PERCENTILES.items()
                if len(runs) >= fewest
            },
            "first_run_ms": _ms(_middle(first)),
            "latency_with_reading_ms": _ms(_middle(both)),
        }
    found["load_ms"] = _ms(_middle([each.opening.total_us for each in rounds]))
    memory = {
        "peak_memory_mb": _largest(each.memory.peak_kb for each in rounds),
        "steady_memory_mb": _largest(each.memory.steady_kb for each in rounds),
    }
    return found | {name: Figure(kb / _KB_PER_MB, "MB", "lower") for name, kb in memory.items() if kb is not None}


def _of_logs(rounds: Sequence[LoggedRound]) -> dict[str, Figure]:
    """From logs of another program, which have no single times: the median of medians, the average of all runs."""
    regular, medians = [each.regular for each in rounds], medians_of(rounds)
    count = sum(each.count for each in regular)
    found: dict[str, Figure] = {}
    if count:
        if medians:
            interval = median_interval([[median] for median in medians]) if len(medians) > 1 else None
            why = "" if interval is not None or len(rounds) == 1 else _why_without_interval(len(rounds), count)
            found["latency_ms"] = _ms(float(statistics.median(medians)), interval, why, count)
        found["latency_average_ms"] = _ms(sum(each.avg_us * each.count for each in regular) / count)
        if len(rounds) == 1 and regular[0].p95_us is not None:
            found["latency_p95_ms"] = _ms(regular[0].p95_us)
    starts = {
        "first_run_ms": [each.first_inference_us for each in rounds if count],
        "load_ms": [each.init_us for each in rounds],
    }
    for name, values in starts.items():
        known = [value for value in values if value is not None]
        found |= {name: _ms(statistics.median(known))} if known else {}
    peak_mb = _largest(each.memory.peak_mb if each.memory else None for each in rounds)
    return found | ({} if peak_mb is None else {"peak_memory_mb": Figure(peak_mb, "MB", "lower")})


def medians_of(rounds: Sequence[LoggedRound]) -> list[int]:
    """Those of all rounds, none where one is not known or is of no run."""
    found = [each.regular.median_us for each in rounds if each.regular.count]
    known = [median for median in found if median is not None]
    return known if len(known) == len(rounds) else []


def _ratio(first: Measured, own: Measured) -> dict[str, Figure]:
    """The rounds of both are paired in their order; of logs only their medians are known."""
    found = rounds_ratio(_times_of(first), _times_of(own))
    if found is None:
        return {}
    interval, withheld = found.interval, found.withheld or ""
    figure = Figure(found.ratio, better="lower", interval=interval, withheld=withheld, count=found.pairs)
    return {"latency_ratio": figure}


def _times_of(measured: Measured) -> Sequence[Sequence[float]]:
    if measured.logged:
        return [[median] for median in medians_of(measured.logged)]
    return [each.regular.invokes_us for each in measured.rounds]


def _with_accuracy(row: Row, given: AccuracyGiven) -> Row:
    figure = Figure(given.value, better="higher", is_share=True, heading=given.label)
    return replace(
        row,
        figures={**row.figures, given.figure: figure},
        texts={**row.texts, ACCURACY: given.figure, "accuracy_from": given.source},
    )


def _with_front(rows: Sequence[Row], accuracies: Iterable[str]) -> list[Row]:
    """The rows with a mark where no other one is both as fast and as accurate."""
    found = list(rows)
    for name in accuracies:
        front = pareto_front([_place(row, name) for row in found])
        found = [
            replace(row, counts={**row.counts, FRONT: int(is_on)}) if row.value(name) is not None else row
            for row, is_on in zip(found, front, strict=True)
        ]
    return found


def _place(row: Row, accuracy: str) -> tuple[float, float]:
    """Latency and accuracy of a row; NaN for both where the row takes no part in the comparison."""
    latency, value = latency_of(row), row.value(accuracy)
    return (math.nan, math.nan) if latency is None or value is None else (latency, value)


def _why_without_interval(rounds: int, runs: int) -> str:
    if 1 < rounds < FEWEST_PROCESSES:
        return "too few rounds"
    return "too few runs" if runs < FEWEST_TIMES else "times jumped"


def _first_run_us(warm_up: Phase, regular: Phase) -> float | None:
    """The time of the first invocation in the process, in microseconds; None in a dry run."""
    return next(iter([*warm_up.invokes_us[:1], *regular.invokes_us[:1]]), None)


def _middle(values_us: Sequence[float]) -> float:
    return summarise_latency(values_us).p50_us or 0.0


def _ms(us: float, interval: Interval | None = None, withheld: str = "", count: int | None = None) -> Figure:
    """A time, which is lower where it is better."""
    low, high = (None, None) if interval is None else (min(interval.low, us), max(interval.high, us))
    span = None if low is None or high is None else Interval(low / 1000, high / 1000)
    return Figure(us / 1000, "ms", "lower", span, withheld, count)


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
