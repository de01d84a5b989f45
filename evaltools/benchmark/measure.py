"""Carries out a benchmark request, from the options to the typed result."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import NamedTuple

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.accuracy import accuracies_of, with_accuracies
from evaltools.benchmark.fresh_process import Inputs, Watcher
from evaltools.benchmark.request import BenchmarkRequest
from evaltools.benchmark.run import run_benchmark
from evaltools.engine.describe import describe_model
from evaltools.parameter import Value
from evaltools.request import Options, Request
from evaltools.result.benchmark import BENCHMARK_SCHEMA_VERSION, BenchmarkResult
from evaltools.result.environment import describe_environment


class MeasuredBenchmark(NamedTuple):
    """The result, and the outputs of each row for which they were asked for."""

    result: BenchmarkResult
    outputs: list[Inputs | None]


def measure_benchmark(asked: Request, request: BenchmarkRequest, watcher: Watcher) -> MeasuredBenchmark:
    """Measure what the request asks for.

    Raises :class:`UsageError` before any measurement where the given accuracies fit none of the rows.
    """
    accuracies = accuracies_of(asked.options, request)
    started, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    measured = run_benchmark(request.candidates, request.options, request.inputs, watcher)
    result = BenchmarkResult(
        schema_version=BENCHMARK_SCHEMA_VERSION,
        environment=describe_environment(
            list(asked.command), started, time.perf_counter() - clock, asked.options.path("trace")
        ),
        options=options_in_force(asked.options, request),
        models=[describe_model(model) for model in request.models],
        rows=with_accuracies(measured.rows, accuracies),
        warnings=[*request.warnings, *(note for notes in request.notes for note in notes)],
        stopped="interrupted" if measured.interrupted else None,
    )
    return MeasuredBenchmark(result, measured.outputs)


def options_in_force(flags: Options, request: BenchmarkRequest) -> dict[str, Value]:
    """The values of all flags that shape the runs. Models and configurations are not among them: the rows have them."""
    shaping = (*benchmark_flags.PARAMETERS, *benchmark_flags.BEYOND)
    values = {each.name: flags.value(each.name) for each in shaping if each.about == "records"}
    found = {name: value for name, value in values.items() if not isinstance(value, tuple)}
    return found | {"rounds": request.options.rounds}
