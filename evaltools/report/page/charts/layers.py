"""Errors along the operators of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from evaltools.report.page.charts.look import COLOURS, REFERENCE, TONES, Spec, chart, quantitative, told_apart
from evaltools.result.section import Tone

MOST_BARS: Final = 120
_CPU: Final = "CPU"


class Layer(Struct, frozen=True):
    """One operator, or the worst of several in a row.

    ``local`` is its own error as a multiple of what is tolerated, None where that is not known, infinite where the
    output is NaN or infinite. ``ran_on`` is who ran it.
    """

    index: int
    local: float | None
    tone: Tone
    ran_on: str


def worst_in_a_row(layers: Sequence[Layer], most: int = MOST_BARS) -> list[Layer]:
    """At most so many: of operators in a row, as many as needed are one bar, that of the largest error."""
    size = max(1, -(-len(layers) // most))
    groups = [layers[start : start + size] for start in range(0, len(layers), size)]
    return [max(group, key=lambda layer: layer.local or 0.0) for group in groups]


def local_chart(layers: Sequence[Layer]) -> Spec:
    """Bars of each operator's own error as a multiple of its tolerance, which is the line at 1.

    An infinite one is ten times as high as the highest of the others.
    """
    top = _above([layer.local for layer in layers], at_least=1.0)
    values = [
        {"operator": layer.index, "error": min(layer.local, top), "colour": TONES[layer.tone]}
        for layer in layers
        if layer.local is not None
    ]
    bar: Spec = {"mark": {"type": "bar", "width": _bar_width(layers)}, "encoding": {
        "x": _operators(), "y": quantitative("error", "error / tolerance", scale={"type": "symlog", "constant": 1}),
        "color": {"field": "colour", "type": "nominal", "scale": None},
    }}  # fmt: skip
    limit: Spec = {
        "data": {"values": [{"at": 1}]},
        "mark": {"type": "rule", "color": "currentColor", "strokeDash": [4, 3], "opacity": 0.6},
        "encoding": {"y": {"field": "at", "type": "quantitative"}},
    }
    return chart(values, [bar, limit], 170)


def strip_chart(layers: Sequence[Layer]) -> Spec:
    """A strip with a cell per operator in the colour of who ran it."""
    values = [{"operator": layer.index, "ran on": layer.ran_on or _CPU} for layer in layers]
    names = list(dict.fromkeys(layer.ran_on or _CPU for layer in layers))
    colours: Mapping[str, str] = {
        name: REFERENCE if name == _CPU else COLOURS[place % len(COLOURS)] for place, name in enumerate(names)
    }
    cell: Spec = {"mark": {"type": "tick", "thickness": _bar_width(layers), "height": 22, "opacity": 1}, "encoding": {
        "x": _operators(), "color": told_apart("ran on", scale={"domain": names, "range": list(colours.values())}),
    }}  # fmt: skip
    return chart(values, [cell], 30)


def _above(errors: Sequence[float | None], at_least: float) -> float:
    """Ten times the largest that is finite."""
    finite = [error for error in errors if error is not None and math.isfinite(error)]
    return 10 * max([*finite, at_least])


def _operators() -> Spec:
    return quantitative("operator", "operator", scale={"zero": False, "nice": False, "padding": 8})


def _bar_width(layers: Sequence[Layer]) -> float:
    return max(1.5, min(14.0, round(300 / max(1, len(layers)), 1)))
