"""Measures every model with every configuration, in turns, each time in a fresh process."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from evaltools.benchmark.figures import figures_of
from evaltools.benchmark.fresh_process import Inputs, Progress, Watcher, describe_row, measure_in_fresh_process
from evaltools.benchmark.options import BenchmarkOptions, Candidate
from evaltools.engine import NotMeasured
from evaltools.result.benchmark import BenchmarkRow
from evaltools.stats.median_interval import rounds_ratio

_INTERRUPTED: Final = "it was interrupted"


@dataclass(frozen=True)
class Benchmarked:
    """The rows in the order of the candidates, and the outputs of each that were asked for."""

    rows: list[BenchmarkRow]
    outputs: list[Inputs | None]
    interrupted: bool


def run_benchmark(
    candidates: Sequence[Candidate], options: BenchmarkOptions, inputs: Sequence[Inputs], watcher: Watcher
) -> Benchmarked:
    """Measure; a candidate that fails costs only itself. Ctrl-C ends it with what was measured so far.

    ``inputs`` are those of each model, by its number.
    """
    entries = [Progress(candidate, _unmeasured(candidate)) for candidate in candidates]
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
    rows = _with_ratios([_finished(entry) for entry in entries])
    return Benchmarked(rows, [entry.outputs for entry in entries], interrupted)


def _unmeasured(candidate: Candidate) -> BenchmarkRow:
    return describe_row(candidate, NotMeasured(candidate.configuration, _INTERRUPTED))


def _finished(entry: Progress) -> BenchmarkRow:
    return replace(entry.row, rounds=entry.rounds, figures=figures_of(entry.rounds) if entry.rounds else None)


def _with_ratios(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """Each measured row against the first one of its model; rounds are paired as they took turns."""
    first: dict[int, BenchmarkRow] = {}
    found = []
    for row in rows:
        if row.status == "failed" or first.setdefault(row.model, row) is row:
            found.append(row)
            continue
        base, own = ([entry.regular.invokes_us for entry in each.rounds] for each in (first[row.model], row))
        found.append(replace(row, versus_first=rounds_ratio(base, own)))
    return found
