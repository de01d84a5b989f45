"""One figure against another one, as a chart of a notebook or a file."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean
from evaltools.report.files.output_file import write_file
from evaltools.report.page.charts.look import Spec, chart, colours_by_name, distinguished, quantitative
from evaltools.report.page.rendering.drawing import picture_of
from evaltools.result.section import Chart

_HEIGHT: Final = 260
_PICTURES: Final = (".svg", ".png")
_PAGE: Final = ".html"
_PLACES: Final = {"x": "x2", "y": "y2"}


class Plot:
    """A chart; ``spec`` is its Vega-Lite specification. A notebook shows it, :meth:`save` writes it."""

    def __init__(self, title: str, spec: Spec) -> None:
        self.title = title
        self.spec = spec

    def save(self, path: str | Path) -> None:
        """Write ``FILE.svg``, ``FILE.png`` or ``FILE.html``; else raises :class:`~evaltools.errors.UsageError`."""
        file = Path(path)
        kind = file.suffix.lower()
        if kind not in (*_PICTURES, _PAGE):
            raise UsageError(f"path={file}: a plot is saved as FILE.svg, FILE.png or FILE.html")
        drawn = self._drawn("png" if kind == ".png" else "svg")
        head = f"<!doctype html><meta charset=utf-8><title>{escape(self.title)}</title>".encode()
        write_file(file, head + drawn if kind == _PAGE else drawn)

    def _repr_svg_(self) -> str:
        """The picture for a notebook."""
        return self._drawn("svg").decode()

    def _drawn(self, kind: str) -> bytes:
        if importlib.util.find_spec("vl_convert") is None:
            raise UsageError('a plot needs vl-convert-python: pip install "evaltools[report]"')
        return picture_of(Chart(self.title, self.spec, ""), self.title, [], kind)

    def __repr__(self) -> str:
        return f"<Plot: {self.title}>"


def plot_of(rows: Sequence[Mapping[str, Any]], x: str, y: str) -> Plot:
    """A point for each row that has both figures, and a line where a figure has an interval.

    Raises :class:`~evaltools.errors.UsageError` for a figure that none of the rows has.
    """
    known = list(dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, int | float)))
    for name in (x, y):
        if name not in known:
            raise UsageError(
                f"no configuration has a figure {name!r}.{did_you_mean(name, known)} Known are {', '.join(known)}"
            )
    shown = [row for row in rows if isinstance(row.get(x), int | float) and isinstance(row.get(y), int | float)]
    names = list(dict.fromkeys(row["configuration"] for row in shown))
    models = list(dict.fromkeys(row.get("model", "") for row in shown))
    axes = {"x": quantitative(x, x, scale={"zero": False}), "y": quantitative(y, y, scale={"zero": False})}
    colour = {"color": distinguished("configuration", scale=colours_by_name(names))}
    shape = {"shape": distinguished("model")} if len(models) > 1 else {}
    layers: list[Spec] = [
        {"mark": "rule", "encoding": {**axes, **colour, **_interval(axis, name)}}
        for axis, name in (("x", x), ("y", y))
        if any(f"{name}_low" in row for row in shown)
    ]
    point = {
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
        "encoding": {**axes, **colour, **shape},
    }
    drawn = ("model", "configuration", *(f"{axis}{end}" for axis in (x, y) for end in ("", "_low", "_high")))
    values = [{name: row[name] for name in drawn if name in row} for row in shown]
    return Plot(f"{y} against {x}", chart(values, [*layers, point], _HEIGHT))


def _interval(axis: str, name: str) -> dict[str, Any]:
    """The channels of a line from the lower to the upper end of an interval."""
    low = quantitative(f"{name}_low", name, scale={"zero": False})
    return {axis: low, _PLACES[axis]: {"field": f"{name}_high"}}
