"""What to do next about a row of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from evaltools.report.tables.next_steps import diff_command, where_it_did_not_run
from evaltools.report.tables.shown_figures import shown_figures
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow

_ENOUGH_ROUNDS: Final = 8


def after_benchmark(result: BenchmarkResult, row: BenchmarkRow) -> list[str]:
    """Of the fastest row how sure that is, and whether its outputs are right; of others only why they did not run."""
    model = result.models[row.model].file
    steps = list(where_it_did_not_run(row, model))
    ranked = [each for each in rows_by_latency(result) if not each.fallback]
    if ranked and row is ranked[0]:
        steps += _whether_it_is_sure(ranked)
        if row.delegates and row.accuracy is None:
            steps.append(f"{diff_command(model, row.flags)} says whether its outputs are still those of the CPU")
    return steps


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
