"""Changes and ratios with their 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evaltools.report.page.charts.look import TONES, Spec, chart, named, quantitative
from evaltools.result.section import Tone


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
