"""One series of times as the native benchmark sums it up in a line."""

from __future__ import annotations

from collections.abc import Sequence

from evaltools.metrics.latency import summarise_latency, whole_us
from evaltools.metrics.native_numbers import native_percentile
from evaltools.result.rounds import StatFigures


def stat_figures(values_us: Sequence[float], percentiles: bool = True) -> StatFigures:
    """The figures of times in the order in which they were measured, rounded to whole microseconds.

    >>> stat_figures([3, 1, 2]).std_us, stat_figures([3, 1, 2]).median_us
    (0, 2)
    """
    summary = summarise_latency(values_us)
    p5, median, p95 = (
        whole_us(native_percentile(values_us, percent)) if percentiles else None for percent in (5, 50, 95)
    )
    return StatFigures(
        count=summary.count,
        first_us=summary.first_us or 0,
        last_us=summary.last_us,
        min_us=summary.min_us,
        max_us=summary.max_us,
        avg_us=summary.avg_us,
        std_us=summary.std_us,
        p5_us=p5,
        median_us=median,
        p95_us=p95,
    )


def format_stat(figures: StatFigures) -> str:
    """The line: short without samples, short where all samples are equal, else with first, min, max, avg and std."""
    if figures.count == 0:
        line = "count=0"
    elif figures.min_us == figures.max_us:
        line = f"count={figures.count} curr={figures.last_us}{'(all same)' if figures.count > 1 else ''}"
    else:
        line = (
            f"count={figures.count} first={figures.first_us} curr={figures.last_us} min={figures.min_us} "
            f"max={figures.max_us} avg={figures.avg_us:g} std={figures.std_us}"
        )
    if figures.median_us is None:
        return line
    return f"{line} p5={figures.p5_us} median={figures.median_us} p95={figures.p95_us}"


def stat_line(values_us: Sequence[float], percentiles: bool = True) -> str:
    """The stat line of times (tsl ``Stat::OutputToStream``).

    >>> stat_line([3, 1, 2])
    'count=3 first=3 curr=2 min=1 max=3 avg=2 std=0 p5=1 median=2 p95=3'
    >>> stat_line([7, 7], percentiles=False), stat_line([])
    ('count=2 curr=7(all same)', 'count=0 p5=0 median=0 p95=0')
    """
    return format_stat(stat_figures(values_us, percentiles))
