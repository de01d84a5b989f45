"""``evaltools benchmark`` behind its flags: measure, print, write."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from evaltools.benchmark.accuracy import accuracy_of, read_accuracies
from evaltools.benchmark.run import run_benchmark
from evaltools.cli import exit_codes
from evaltools.cli.benchmark_files import planned_files
from evaltools.cli.benchmark_lines import NativeLines
from evaltools.cli.benchmark_request import BenchmarkRequest, read_request
from evaltools.cli.evaluation_output import interrupts_restored
from evaltools.cli.flags import GivenFlags
from evaltools.cli.terminal import make_console
from evaltools.metrics.pareto import pareto_front
from evaltools.parameter import Value
from evaltools.report.assemble import describe_model
from evaltools.report.benchmark_result import BENCHMARK_SCHEMA_VERSION, AccuracyGiven, BenchmarkResult, BenchmarkRow
from evaltools.report.environment import describe_environment
from evaltools.report.table_benchmark import print_benchmark

_SHAPING: Final = frozenset(
    {"num_runs", "min_secs", "max_secs", "warmup_runs", "warmup_min_secs", "run_delay", "run_frequency", "dry_run",
     "cpu_affinity", "random_shuffle_benchmark_runs", "report_peak_memory_footprint", "op_profiling_runs"}
)  # fmt: skip


def benchmark(flags: GivenFlags, command: list[str]) -> int:
    """Measure, print, write; returns the exit code."""
    console = make_console()
    request = read_request(flags)
    known = read_accuracies([Path(text) for text in flags.texts("accuracy")])
    accuracies = [
        accuracy_of(known, candidate.model.sha256, candidate.configuration.to_flags(), candidate.configuration.name)
        for candidate in request.candidates
    ]
    files = planned_files(flags, request)
    lines = NativeLines(flags, request, console)
    started, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    with interrupts_restored():
        lines.start()
        measured = run_benchmark(request.candidates, request.options, request.inputs, lines)
        lines.summary(measured.rows)
        result = BenchmarkResult(
            schema_version=BENCHMARK_SCHEMA_VERSION,
            environment=describe_environment(command, started, time.perf_counter() - clock),
            options=_options(flags, request),
            models=[describe_model(model) for model in request.models],
            rows=_with_accuracies(measured.rows, accuracies),
            stopped="interrupted" if measured.interrupted else None,
        )
        errors = files.write(result, measured.outputs, lines)
        print_benchmark(result, console)
    for error in errors:
        console.print(f"evaltools: {error}", style="bold red")
    if result.stopped:
        console.print("interrupted; the figures are those of the rounds finished until then", style="bold red")
    if errors or not lines.is_written:
        return exit_codes.NOT_WRITTEN
    return _exit_code(result, request.may_be_missing)


def _options(flags: GivenFlags, request: BenchmarkRequest) -> dict[str, Value]:
    """The flags that shape the runs, in force."""
    found = {name: flags.value(name) for name in sorted(_SHAPING)}
    return found | {"rounds": request.options.rounds}


def _with_accuracies(rows: Sequence[BenchmarkRow], accuracies: Sequence[AccuracyGiven | None]) -> list[BenchmarkRow]:
    """Each row with its accuracy, where one is known, and whether no other is both as fast and as accurate.

    A row that fell back to the CPU has none, for it did not run what the accuracy is of.
    """
    found = [
        row if row.fallback else replace(row, accuracy=accuracy) for row, accuracy in zip(rows, accuracies, strict=True)
    ]
    for metric in {row.accuracy.metric for row in found if row.accuracy}:
        front = pareto_front([_place(row, metric) for row in found])
        found = [
            replace(row, on_latency_front=is_on) if row.accuracy and row.accuracy.metric == metric else row
            for row, is_on in zip(found, front, strict=True)
        ]
    return found


def _place(row: BenchmarkRow, metric: str) -> tuple[float, float]:
    """Median latency and accuracy; not a number where the row has no part in the front."""
    is_measured = row.status == "measured" and row.figures is not None and row.figures.inference.count > 0
    if row.figures is None or not is_measured or row.accuracy is None or row.accuracy.metric != metric:
        return math.nan, math.nan
    return row.figures.inference.p50_us, row.accuracy.value


def _exit_code(result: BenchmarkResult, may_be_missing: bool) -> int:
    if result.stopped:
        return exit_codes.INTERRUPTED
    failed = [row for row in result.rows if row.status == "failed"]
    counting = [row for row in failed if not (may_be_missing and row.runtime is None)]
    if len(failed) == len(result.rows) or any(row.figures is None for row in counting):
        return exit_codes.NOT_MEASURED
    return exit_codes.EXAMPLES_FAILED if counting else exit_codes.OK
