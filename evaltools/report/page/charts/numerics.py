"""How far outputs are apart, beside what is nobody's fault."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from evaltools.report.page.charts.look import COLOURS, REFERENCE, Spec, chart, named, quantitative, told_apart


class Apart(Struct, frozen=True):
    """How far one output is off, relative to its values; ``is_floor``: of a CPU variant, not of a configuration.

    ``size`` is infinite where no number says it: NaN or infinity in the output, or another shape.
    """

    output: str
    name: str
    size: float
    is_floor: bool


def floor_chart(found: Sequence[Apart]) -> Spec:
    """A row per output: ticks for CPU variants, points for configurations, on a logarithmic axis.

    A size of 0 has no place there: it stands a decade below all others. One that no number says stands a decade above.
    """
    sizes = [entry.size for entry in found if 0 < entry.size < math.inf]
    lowest, highest = min(sizes, default=1e-6) / 10, max(sizes, default=1.0) * 10
    values = [
        {
            "output": entry.output,
            "name": entry.name,
            "size": highest if not math.isfinite(entry.size) else entry.size or lowest,
            "floor": entry.is_floor,
        }
        for entry in found
    ]
    scale = {"type": "log", "nice": False, "padding": 16}
    axis = {"format": ".0e", "tickCount": 6}
    x = quantitative("size", "relative size of the difference", scale=scale, axis=axis)
    names = list(dict.fromkeys(entry.name for entry in found if not entry.is_floor))
    colours = {"domain": names, "range": [COLOURS[place % len(COLOURS)] for place in range(len(names))]}
    floor: Spec = {
        "transform": [{"filter": "datum.floor"}],
        "mark": {"type": "tick", "thickness": 3, "color": REFERENCE},
        "encoding": {"x": x, "y": named("output")},
    }
    point: Spec = {
        "transform": [{"filter": "!datum.floor"}],
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 0.9},
        "encoding": {"x": x, "y": named("output"), "color": told_apart("name", scale=colours)},
    }
    return chart(values, [floor, point], {"step": 34})


QUANTA: Mapping[str, str] = {
    "equal": "#2e9e5b",
    "off by 1": "#8cc63f",
    "by 2": "#e0a73b",
    "by more": "#d64545",
}
"""The parts of a histogram of quanta with their colours."""
