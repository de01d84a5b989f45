"""What a whole is made of: nodes by who ran them, time by kind of work, elements by how far they are off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaltools.report.page.charts.look import COLOURS, REFERENCE, Spec, chart, named, quantitative, told_apart


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
        "color": told_apart("part", scale={"domain": list(colours), "range": list(colours.values())}),
        "order": {"field": "place", "type": "quantitative"},
    }}  # fmt: skip
    return chart(values, [bar], {"step": 30})


def colours_of(parts: Sequence[str], rest: str | None = None) -> dict[str, str]:
    """A colour for each part, grey for the ``rest``.

    >>> colours_of(["XNNPACK", "CPU"], rest="CPU")
    {'XNNPACK': '#2f7fd6', 'CPU': '#8a909b'}
    """
    return {part: REFERENCE if part == rest else COLOURS[place % len(COLOURS)] for place, part in enumerate(parts)}
