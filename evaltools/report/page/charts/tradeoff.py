"""Accuracy against latency and size, and figures from release to release."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evaltools.report.page.charts.look import Spec, chart, colours_by_name, named, quantitative, told_apart


class Tradeoff(Struct, frozen=True):
    """One model in one configuration; ``on_front``: none is as good in both and better in one."""

    model: str
    configuration: str
    latency_ms: float
    figure: float
    size_mb: float
    on_front: bool


def tradeoff_chart(found: Sequence[Tradeoff], heading: str) -> Spec:
    """Points as large as the model, a line through those on the front; where names are alike, one legend has them."""
    values = [
        {
            "model": entry.model,
            "configuration": entry.configuration,
            "ms": entry.latency_ms,
            "figure": entry.figure,
            "size": entry.size_mb,
            "front": entry.on_front,
        }
        for entry in found
    ]
    names = list(dict.fromkeys(entry.model for entry in found))
    are_alike = all(entry.model == entry.configuration for entry in found)
    x = quantitative("ms", "median time in ms", scale={"type": "log", "nice": False, "padding": 14})
    y = quantitative("figure", heading, scale={"zero": False, "padding": 14})
    front: Spec = {
        "transform": [{"filter": "datum.front"}],
        "mark": {"type": "line", "color": "currentColor", "opacity": 0.35, "strokeDash": [4, 3]},
        "encoding": {"x": x, "y": y, "order": {"field": "ms", "type": "quantitative"}},
    }
    point: Spec = {
        "mark": {"type": "point", "filled": True, "opacity": 0.9},
        "encoding": {
            "x": x,
            "y": y,
            "color": told_apart("model", scale=colours_by_name(names)),
            "shape": told_apart("model", scale={"domain": names}) if are_alike else told_apart("configuration"),
            "size": quantitative("size", "model MB", scale={"range": [60, 400]}, legend=None),
        },
    }
    return chart(values, [front, point], 260)


class Release(Struct, frozen=True):
    """A figure of one configuration in one release; ``started`` is when it was measured (ISO 8601)."""

    started: str
    configuration: str
    value: float


def releases_chart(found: Sequence[Release], title: str) -> Spec:
    """A line per configuration over the releases in the order of time."""
    values = [{"release": entry.started, "configuration": entry.configuration, "value": entry.value} for entry in found]
    names = list(dict.fromkeys(entry.configuration for entry in found))
    line: Spec = {
        "mark": {"type": "line", "point": {"filled": True, "size": 50}},
        "encoding": {
            "x": named("release", labelAngle=-30, labelLimit=110),
            "y": quantitative("value", title, scale={"zero": False}),
            "color": told_apart("configuration", scale=colours_by_name(names)),
        },
    }
    return chart(values, [line], 200)
