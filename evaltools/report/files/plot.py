"""The page's chart of accuracy and latency as a picture file."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.errors import UsageError
from evaltools.report.page.sections.rows import ModelRows
from evaltools.report.page.sections.tradeoff import models_tradeoff
from evaltools.result.result import Result
from evaltools.result.section import Axis, Chart, Mark

_ENDINGS: Final = (".png", ".svg")
_LATENCY: Final = "Median latency"


def require_plot(path: Path) -> None:
    """Raise :class:`UsageError` where a plot cannot be drawn to ``path``, before anything is measured."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"--plot={path}: a plot is a picture; give a name that ends in {' or '.join(_ENDINGS)}")
    if importlib.util.find_spec("vl_convert") is None:
        raise UsageError('--plot needs vl-convert-python: pip install "evaltools[report]"')


def plot_models(results: Mapping[str, Result], path: Path) -> bytes:
    """Results by the name of the model: what they are judged by against latency; latencies where outputs are judged."""
    found = ModelRows.of(results)
    several = len(results) > 1
    chart = models_tradeoff(found)
    marks, missing = [], []
    for row in found.rows:
        name = f"{row.model}, {row.row.name}" if several else row.row.name
        if math.isnan(row.latency_ms):
            missing.append(name)
        else:
            marks.append(Mark(row.latency_ms, name))
    chart = chart or Chart(_LATENCY, "points", marks, "", Axis("ms"))
    models = f"{len(results)} models" if several else next(iter(results))
    return plotted(chart, models, {"not measured as asked": missing}, path)


def plotted(chart: Chart, models: str, left_out: Mapping[str, Sequence[str]], path: Path) -> bytes:
    """The content of the file, of whose ``path`` only the ending matters; a line for each remark that any name has."""
    from evaltools.report.page.rendering.drawing import picture_of

    remarks = [f"{remark}: {', '.join(names)}" for remark, names in left_out.items() if names]
    return picture_of(chart, f"{chart.caption}: {models}", remarks, path.suffix.lower().removeprefix("."))
