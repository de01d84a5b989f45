"""Benchmarks from Python."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaltools.api.configurations import AnyPath, Tests, read_tests
from evaltools.api.options import flags_of, with_options
from evaltools.api.progress import shown_progress
from evaltools.api.results_in_common import Entries, Entry
from evaltools.benchmark.command import COMMAND, request_of_flags
from evaltools.benchmark.fresh_process import Watcher
from evaltools.benchmark.request import Candidate, read_request
from evaltools.benchmark.run import measure_benchmark
from evaltools.candidates import with_tests_here
from evaltools.errors import UsageError
from evaltools.gates.other_results import evidence_of_row
from evaltools.report.content import Sources
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.shown_figures import shown_figures

OnRound = Callable[[str, int], object]


class Timed(Entry[BenchmarkResult, BenchmarkRow]):
    """One configuration; its figures are those of limits and some more, each None where it was not measured.

    ``latency_ms`` is the median; ``latency_ratio`` is by that of the first configuration of the model.
    """

    latency_ms: Any
    latency_average_ms: Any
    latency_p90_ms: Any
    latency_p99_ms: Any
    latency_ratio: Any
    load_ms: Any
    first_run_ms: Any
    peak_memory_mb: Any
    delegated_share: Any
    partitions: Any

    @property
    def facts(self) -> Mapping[str, str | None]:
        """What stands before the figures in a table."""
        return {
            "model": Path(self._result.models[self.entry.model].file).stem,
            "status": self.entry.status,
            "runtime": self.entry.runtime.package if self.entry.runtime else None,
        }

    def _figures(self) -> Mapping[str, float | None]:
        evidence, shown = evidence_of_row(self.entry, self._result), shown_figures(self.entry)
        times = {"latency_average_ms": shown.average_us, "first_run_ms": shown.first_run_us}
        found = {name: None if value is None else value / 1000 for name, value in times.items()}
        ratio = {} if evidence.ratio is None else {"latency_ratio": evidence.ratio.ratio}
        known = {**evidence.figures, **found, **ratio}
        return {name: known[name] for name in Timed.__annotations__ if name in known}


class Benchmark(Entries[BenchmarkResult, Timed]):
    """What was timed: ``benchmark["gpu"].latency_ms``; ``benchmark.result`` is the whole of it, typed."""

    def _sources(self) -> Sources:
        return Sources(benchmarks={"benchmark": self.result})

    def _entries(self) -> Sequence[Timed]:
        return [Timed(self.result, row) for row in self.result.rows]


class _Watcher(Watcher):
    """Tells a function of each round that begins."""

    def __init__(self, on_round: OnRound) -> None:
        self._on_round = on_round

    def begins(self, candidate: Candidate, round_number: int) -> None:
        """Tell it."""
        self._on_round(candidate.configuration.name, round_number)


@contextmanager
def _shown(progress: bool | OnRound | None, rounds: int) -> Iterator[OnRound]:
    """What is called when a round begins: nothing, a bar (True), or the function."""
    if callable(progress):
        yield progress
        return
    with shown_progress(progress, "rounds") as on_step:
        done = itertools.count()
        yield lambda _name, _round: on_step(next(done), rounds)


@with_options(COMMAND.parameters)
def benchmark(
    model: AnyPath | Sequence[AnyPath],
    *,
    tests: Tests = None,
    progress: bool | OnRound | None = None,
    **options: Any,
) -> Benchmark:
    """How fast a model is with each configuration: load, first run, steady state, memory.

    Without ``tests`` these are the delegates that work on this machine.
    ``options`` are those of ``evaltools benchmark`` by their names, such as ``num_runs=50`` or ``rounds=3``.
    ``progress`` is True for a bar, or is called with the name of the configuration and the number of the round that
    begins. Prints nothing else; Ctrl-C ends it with the rounds measured until then.
    """
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise UsageError(
            f"progress: expected True or a function of a configuration's name and a round, got {progress!r}"
        )
    configurations = () if tests is None else read_tests(tests)
    texts = [f"{entry.name}: {shlex.join(entry.to_flags())}" for entry in configurations]
    flags = flags_of({"graph": model, "config": texts}, COMMAND.parameters, options, ("model", "tests", "progress"))
    request = request_of_flags(flags, [])
    if flags.leave_tests_open:
        request, _ = with_tests_here(request)
    read = read_request(request)
    with _shown(progress, len(read.candidates) * read.options.rounds) as on_round:
        return Benchmark(measure_benchmark(request, read, _Watcher(on_round))[0])
