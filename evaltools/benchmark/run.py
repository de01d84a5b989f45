"""Carries out a benchmark: each model with each configuration in turns, each time in a fresh process."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import count
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.accuracy import AccuracyGiven, accuracies_of
from evaltools.benchmark.conclude import Asked
from evaltools.benchmark.fresh_process import CandidateProgress, Watcher, measure_in_fresh_process
from evaltools.benchmark.request import BenchmarkOptions, BenchmarkRequest, Candidate, Inputs
from evaltools.engine.opening import NotMeasured, describe_model, describe_row
from evaltools.parameter import Value
from evaltools.request import Options, Request
from evaltools.result.environment import describe_environment
from evaltools.result.result import Row
from evaltools.result.rounds import Records

_INTERRUPTED: Final = "it was interrupted"


class Benchmarked(Struct, frozen=True):
    """What was measured in the order of the candidates, and the outputs of each for which they were asked for."""

    records: Records
    outputs: list[Inputs | None]


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
                if entry.row.status != "measured":
                    watcher.failed(entry.candidate, entry.row.reason)
        watcher.finished()
    except KeyboardInterrupt:
        interrupted = True
        watcher.finished()
    records = Records([entry.measured for entry in entries], stopped="interrupted" if interrupted else "")
    return Benchmarked(records, [entry.outputs for entry in entries])


def _unmeasured(candidate: Candidate) -> Row:
    return describe_row(NotMeasured(candidate.configuration, _INTERRUPTED), candidate.model_number)


def measure_benchmark(asked: Request, request: BenchmarkRequest, watcher: Watcher) -> tuple[Asked, Benchmarked]:
    """Measure what a request asks for.

    Raises :class:`UsageError` before any measurement where the given accuracies fit none of the rows.
    """
    accuracies, begun = accuracies_of(asked.options, request), Begun()
    found = run_benchmark(request.candidates, request.options, request.inputs, watcher)
    warnings = [*request.warnings, *(note for notes in request.notes for note in notes)]
    return begun.asked(asked, request, accuracies), replace(found, records=replace(found.records, warnings=warnings))


class Begun:
    """The moment at which measuring begins."""

    def __init__(self) -> None:
        self._started_at: Final = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._clock: Final = time.perf_counter()

    def asked(self, asked: Request, request: BenchmarkRequest, accuracies: Sequence[AccuracyGiven | None]) -> Asked:
        """What was asked for, measured between that moment and now."""
        elapsed_s, trace = round(time.perf_counter() - self._clock, 3), asked.options.path("trace")
        return Asked(
            describe_environment(list(asked.command), self._started_at, elapsed_s, trace),
            options_in_force(asked.options, request),
            [describe_model(model) for model in request.models],
            accuracies,
        )


def options_in_force(flags: Options, request: BenchmarkRequest) -> dict[str, Value]:
    """The values of all flags that shape the runs. Models and configurations are not among them: the rows have them."""
    shaping = (*benchmark_flags.PARAMETERS, *benchmark_flags.BEYOND)
    values = {each.name: flags.value(each.name) for each in shaping if each.about == "records"}
    found = {name: value for name, value in values.items() if not isinstance(value, tuple)}
    return found | {"rounds": request.options.rounds}
