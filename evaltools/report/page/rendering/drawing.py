"""Vega-Lite specifications as SVG inside a page, without scripts and without addresses."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from evaltools.result.section import Chart
from evaltools.text import printable

_TAG: Final = re.compile(r'<\w+(?: [\w:-]+="[^"]*")*')
_UNUSED: Final = re.compile(r' (?:xmlns(?::\w+)?|role|aria-\w+|pointer-events)="[^"]*"| opacity="1"')
"""Namespaces are known to HTML; what parts of a picture are called says nothing beside its text alternative."""
_HEAD: Final = re.compile(r"<svg([^>]*)>")
_SIZE: Final = re.compile(r' (?:class|width|height|version)="[^"]*"')
_VERSION: Final = "v5.20"
_SCALE: Final = 2.0
"""Pixels of a PNG for each of the chart."""


def svg_of(chart: Chart) -> str:
    """A chart as an ``svg`` element that scales with the page, and whose text alternative says what there is to see."""
    import vl_convert
    from markupsafe import escape

    svg = str(vl_convert.vegalite_to_svg(drawable(chart.spec), vl_version=_VERSION))
    drawn = _TAG.sub(lambda tag: _UNUSED.sub("", tag[0]), svg)
    head = _HEAD.search(drawn)
    assert head is not None
    text = escape(printable(f"{chart.caption}. {chart.text}"))
    return f'<svg role="img" aria-label="{text}"{_SIZE.sub("", head[1])}>{drawn[head.end() :]}'


def picture_of(chart: Chart, title: str, remarks: Sequence[str], kind: str) -> bytes:
    """A chart as the content of a ``png`` or ``svg`` file, black on white, with its title and remarks above it.

    The same chart gives the same bytes with the same version of vl-convert.
    """
    import vl_convert

    heading = {"text": title, "subtitle": list(remarks), "anchor": "start", "limit": 0}
    config = {**chart.spec["config"], "background": "white"}
    spec = drawable({**chart.spec, "title": heading, "config": config})
    svg = str(vl_convert.vegalite_to_svg(spec, vl_version=_VERSION)).replace("currentColor", "black")
    return svg.encode() if kind == "svg" else bytes(vl_convert.svg_to_png(svg, scale=_SCALE))


def drawable(value: Any) -> Any:
    r"""A specification without what is not XML, of which vl-convert dies, and no JSON: such characters and numbers.

    >>> drawable({"name": "a\x1b[2J", "value": float("nan")})
    {'name': 'a\\x1b[2J', 'value': None}
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: drawable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [drawable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
