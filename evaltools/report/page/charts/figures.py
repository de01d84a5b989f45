"""Figures of configurations, models and operators, beside each other and with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from evaltools.report.page.charts.look import (
    REFERENCE,
    TONES,
    Spec,
    chart,
    colours_by_name,
    colours_of,
    distinguished,
    named,
    quantitative,
)
from evaltools.result.section import Tone

MOST_BARS: Final = 120
_CPU: Final = "CPU"


class Spread(Struct, frozen=True):
    """A figure of one configuration from ``low`` to ``high``, which are None where there is no interval."""

    name: str
    value: float
    low: float | None
    high: float | None
    tone: Tone = ""


def intervals_chart(
    found: Sequence[Spread], title: str, nothing: float | None = None, margin: float = 0.0, is_wide: bool = False
) -> Spec:
    """A point and a line per configuration; a rule where ``nothing`` changed, a band of ``margin`` to its sides.

    ``is_wide``: values that are many times as large as others stand on a logarithmic axis.
    """
    values = [
        {"name": entry.name, "value": entry.value, "low": entry.low, "high": entry.high, "colour": TONES[entry.tone]}
        for entry in found
    ]
    colour = {"field": "colour", "type": "nominal", "scale": None}
    names = named("name")
    scale = {"type": "log", "nice": False, "padding": 12} if is_wide else {"zero": False}
    axis = quantitative("value", title, scale=scale)
    line: Spec = {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {
        "y": names, "x": quantitative("low", title, scale=scale), "x2": {"field": "high"}, "color": colour,
    }}  # fmt: skip
    point: Spec = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {"y": names, "x": axis, "color": colour},
    }
    return chart(values, [*_unchanged(nothing, margin), line, point], {"step": 30})


def _unchanged(nothing: float | None, margin: float) -> list[Spec]:
    if nothing is None:
        return []
    rule: Spec = {
        "data": {"values": [{"at": nothing}]},
        "mark": {"type": "rule", "color": "currentColor", "opacity": 0.5, "strokeDash": [4, 3]},
        "encoding": {"x": {"field": "at", "type": "quantitative"}},
    }
    band: Spec = {
        "data": {"values": [{"from": nothing - margin, "to": nothing + margin}]},
        "mark": {"type": "rect", "color": "currentColor", "opacity": 0.08},
        "encoding": {"x": {"field": "from", "type": "quantitative"}, "x2": {"field": "to"}},
    }
    return [band, rule] if margin else [rule]


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
    floor: Spec = {
        "transform": [{"filter": "datum.floor"}],
        "mark": {"type": "tick", "thickness": 3, "color": REFERENCE},
        "encoding": {"x": x, "y": named("output")},
    }
    point: Spec = {
        "transform": [{"filter": "!datum.floor"}],
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 0.9},
        "encoding": {"x": x, "y": named("output"), "color": distinguished("name", scale=colours_by_name(names))},
    }
    return chart(values, [floor, point], {"step": 34})


QUANTA: Mapping[str, str] = {
    "equal": "#2e9e5b",
    "off by 1": "#8cc63f",
    "by 2": "#e0a73b",
    "by more": "#d64545",
}
"""The parts of a histogram of quanta with their colours."""


class Tradeoff(Struct, frozen=True):
    """One model in one configuration; ``on_front``: none is as good in both and better in one.

    ``interval`` is that of the figure, ``latency`` that of the latency, None where there is none.
    """

    model: str
    configuration: str
    latency_ms: float
    figure: float
    size_mb: float
    on_front: bool
    interval: tuple[float, float] | None = None
    latency: tuple[float, float] | None = None


def tradeoff_chart(found: Sequence[Tradeoff], heading: str) -> Spec:
    """Points as large as the model with their intervals, a line through those on the front.

    Where names are alike, one legend has them.
    """
    names = list(dict.fromkeys(entry.model for entry in found))
    are_alike = all(entry.model == entry.configuration for entry in found)
    x = quantitative("latency_ms", "median time in ms", scale={"type": "log", "nice": False, "padding": 14})
    y = quantitative("figure", heading, scale={"zero": False, "padding": 14})
    front: Spec = {
        "transform": [{"filter": "datum.on_front"}],
        "mark": {"type": "line", "color": "currentColor", "opacity": 0.35, "strokeDash": [4, 3]},
        "encoding": {"x": x, "y": y, "order": {"field": "latency_ms", "type": "quantitative"}},
    }
    point: Spec = {
        "mark": {"type": "point", "filled": True, "opacity": 0.9},
        "encoding": {
            "x": x,
            "y": y,
            "color": distinguished("model", scale=colours_by_name(names)),
            "shape": distinguished("model", scale={"domain": names}) if are_alike else distinguished("configuration"),
            "size": quantitative("size_mb", "model MB", scale={"range": [60, 400]}, legend=None),
        },
    }
    colour = distinguished("model", scale=colours_by_name(names))
    bars = [_bar("interval", {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "x": x, "color": colour})]
    bars += [_bar("latency", {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour})]
    return chart(list(map(asdict, found)), [front, *bars, point], 260)


def _bar(field: str, encoding: Spec) -> Spec:
    """A line from the low to the high end of an interval, where there is one."""
    ends: Spec = {"low": f"datum.{field}[0]", "high": f"datum.{field}[1]"}
    return {
        "transform": [
            {"filter": f"isValid(datum.{field})"},
            *({"calculate": text, "as": name} for name, text in ends.items()),
        ],
        "mark": {"type": "rule", "opacity": 0.6},
        "encoding": encoding,
    }


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
    colours = colours_of(names, rest=_CPU)
    cell: Spec = {"mark": {"type": "tick", "thickness": _bar_width(layers), "height": 22, "opacity": 1}, "encoding": {
        "x": _operators(), "color": distinguished("ran on", scale={"domain": names, "range": list(colours.values())}),
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
