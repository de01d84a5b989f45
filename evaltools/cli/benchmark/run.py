"""``evaltools benchmark`` behind its flags: measure, print, write."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from evaltools import exit_codes
from evaltools.benchmark.accuracy import KnownAccuracy, accuracy_of, read_accuracies
from evaltools.benchmark.fresh_process import Inputs, Watcher
from evaltools.benchmark.run import run_benchmark
from evaltools.cli.benchmark import flags as benchmark_flags
from evaltools.cli.benchmark.files import planned_files
from evaltools.cli.benchmark.lines import NativeLines
from evaltools.cli.benchmark.request import BenchmarkRequest, read_request
from evaltools.cli.evaluate.output import interrupts_restored
from evaltools.cli.shared.terminal import make_console
from evaltools.engine.describe import describe_model
from evaltools.errors import UsageError
from evaltools.metrics.pareto import pareto_front
from evaltools.parameter import Value
from evaltools.report.tables.benchmark import print_benchmark
from evaltools.report.tables.shown import shown_figures
from evaltools.request import Options, Request
from evaltools.result.benchmark import BENCHMARK_SCHEMA_VERSION, AccuracyGiven, BenchmarkResult, BenchmarkRow
from evaltools.result.environment import describe_environment


class MeasuredBenchmark(NamedTuple):
    """The result, and the outputs of each row that were asked for."""

    result: BenchmarkResult
    outputs: list[Inputs | None]


def measure_benchmark(asked: Request, request: BenchmarkRequest, watcher: Watcher) -> MeasuredBenchmark:
    """Measure what was asked for; raises :class:`UsageError` before for accuracies that fit nothing."""
    accuracies = accuracies_of(asked.options, request)
    started, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    measured = run_benchmark(request.candidates, request.options, request.inputs, watcher)
    result = BenchmarkResult(
        schema_version=BENCHMARK_SCHEMA_VERSION,
        environment=describe_environment(list(asked.command), started, time.perf_counter() - clock),
        options=options_in_force(asked.options, request),
        models=[describe_model(model) for model in request.models],
        rows=with_accuracies(measured.rows, accuracies),
        warnings=[*request.warnings, *(note for notes in request.notes for note in notes)],
        stopped="interrupted" if measured.interrupted else None,
    )
    return MeasuredBenchmark(result, measured.outputs)


def benchmark(asked: Request) -> int:
    """Measure, print, write; returns the exit code."""
    console = make_console()
    flags = asked.options
    request = read_request(asked)
    accuracies_of(flags, request)
    files = planned_files(asked, request)
    lines = NativeLines(flags, request, console)
    with interrupts_restored():
        lines.start()
        result, outputs = measure_benchmark(asked, request, lines)
        lines.summary(result.rows)
        errors = files.write(result, outputs, lines)
        print_benchmark(result, console)
    for error in errors:
        console.print(f"evaltools: {error}", style="bold red")
    if result.stopped:
        console.print("interrupted; the figures are those of the rounds finished until then", style="bold red")
    if not lines.is_written:
        console.print("evaltools: stdout cannot be written", style="bold red")
    if errors or not lines.is_written:
        return exit_codes.NOT_WRITTEN
    return exit_code_of(result, request)


def options_in_force(flags: Options, request: BenchmarkRequest) -> dict[str, Value]:
    """The flags that shape the runs, in force; models and configurations stand with the rows."""
    shaping = (*benchmark_flags.PARAMETERS, *benchmark_flags.BEYOND)
    values = {each.name: flags.value(each.name) for each in shaping if each.about == "records"}
    found = {name: value for name, value in values.items() if not isinstance(value, tuple)}
    return found | {"rounds": request.options.rounds}


def accuracies_of(flags: Options, request: BenchmarkRequest) -> list[AccuracyGiven | None]:
    """That of each row; raises :class:`UsageError` where results were given and none fits."""
    files = [Path(text) for text in flags.texts("accuracy")]
    known = read_accuracies(files)
    found = [
        accuracy_of(known, candidate.model.sha256, candidate.configuration.to_flags())
        for candidate in request.candidates
    ]
    if files and not any(found):
        there_are = "; ".join(sorted({" ".join(sorted(entry.flags)) or "the defaults" for entry in known}))
        what = "has another model file" if not _same_models(known, request) else f"has other flags: {there_are}"
        raise UsageError(f"--accuracy={files[0]} {what}; measure the same model file with the same flags")
    return found


def _same_models(known: Sequence[KnownAccuracy], request: BenchmarkRequest) -> bool:
    return not {entry.model_sha256 for entry in known}.isdisjoint(model.sha256 for model in request.models)


def with_accuracies(rows: Sequence[BenchmarkRow], accuracies: Sequence[AccuracyGiven | None]) -> list[BenchmarkRow]:
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
    shown = shown_figures(row)
    is_measured = row.status == "measured" and shown.runs > 0 and shown.latency_us is not None
    if not is_measured or row.accuracy is None or row.accuracy.metric != metric:
        return math.nan, math.nan
    return float(shown.latency_us or 0.0), row.accuracy.value


def exit_code_of(result: BenchmarkResult, request: BenchmarkRequest) -> int:
    """That of a benchmark whose files were written."""
    if result.stopped:
        return exit_codes.INTERRUPTED
    failed = [row for row in result.rows if row.status == "failed"]
    counting = [row for row in failed if row.runtime is not None or row.name not in request.may_be_missing]
    if len(failed) == len(result.rows) or any(row.figures is None for row in counting):
        return exit_codes.NOT_MEASURED
    if request.options.profile_runs and not any(row.profile for row in result.rows):
        return exit_codes.NOT_MEASURED
    return exit_codes.EXAMPLES_FAILED if counting else exit_codes.OK
