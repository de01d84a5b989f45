"""Single times, a point for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaltools.report.page.charts.times import MOST_POINTS, runs_chart
from evaltools.report.tables.cells import three_digits
from evaltools.result.section import Chart


def each_run(caption: str, times_ms: Mapping[str, Sequence[float]], reference: str | None = None) -> Chart | None:
    """The times of each configuration in milliseconds, in the order of the runs; None where there are none.

    >>> each_run("Runs", {"cpu": [2.0, 1.5], "gpu": []}).told
    'cpu: 2 runs from 1.5 to 2 ms.'
    """
    timed = {name: times for name, times in times_ms.items() if times}
    if not timed:
        return None
    told = "; ".join(
        f"{name}: {len(times)} runs from {three_digits(min(times))} to {three_digits(max(times))} ms"
        for name, times in timed.items()
    )
    is_bounded = any(len(times) > MOST_POINTS for times in timed.values())
    bound = f" At most {MOST_POINTS} of each are drawn." if is_bounded else ""
    return Chart(caption, runs_chart(timed, reference), f"{told}.{bound}")
