"""What all charts have in common.

Text and lines have the colour of the page's text, so that they fit light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Spec = dict[str, Any]

WIDTH: Final = 440
"""Of the whole picture in pixels; narrow enough to be read on a phone, two stand side by side on a desk."""
REFERENCE: Final = "#8a909b"
COLOURS: Final = ("#2f7fd6", "#e07b39", "#2ca089", "#a15cc4", "#ad8620", "#d6557f", "#6d7f3c", "#5565d8")
"""For what is distinguished by name; each can be seen on white and on black."""
TONES: Final[Mapping[str, str]] = {
    "good": "#2e9e5b", "near": "#779a86", "open": "#c98a1b", "bad": "#d64545", "missing": REFERENCE, "": REFERENCE,
}  # fmt: skip
_TEXT: Final = "currentColor"
_LINE: Final = 26
"""Characters of a line of a name."""
_BLANK: Final = "lastindexof(datum.label, ' ')"
_ONE_LINE: Final = "slice(datum.label, 0, 10) + '…' + slice(datum.label, -15)"
_TWO_LINES: Final = f"[slice(datum.label, 0, {_BLANK}), slice(datum.label, {_BLANK} + 1)]"
_LABEL: Final = (
    f"length(datum.label) <= {_LINE} ? datum.label : "
    f"{_BLANK} > 0 && {_BLANK} <= {_LINE} && length(datum.label) - {_BLANK} <= {_LINE} ? {_TWO_LINES} : {_ONE_LINE}"
)
"""A long name in two lines, where it has a blank; else its beginning and its end, which distinguish names."""
_LONGEST_OF_TWO: Final = 16
"""Characters of a name that has another one beside it."""
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
        "titleFontWeight": "normal", "orient": "bottom", "columns": 2, "labelLimit": 180, "symbolStrokeColor": _TEXT,
        "symbolFillColor": _TEXT, "layout": {"bottom": {"direction": "vertical", "anchor": "start", "margin": 6}},
    },
}  # fmt: skip


def chart(values: Sequence[Mapping[str, Any]], layers: Sequence[Spec], height: int | Spec, **more: Any) -> Spec:
    """A specification with its data inside; ``height`` in pixels, or ``{"step": pixels}`` for each row."""
    body: Spec = {"layer": list(layers)} if len(layers) > 1 else dict(layers[0])
    return {
        "data": {"values": [dict(value) for value in values]},
        "width": WIDTH,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 18, "right": 14, "top": 5, "bottom": 5},
        "config": _CONFIG,
        **body,
        **more,
    }


def colours_by_name(names: Sequence[str], reference: str | None = None) -> Spec:
    """A scale with a colour for each name, grey for the ``reference``; the names keep their order."""
    others = [name for name in names if name != reference]
    by_name = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(others)}
    if reference is not None:
        by_name[reference] = REFERENCE
    return {"domain": list(names), "range": [by_name[name] for name in names]}


def colours_of(parts: Sequence[str], rest: str | None = None) -> dict[str, str]:
    """A colour for each part of a whole, grey for the ``rest``.

    >>> colours_of(["XNNPACK", "CPU"], rest="CPU")
    {'XNNPACK': '#2f7fd6', 'CPU': '#8a909b'}
    """
    return {part: REFERENCE if part == rest else COLOURS[place % len(COLOURS)] for place, part in enumerate(parts)}


def quantitative(field: str, title: str, **more: Any) -> Spec:
    """A channel that shows a number; ``scale`` and the like are passed on."""
    return {"field": field, "type": "quantitative", "title": title or None, **more}


def named(field: str, **axis: Any) -> Spec:
    """An axis of names, in the order in which they come; ``axis`` is passed on."""
    return {"field": field, "type": "nominal", "title": None, "sort": None, "axis": {"labelExpr": _LABEL, **axis}}


def distinguished(field: str, **more: Any) -> Spec:
    """A channel that distinguishes names by colour or shape, with a legend; ``scale`` and the like are passed on.

    Long names stand below each other, if the ``scale`` has them.
    """
    names = more.get("scale", {}).get("domain", [])
    is_wide = any(len(name) > _LONGEST_OF_TWO for name in names)
    legend = {"labelExpr": _LABEL, **({"columns": 1} if is_wide else {})}
    return {"field": field, "type": "nominal", "title": None, "sort": None, "legend": legend, **more}
