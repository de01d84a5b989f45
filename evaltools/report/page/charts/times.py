"""Times of single runs, what else moved while they were measured, and what a whole is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.report.page.charts.look import (
    Spec,
    chart,
    colours_by_name,
    distinguished,
    named,
    quantitative,
)

MOST_POINTS: Final = 160
"""Of one configuration; of more, as many are shown, spread evenly."""


def spread_evenly(values: Sequence[float], most: int = MOST_POINTS) -> list[tuple[int, float]]:
    """At most so many of the values with their places, the first one among them.

    >>> spread_evenly([5.0, 6.0, 7.0, 8.0], most=2)
    [(0, 5.0), (2, 7.0)]
    """
    step = max(1, -(-len(values) // most))
    return [(place, values[place]) for place in range(0, len(values), step)]


def runs_chart(times_ms: Mapping[str, Sequence[float]], reference: str | None) -> Spec:
    """A point per run in the order in which they were measured, on a logarithmic axis where times differ much."""
    values = [
        {"configuration": name, "run": place, "ms": time}
        for name, times in times_ms.items()
        for place, time in spread_evenly(times)
        if time > 0
    ]
    seen = [value["ms"] for value in values if isinstance(value["ms"], float)]
    is_wide = bool(seen) and max(seen) > 5 * min(seen)
    scale = {"type": "log", "nice": False, "padding": 10} if is_wide else {"zero": False}
    point: Spec = {"mark": {"type": "point", "filled": True, "size": 16, "opacity": 0.65}, "encoding": {
        "x": quantitative("run", "run", scale={"nice": False}),
        "y": quantitative("ms", "ms", scale=scale),
        "color": distinguished("configuration", scale=colours_by_name(list(times_ms), reference)),
    }}  # fmt: skip
    return chart(values, [point], 220)


def moments_chart(found: Mapping[str, Mapping[str, float]], title: str) -> Spec:
    """A line per configuration over moments that all of them have, such as before and after opening."""
    values = [
        {"name": name, "moment": moment, "value": value}
        for name, by_moment in found.items()
        for moment, value in by_moment.items()
    ]
    line: Spec = {"mark": {"type": "line", "point": {"filled": True, "size": 40}}, "encoding": {
        "x": named("moment", labelAngle=0),
        "y": quantitative("value", title, scale={"zero": False}),
        "color": distinguished("name", scale=colours_by_name(list(found))),
    }}  # fmt: skip
    return chart(values, [line], 200)


def over_time_chart(lines: Mapping[str, Sequence[tuple[float, float]]], time: str, title: str) -> Spec:
    """A line per name: pairs of a time and a value, of which at most :data:`MOST_POINTS` are drawn."""
    step = max(1, *(-(-len(points) // MOST_POINTS) for points in lines.values()))
    values = [
        {"name": name, "time": moment, "value": value}
        for name, points in lines.items()
        for moment, value in points[::step]
    ]
    line: Spec = {"mark": {"type": "line"}, "encoding": {
        "x": quantitative("time", time),
        "y": quantitative("value", title),
        "color": distinguished("name", scale=colours_by_name(list(lines))),
    }}  # fmt: skip
    return chart(values, [line], 200)


def bars_chart(found: Mapping[str, float], title: str) -> Spec:
    """A bar per name, in the order given."""
    values = [{"name": name, "value": value} for name, value in found.items()]
    bar: Spec = {"mark": {"type": "bar", "height": {"band": 0.7}, "color": "#2f7fd6"}, "encoding": {
        "y": named("name"), "x": quantitative("value", title),
    }}  # fmt: skip
    return chart(values, [bar], {"step": 22})


def shares_chart(
    rows: Mapping[str, Mapping[str, float]], colours: Mapping[str, str], title: str, as_shares: bool = False
) -> Spec:
    """A bar per row, made of parts; ``as_shares`` of the row's sum."""
    values = [
        {"row": row, "part": part, "size": size, "place": place}
        for row, parts in rows.items()
        for place, (part, size) in enumerate(parts.items())
    ]
    stack: str | bool = "normalize" if as_shares else True
    axis = {"format": ".0%"} if as_shares else {}
    bar: Spec = {"mark": {"type": "bar", "height": {"band": 0.7}}, "encoding": {
        "y": named("row", labels=len(rows) > 1, ticks=len(rows) > 1),
        "x": quantitative("size", title, stack=stack, axis=axis),
        "color": distinguished("part", scale={"domain": list(colours), "range": list(colours.values())}),
        "order": {"field": "place", "type": "quantitative"},
    }}  # fmt: skip
    return chart(values, [bar], {"step": 30})
