"""Single times, a point for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaltools.report.page.charts.times import MOST_POINTS, runs_chart
from evaltools.report.page.content.page import sentences, some_of
from evaltools.report.tables.cells import three_digits
from evaltools.result.section import Chart


def each_run(
    caption: str, times_ms: Mapping[str, Sequence[float]], most: int, reference: str | None = None
) -> Chart | None:
    """The times of the first configurations in milliseconds, in the order of the runs; None where there are none.

    >>> each_run("Runs", {"cpu": [2.0, 1.5], "gpu": []}, most=8).told
    'cpu: 2 runs from 1.5 to 2 ms.'
    """
    every = {name: times for name, times in times_ms.items() if times}
    timed = dict(list(every.items())[:most])
    if not timed:
        return None
    told = "; ".join(
        f"{name}: {len(times)} runs from {three_digits(min(times))} to {three_digits(max(times))} ms"
        for name, times in timed.items()
    )
    is_bounded = any(len(times) > MOST_POINTS for times in timed.values())
    points = f"At most {MOST_POINTS} runs of each are drawn, all in the JSON result" if is_bounded else ""
    left = some_of(len(timed), len(every), "configurations")
    return Chart(caption, runs_chart(timed, reference), sentences(told, points, left))
