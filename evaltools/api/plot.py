"""One figure against another one, as a chart of a notebook or a file."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from evaltools.errors import UsageError
from evaltools.metrics.interval import Interval
from evaltools.parameter import did_you_mean
from evaltools.report.files.output_file import write_file
from evaltools.report.page.rendering.drawing import picture_of
from evaltools.report.page.rendering.vega import spec_of
from evaltools.result.section import Axis, Chart, Mark

_PICTURES: Final = (".svg", ".png")
_PAGE: Final = ".html"


class Plot:
    """A chart; a notebook shows it, :meth:`save` writes it."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart

    @property
    def spec(self) -> dict[str, Any]:
        """Its Vega-Lite specification."""
        return spec_of(self.chart)

    def save(self, path: str | Path) -> None:
        """Write ``FILE.svg``, ``FILE.png`` or ``FILE.html``; else raises :class:`~evaltools.errors.UsageError`."""
        file = Path(path)
        kind = file.suffix.lower()
        if kind not in (*_PICTURES, _PAGE):
            raise UsageError(f"path={file}: a plot is saved as FILE.svg, FILE.png or FILE.html")
        drawn = self._drawn("png" if kind == ".png" else "svg")
        head = f"<!doctype html><meta charset=utf-8><title>{escape(self.chart.caption)}</title>".encode()
        write_file(file, head + drawn if kind == _PAGE else drawn)

    def _repr_svg_(self) -> str:
        """The picture for a notebook."""
        return self._drawn("svg").decode()

    def _drawn(self, kind: str) -> bytes:
        if importlib.util.find_spec("vl_convert") is None:
            raise UsageError('a plot needs vl-convert-python: pip install "evaltools[report]"')
        return picture_of(self.chart, self.chart.caption, [], kind)

    def __repr__(self) -> str:
        return f"<Plot: {self.chart.caption}>"


def plot_of(rows: Sequence[Mapping[str, Any]], x: str, y: str) -> Plot:
    """A point for each row that has both figures, and a line where a figure has an interval.

    Raises :class:`~evaltools.errors.UsageError` for a figure that none of the rows has, or that is not stated.
    """
    known = list(dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, int | float)))
    if not (x and y):
        raise UsageError(f"a plot needs two figures: plot(x, y). Known are {', '.join(known) or 'none'}")
    for name in (x, y):
        if name not in known:
            raise UsageError(
                f"no configuration has a figure {name!r}.{did_you_mean(name, known)} Known are {', '.join(known)}"
            )
    shown = [row for row in rows if isinstance(row.get(x), int | float) and isinstance(row.get(y), int | float)]
    several = len({row.get("model", "") for row in shown}) > 1
    marks = [
        Mark(
            row[x],
            row[y],
            row["configuration"],
            x_interval=_interval(row, x),
            y_interval=_interval(row, y),
            shape=row["model"] if several else "",
        )
        for row in shown
    ]
    return Plot(Chart(f"{y} against {x}", "points", marks, "", Axis(x), Axis(y)))


def _interval(row: Mapping[str, Any], name: str) -> Interval | None:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return None if low is None or high is None else Interval(low, high)
