"""A chart as a Vega-Lite specification.

Text and lines have the colour of the page's text, so that they fit light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal

from evaltools.result.section import Axis, Chart, Mark

Spec = dict[str, Any]
Direction = Literal["x", "y"]

_WIDTH: Final = 440
"""Of the whole picture in pixels; narrow enough to be read on a phone, two stand side by side on a desk."""
_HEIGHTS: Final = {"points": 220, "lines": 200, "bars": 170, "strip": 30}
_STEP: Final = 30
"""Of each name on an upright axis, in pixels."""
_WIDE_STEP: Final = 36
"""The same where one takes two lines."""
GREY: Final = "#8a909b"
COLOURS: Final = ("#2f7fd6", "#e07b39", "#2ca089", "#a15cc4", "#ad8620", "#d6557f", "#6d7f3c", "#5565d8")
"""For what is told apart by name; each can be seen on white and on black."""
TONES: Final = {"good": "#2e9e5b", "near": "#779a86", "open": "#c98a1b", "bad": "#d64545", "missing": GREY}
_TEXT: Final = "currentColor"
_LINE: Final = 24
"""Characters of a line of a name."""
_BLANK: Final = "(indexof(datum.label, ', ') + 1 || lastindexof(datum.label, ' '))"
_ONE_LINE: Final = "slice(datum.label, 0, 10) + '…' + slice(datum.label, -15)"
_TWO_LINES: Final = f"[slice(datum.label, 0, {_BLANK}), slice(datum.label, {_BLANK} + 1)]"
_LABEL: Final = (
    f"length(datum.label) <= {_LINE} ? datum.label : "
    f"{_BLANK} > 0 && {_BLANK} <= {_LINE} && length(datum.label) - {_BLANK} <= {_LINE} ? {_TWO_LINES} : {_ONE_LINE}"
)
"""A long name in two lines, where it has a comma or a blank; else its beginning and its end, which tell names apart."""
_DECADE: Final = "format(datum.value, datum.value < 1e-3 || datum.value >= 1e5 ? '.0e' : '~g')"
_POWER: Final = "format(datum.value, datum.value < 1e4 ? '~g' : '.0e')"
_LONGEST_OF_TWO: Final = 16
"""Characters of a name that has another one beside it in a legend."""
_DASHED: Final[Spec] = {"color": _TEXT, "strokeDash": [4, 3]}
_CONFIG: Final[Spec] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": _TEXT, "titleColor": _TEXT, "tickColor": _TEXT, "domainColor": _TEXT, "gridColor": _TEXT,
        "gridOpacity": 0.15, "domainOpacity": 0.4, "tickOpacity": 0.4, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelLimit": 200, "labelLineHeight": 12, "titlePadding": 9,
    },
    "axisX": {"tickCount": 5, "labelSeparation": 10, "labelFlush": True},
    "legend": {
        "labelColor": _TEXT, "titleColor": _TEXT, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "orient": "bottom", "columns": 2, "columnPadding": 28, "labelLimit": 180,
        "symbolStrokeColor": _TEXT, "symbolFillColor": _TEXT,
        "layout": {"bottom": {"direction": "vertical", "anchor": "start", "margin": 6}},
    },
}  # fmt: skip


def spec_of(chart: Chart) -> Spec:
    """The specification with its data inside."""
    axes: Spec = {"x": _axis(chart, "x"), **({} if chart.form == "strip" else {"y": _axis(chart, "y")})}
    layers = [*_at(chart, axes), *_lines(chart, axes), _marks(chart, axes)]
    return {
        "data": {"values": _values(chart)},
        "width": _WIDTH,
        "height": {"step": _step(chart)} if _has_names(chart, "y") else _HEIGHTS[chart.form],
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 18, "right": 14, "top": 5, "bottom": 5},
        "config": _CONFIG,
        "layer": layers,
    }


def _step(chart: Chart) -> int:
    return _WIDE_STEP if any(len(str(mark.y)) > _LINE for mark in chart.marks) else _STEP


def _values(chart: Chart) -> list[Spec]:
    """What is drawn, with a number for each that an axis has no place for."""
    x, y = (_placed(chart, direction) for direction in ("x", "y"))
    return [
        {
            **{"x": x[place], "y": y[place], "of": mark.of, "shape": mark.shape, "size": mark.size, "place": place},
            **{"colour": _colour(mark), "joined": mark.joined, "beside": mark.beside},
            **{
                f"{name}_{end}": None if found is None else getattr(found, end)
                for name, found in (("x", mark.x_interval), ("y", mark.y_interval))
                for end in ("low", "high")
            },
        }
        for place, mark in enumerate(chart.marks)
    ]


def _placed(chart: Chart, direction: Direction) -> list[Any]:
    """The numbers of an axis: on a logarithmic one, 0 is a decade below all others, and what is no number above."""
    axis = _axis_of(chart, direction)
    found = [getattr(mark, direction) for mark in chart.marks]
    if not axis.scale or _has_names(chart, direction):
        return found
    known = [each for each in found if each is not None and math.isfinite(each)]
    above_0 = [each for each in known if each > 0]
    lowest, highest = min(above_0, default=1e-6) / 10, 10 * max([*above_0, axis.at or 0.0] if above_0 else [1.0])
    placed = [each if each is not None and math.isfinite(each) else highest for each in found]
    return [lowest if axis.scale == "log" and each <= 0 else each for each in placed]


def _axis_of(chart: Chart, direction: Direction) -> Axis:
    return chart.x if direction == "x" else chart.y


def _has_names(chart: Chart, direction: Direction) -> bool:
    """Whether an axis is one of names."""
    return any(isinstance(getattr(mark, direction), str) for mark in chart.marks)


def _colour(mark: Mark) -> str:
    return TONES[mark.tone] if mark.tone else COLOURS[0]


def _axis(chart: Chart, direction: Direction) -> Spec:
    axis = _axis_of(chart, direction)
    channel: Spec = {"field": direction, "title": axis.title or None}
    if _has_names(chart, direction):
        has_labels = any(getattr(mark, direction) for mark in chart.marks)
        looks: Spec = {"labelExpr": _LABEL, "labels": has_labels, "ticks": has_labels}
        looks |= {"labelAngle": -45 if _has_names(chart, "y") else 0} if direction == "x" else {}
        order = list(dict.fromkeys(getattr(mark, direction) for mark in chart.marks))
        return {**channel, "type": "nominal", "sort": order, "axis": looks}
    if axis.scale:
        scale: Spec = {"type": axis.scale, "nice": False, "padding": 14}
        ticks: Spec = {"labelExpr": _DECADE, "tickCount": 6}
        if axis.scale == "symlog":
            ticks = {"values": [0, *(10**power for power in range(0, 13, 2))], "labelExpr": _POWER}
        return {**channel, "type": "quantitative", "scale": scale, "axis": ticks}
    if chart.form == "shares":
        return {**channel, "type": "quantitative", "stack": "normalize", "axis": {"format": ".0%"}}
    is_length = chart.form == "bars" and not (direction == "x" and not _has_names(chart, "y"))
    scale = {"zero": is_length, **({} if is_length else {"nice": False, "padding": 8})}
    counts = all(isinstance(getattr(mark, direction), int) for mark in chart.marks)
    return {**channel, "type": "quantitative", "scale": scale, "axis": {"tickMinStep": 1} if counts else {}}


def _at(chart: Chart, axes: Spec) -> list[Spec]:
    """The line that others are seen beside, and the band to its sides."""
    layers: list[Spec] = []
    for direction, axis in (("x", chart.x), ("y", chart.y)):
        if axis.at is None:
            continue
        here = {"type": "quantitative", "scale": axes[direction]["scale"], "title": axes[direction]["title"]}
        band = {"from": axis.at - axis.margin, "to": axis.at + axis.margin}
        if axis.margin:
            ends = {direction: {**here, "field": "from"}, f"{direction}2": {"field": "to"}}
            mark = {"type": "rect", "color": _TEXT, "opacity": 0.08}
            layers.append({"data": {"values": [band]}, "mark": mark, "encoding": ends})
        rule = {"type": "rule", "opacity": 0.5, **_DASHED}
        at = {direction: {**here, "field": "at"}}
        layers.append({"data": {"values": [{"at": axis.at}]}, "mark": rule, "encoding": at})
    return layers


def _lines(chart: Chart, axes: Spec) -> list[Spec]:
    """The intervals, and the line through marks that are joined."""
    layers: list[Spec] = []
    if any(mark.joined for mark in chart.marks):
        order = {"field": "x", "type": "quantitative"}
        line = {"type": "line", "opacity": 0.35, **_DASHED}
        joined = {"mark": line, "encoding": {**axes, "order": order}}
        layers.append({"transform": [{"filter": "datum.joined"}], **joined})
    for direction, found in (("x", "x_interval"), ("y", "y_interval")):
        if any(getattr(mark, found) is not None for mark in chart.marks):
            ends = {direction: {**axes[direction], "field": f"{direction}_low"}}
            ends[f"{direction}2"] = {"field": f"{direction}_high"}
            layers.append(
                {
                    "transform": [{"filter": f"isValid(datum.{direction}_low)"}],
                    "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.7},
                    "encoding": {**axes, **ends, "color": _told_apart(chart)},
                }
            )
    return layers


def _marks(chart: Chart, axes: Spec) -> Spec:
    encoding = {**axes, "color": _told_apart(chart)}
    count = max(1, len(chart.marks))
    thickness = max(1.5, min(14.0, round(300 / count, 1)))
    if chart.form == "lines":
        return {"mark": {"type": "line", "point": {"filled": True, "size": 40} if count < _WIDTH // 4 else False},
                "encoding": encoding}  # fmt: skip
    if chart.form == "strip":
        return {"mark": {"type": "tick", "thickness": thickness, "height": 22, "opacity": 1}, "encoding": encoding}
    if chart.form in ("bars", "shares"):
        size: Spec = {"height": {"band": 0.7}} if _has_names(chart, "y") else {"width": thickness}
        order = {"field": "place", "type": "quantitative"}
        return {"mark": {"type": "bar", **size}, "encoding": {**encoding, "order": order}}
    if any(mark.shape for mark in chart.marks):
        encoding["shape"] = {**_named("shape", [mark.shape for mark in chart.marks])}
    if any(mark.size is not None for mark in chart.marks):
        encoding["size"] = {"field": "size", "type": "quantitative", "scale": {"range": [60, 400]}, "legend": None}
    area = 70 if count < _WIDTH // 4 else 16
    point: Spec = {"mark": {"type": "point", "filled": True, "size": area, "opacity": 0.9}, "encoding": encoding}
    if not any(mark.beside for mark in chart.marks):
        return point
    tick = {"mark": {"type": "tick", "thickness": 3}, "encoding": encoding}
    return {
        "layer": [
            {"transform": [{"filter": "datum.beside"}], **tick},
            {"transform": [{"filter": "!datum.beside"}], **point},
        ]
    }


def _told_apart(chart: Chart) -> Spec:
    """The colour of marks: of each name one, that of its tone where it has one; of marks without names their tones'.

    There is no legend for names that an axis has.
    """
    names = list(dict.fromkeys(mark.of for mark in chart.marks))
    if names in ([], [""]):
        return {"field": "colour", "type": "nominal", "scale": None}
    tones = {mark.of: mark.tone for mark in chart.marks if mark.tone}
    others = [name for name in dict.fromkeys((*chart.names, *names)) if name not in tones]
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(others)}
    colours |= {name: TONES[tone] for name, tone in tones.items()}
    found = _named("of", names, [colours[name] for name in names])
    return {**found, "legend": None} if all(mark.of == mark.y for mark in chart.marks) else found


def _named(field: str, names: Sequence[str], colours: Sequence[str] = ()) -> Spec:
    """What tells names apart, with a legend; long names stand below each other."""
    names = list(dict.fromkeys(names))
    legend = {"labelExpr": _LABEL, **({"columns": 1} if max(map(len, names)) > _LONGEST_OF_TWO else {})}
    scale = {"domain": names, **({"range": list(colours)} if colours else {})}
    return {"field": field, "type": "nominal", "title": None, "sort": None, "legend": legend, "scale": scale}
