"""The page's chart of accuracy and latency as a picture file."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from evaltools.errors import UsageError
from evaltools.report.screen.charts import chart_name, medians, models_tradeoff
from evaltools.report.screen.rows import ModelRows
from evaltools.report.words.facts import latency_of
from evaltools.result.result import Result

_ENDINGS: Final = (".png", ".svg")


def require_plot(path: Path) -> None:
    """Raise :class:`UsageError` where a plot cannot be drawn to ``path``, before anything is measured."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"--plot={path}: a plot is a picture; give a name that ends in {' or '.join(_ENDINGS)}")
    if importlib.util.find_spec("vl_convert") is None:
        raise UsageError('--plot needs vl-convert-python: pip install "evaltools[report]"')


def plot_results(results: Mapping[str, Result], path: Path) -> bytes:
    """The content of the file, of whose ``path`` only the ending matters.

    What rows are judged by against latency where two have it, else the medians; a line for each reason to leave one
    out. Results are given by the name of the model.
    """
    from evaltools.report.page.rendering.drawing import picture_of

    found, several = ModelRows.of(results), len(results) > 1
    tradeoff = models_tradeoff(found)
    chart = tradeoff or medians(found, several)
    timed = [row for row in found.rows if not math.isnan(row.latency_ms)]
    left = {
        "not measured": [row for row in found.rows if latency_of(row.row) is None],
        "ran on the CPU instead": [row for row in found.rows if row.row.fallback],
        "no accuracy given": [row for row in timed if tradeoff is not None and row.figure(found.figure) is None],
        "average, as its log has no median": [row for row in timed if "latency_ms" not in row.row.figures],
        "a GPU in software": [row for row in timed if any(used.is_cpu for used in row.row.delegates)],
    }
    remarks = [f"{why}: {', '.join(chart_name(row, several) for row in rows)}" for why, rows in left.items() if rows]
    (first, *_) = results.values()
    count = len(results) if several else len(first.models)
    models = f"{count} models" if count > 1 else Path(first.model.file).name
    return picture_of(chart, f"{chart.caption}: {models}", remarks, path.suffix.lower().removeprefix("."))
