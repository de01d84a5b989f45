"""Benchmarks from Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaltools.api.configurations import AnyPath, Tests, read_tests
from evaltools.api.options import options_of, with_options
from evaltools.api.progress import shown_progress
from evaltools.api.result import Result
from evaltools.benchmark.command import COMMAND, request_of_options
from evaltools.benchmark.conclude import conclude
from evaltools.benchmark.fresh_process import Watcher
from evaltools.benchmark.request import Candidate, read_request
from evaltools.benchmark.run import measure_benchmark
from evaltools.candidates import with_tests_here
from evaltools.errors import UsageError

OnRound = Callable[[str, int], object]


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
) -> Result:
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
    stated = options_of({"graph": model}, COMMAND.parameters, options, ("model", "tests", "progress"))
    request = request_of_options(stated, () if tests is None else read_tests(tests), Path.cwd())
    if tests is None and stated.leave_tests_open:
        request, _ = with_tests_here(request)
    read = read_request(request)
    with _shown(progress, len(read.candidates) * read.options.rounds) as on_round:
        asked, found = measure_benchmark(request, read, _Watcher(on_round))
    return Result(conclude(asked, {"": found.records}))
