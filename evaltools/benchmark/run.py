"""Carries out a benchmark: each model with each configuration in turns, each time in a fresh process; its figures."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import chain, count
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.accuracy import accuracies_of, with_accuracies
from evaltools.benchmark.fresh_process import CandidateProgress, Watcher, describe_row, measure_in_fresh_process
from evaltools.benchmark.request import BenchmarkOptions, BenchmarkRequest, Candidate, Inputs
from evaltools.engine.opening import NotMeasured, describe_model
from evaltools.metrics.latency import drift, median_interval, rounds_ratio, summarise_latency
from evaltools.metrics.native_numbers import native_percentile
from evaltools.native.logs.benchmark import medians_of
from evaltools.parameter import Value
from evaltools.report.words.facts import load_in_words
from evaltools.request import Options, Request
from evaltools.result.benchmark import (
    BENCHMARK_SCHEMA_VERSION,
    BenchmarkFigures,
    BenchmarkResult,
    BenchmarkRow,
    Phase,
    Round,
)
from evaltools.result.environment import describe_environment
from evaltools.result.evaluation import load_of_parts

PERCENTILES: Final = (1, 5, 10, 25, 50, 75, 90, 95, 99)
_INTERRUPTED: Final = "it was interrupted"


class Benchmarked(Struct, frozen=True):
    """The rows in the order of the candidates, and the outputs of each candidate for which they were asked for."""

    rows: list[BenchmarkRow]
    outputs: list[Inputs | None]
    interrupted: bool


def run_benchmark(
    candidates: Sequence[Candidate], options: BenchmarkOptions, inputs: Sequence[Inputs], watcher: Watcher
) -> Benchmarked:
    """Measure all candidates; ``inputs`` are those of each model, by its number.

    A candidate that fails does not end the others. Ctrl-C ends the benchmark, and what was measured until then is
    returned.
    """
    entries = [CandidateProgress(candidate, _unmeasured(candidate)) for candidate in candidates]
    interrupted = False
    turns = count()
    try:
        for number in range(options.rounds):
            going = [entry for entry in entries if number == 0 or entry.row.status == "measured"]
            if options.shuffle:
                random.shuffle(going)
            for entry in going:
                time.sleep(max(0.0, options.delay_s))
                watcher.begins(entry.candidate, number)
                values = inputs[entry.candidate.model_number]
                is_last = number == options.rounds - 1
                measure_in_fresh_process(entry, values, options, next(turns), is_last, watcher)
                if entry.row.status == "failed":
                    watcher.failed(entry.candidate, str(entry.row.reason))
        watcher.finished()
    except KeyboardInterrupt:
        interrupted = True
        watcher.finished()
    rows = with_ratios([_finished(entry) for entry in entries])
    return Benchmarked(rows, [entry.outputs for entry in entries], interrupted)


def _unmeasured(candidate: Candidate) -> BenchmarkRow:
    return describe_row(candidate, NotMeasured(candidate.configuration, _INTERRUPTED))


def _finished(entry: CandidateProgress) -> BenchmarkRow:
    return replace(entry.row, rounds=entry.rounds, figures=figures_of(entry.rounds) if entry.rounds else None)


def with_ratios(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """Each measured row with its time as a multiple of the first row's of the same model.

    The rounds of both are paired in their order; of logs of another program only their medians are known.
    """
    first: dict[int, BenchmarkRow] = {}
    found = []
    for row in rows:
        if row.status == "measured" and first.setdefault(row.model, row) is not row:
            row = replace(row, versus_first=rounds_ratio(_times_of(first[row.model]), _times_of(row)))
        found.append(row)
    return found


def _times_of(row: BenchmarkRow) -> Sequence[Sequence[float]]:
    if row.logged is not None:
        return [[median] for median in medians_of(row.logged.rounds)]
    return [entry.regular.invokes_us for entry in row.rounds]


def figures_of(rounds: Sequence[Round]) -> BenchmarkFigures:
    """Figures over the runs of all rounds together; there must be at least one round."""
    series = [entry.regular.invokes_us for entry in rounds]
    runs = list(chain.from_iterable(series))
    reads = list(chain.from_iterable(entry.regular.reads_us for entry in rounds))
    warm_ups = [entry.warm_up.invokes_us for entry in rounds]
    first = [_first_run_us(entry.warm_up, entry.regular) for entry in rounds]
    return BenchmarkFigures(
        init=summarise_latency([entry.opening.total_us for entry in rounds]),
        first_run=summarise_latency([time for time in first if time is not None]),
        warm_up=summarise_latency(list(chain.from_iterable(warm_ups))),
        inference=summarise_latency(runs),
        run_and_read=summarise_latency([run + read for run, read in zip(runs, reads, strict=True)]),
        percentiles={str(percent): native_percentile(runs, percent) for percent in PERCENTILES} if runs else {},
        median_interval=median_interval(series),
        drift=drift(runs) if len(rounds) == 1 else None,
    )


def _first_run_us(warm_up: Phase, regular: Phase) -> float | None:
    """The time of the first invocation in the process, in microseconds; None in a dry run."""
    return next(iter([*warm_up.invokes_us[:1], *regular.invokes_us[:1]]), None)


def measure_benchmark(
    asked: Request, request: BenchmarkRequest, watcher: Watcher
) -> tuple[BenchmarkResult, list[Inputs | None]]:
    """Measure what the request asks for; the result, and the outputs of each row for which they were asked for.

    Raises :class:`UsageError` before any measurement where the given accuracies fit none of the rows.
    """
    accuracies = accuracies_of(asked.options, request)
    started, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    measured = run_benchmark(request.candidates, request.options, request.inputs, watcher)
    load = load_of_parts([found.load for row in measured.rows for found in row.rounds if found.load is not None])
    result = BenchmarkResult(
        schema_version=BENCHMARK_SCHEMA_VERSION,
        environment=describe_environment(
            list(asked.command), started, time.perf_counter() - clock, asked.options.path("trace"), load
        ),
        options=options_in_force(asked.options, request),
        models=[describe_model(model) for model in request.models],
        rows=with_accuracies(measured.rows, accuracies),
        warnings=[
            *request.warnings,
            *(note for notes in request.notes for note in notes),
            *filter(None, [load_in_words(load)]),
        ],
        stopped="interrupted" if measured.interrupted else None,
    )
    return result, measured.outputs


def options_in_force(flags: Options, request: BenchmarkRequest) -> dict[str, Value]:
    """The values of all flags that shape the runs. Models and configurations are not among them: the rows have them."""
    shaping = (*benchmark_flags.PARAMETERS, *benchmark_flags.BEYOND)
    values = {each.name: flags.value(each.name) for each in shaping if each.about == "records"}
    found = {name: value for name, value in values.items() if not isinstance(value, tuple)}
    return found | {"rounds": request.options.rounds}
