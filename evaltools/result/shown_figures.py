"""The figures of a row that tables and plots show, whether evaltools measured it or another program."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Final, NamedTuple

from evaltools.metrics.interval import Interval
from evaltools.result.benchmark import BenchmarkFigures, BenchmarkResult, BenchmarkRow, LoggedFigures

_KB_PER_MB: Final = 1024


class Shown(NamedTuple):
    """Times in microseconds, memory in units of 1024 * 1024 bytes; None where it is not known.

    ``interval`` is that of the median. ``is_logged``: from logs, which have no single times.
    """

    rounds: int = 0
    runs: int = 0
    median_us: float | None = None
    interval: Interval | None = None
    average_us: float | None = None
    p95_us: float | None = None
    with_reading_us: float | None = None
    load_us: float | None = None
    first_run_us: float | None = None
    peak_mb: float | None = None
    steady_mb: float | None = None
    is_logged: bool = False

    @property
    def latency_us(self) -> float | None:
        """The median, or the average where a log has no median."""
        return self.average_us if self.median_us is None else self.median_us


def shown_figures(row: BenchmarkRow) -> Shown:
    """The figures of a row, of several rounds in the middle or, for memory, the largest."""
    if row.figures is not None:
        return _own(row, row.figures)
    return _logged(row.logged) if row.logged is not None else Shown()


def _own(row: BenchmarkRow, figures: BenchmarkFigures) -> Shown:
    peak_kb = _largest(entry.memory.peak_kb for entry in row.rounds)
    steady_kb = _largest(entry.memory.steady_kb for entry in row.rounds)
    shown = Shown(
        rounds=len(row.rounds),
        runs=figures.inference.count,
        load_us=figures.init.p50_us,
        peak_mb=None if peak_kb is None else peak_kb / _KB_PER_MB,
        steady_mb=None if steady_kb is None else steady_kb / _KB_PER_MB,
    )
    if not figures.inference.count:
        return shown
    return shown._replace(
        median_us=figures.inference.p50_us,
        interval=figures.median_interval,
        average_us=figures.inference.avg_us,
        p95_us=figures.percentiles.get("95"),
        with_reading_us=figures.run_and_read.p50_us,
        first_run_us=figures.first_run.p50_us,
    )


def _logged(logged: LoggedFigures) -> Shown:
    rounds = logged.rounds
    shown = Shown(
        rounds=len(rounds),
        runs=logged.count,
        load_us=_middle(entry.init_us for entry in rounds),
        peak_mb=_largest(entry.memory.peak_mb if entry.memory else None for entry in rounds),
        is_logged=True,
    )
    if not logged.count:
        return shown
    return shown._replace(
        median_us=logged.median_us,
        interval=logged.median_interval,
        average_us=logged.avg_us,
        p95_us=rounds[0].regular.p95_us if len(rounds) == 1 else None,
        first_run_us=_middle(entry.first_inference_us for entry in rounds),
    )


def _middle(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(statistics.median(known)) if known else None


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def rows_by_latency(result: BenchmarkResult) -> list[BenchmarkRow]:
    """The rows that have a time, the fastest first."""
    timed = [(shown_figures(row).latency_us, row) for row in result.rows if row.status == "measured"]
    known = [(latency_us, row) for latency_us, row in timed if latency_us is not None]
    return [row for _, row in sorted(known, key=lambda entry: entry[0])]
