"""The page's chart of accuracy and latency as a picture file."""

from __future__ import annotations

from pathlib import Path

from evaltools.benchmark.rows import accuracy_of_row
from evaltools.benchmark.sections import medians, timed_rows, tradeoff
from evaltools.report.files.plot import plotted
from evaltools.report.words.facts import label
from evaltools.result.result import Result
from evaltools.result.rounds import Measured


def plot_benchmark(result: Result, path: Path) -> bytes:
    """The rows with an accuracy, where there are two, against their latency; else the medians of all."""
    models = result.models
    timed, chart = timed_rows(result.rows, list(map(Measured, result.rows)), models), tradeoff(result.rows, models)
    has_time = {each.name for each in timed}
    left = {"not measured": [name for row in result.rows if (name := label(models, row)) not in has_time]}
    if chart is not None:
        left["no accuracy given"] = [each.name for each in timed if accuracy_of_row(each.row) is None]
    left["average, as its log has no median"] = [each.name for each in timed if "latency_ms" not in each.row.figures]
    left["ran on the CPU instead"] = [each.name for each in timed if each.row.fallback]
    left["a GPU in software"] = [each.name for each in timed if any(used.is_cpu for used in each.row.delegates)]
    of = Path(models[0].file).name if len(models) == 1 else f"{len(models)} models"
    return plotted(chart or medians(timed), of, left, path)
