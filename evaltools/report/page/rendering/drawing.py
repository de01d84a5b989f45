"""Vega-Lite specifications as SVG inside a page, without scripts and without addresses."""

from __future__ import annotations

import re
from typing import Any, Final

from evaltools.result.section import Chart

_NAMESPACES: Final = re.compile(r' xmlns(:\w+)?="[^"]*"')
_HEAD: Final = re.compile(r"<svg([^>]*)>")
_SIZE: Final = re.compile(r' (?:class|width|height|version)="[^"]*"')
_VERSION: Final = "v5.20"


def svg_of(chart: Chart) -> str:
    """A chart as an ``svg`` element that scales with the page, and whose text alternative says what there is to see."""
    import vl_convert
    from markupsafe import escape

    spec: dict[str, Any] = dict(chart.spec)
    drawn = _NAMESPACES.sub("", str(vl_convert.vegalite_to_svg(spec, vl_version=_VERSION)))
    head = _HEAD.search(drawn)
    assert head is not None
    told = escape(f"{chart.caption}. {chart.told}")
    return f'<svg role="img" aria-label="{told}"{_SIZE.sub("", head[1])}>{drawn[head.end() :]}'
