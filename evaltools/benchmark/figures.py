"""What the rounds of a configuration say together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from evaltools.metrics.latency import summarise_latency
from evaltools.metrics.native_percentile import native_percentile
from evaltools.result.benchmark import BenchmarkFigures, Phase, Round
from evaltools.stats.latency_ratio import drift
from evaltools.stats.median_interval import median_interval

PERCENTILES: Final = (1, 5, 10, 25, 50, 75, 90, 95, 99)


def figures_of(rounds: Sequence[Round]) -> BenchmarkFigures:
    """Figures over the runs of all rounds, one after the other; at least one round."""
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
    """The very first invocation in its process; None in a dry run."""
    return next(iter([*warm_up.invokes_us[:1], *regular.invokes_us[:1]]), None)
