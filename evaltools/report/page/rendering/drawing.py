"""Vega-Lite specifications as SVG inside a page, without scripts and without addresses.

vl-convert draws them with V8, which ends its process where it cannot have 64 GiB of addresses (``ulimit -v``). So it
runs in a process of its own, which is kept for the next chart.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import functools
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any, Final

from evaltools.errors import OutputError
from evaltools.report.page.rendering.vega import spec_of
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
_PROGRAM: Final = f"""
import base64, json, sys
import vl_convert
for line in sys.stdin:
    spec, colour, kind = json.loads(line)
    svg = vl_convert.vegalite_to_svg(spec, vl_version={_VERSION!r}).replace("currentColor", colour)
    drawn = svg.encode() if kind == "svg" else vl_convert.svg_to_png(svg, scale={_SCALE})
    print(base64.b64encode(drawn).decode(), flush=True)
"""
_ONE_AT_A_TIME: Final = threading.Lock()


def svg_of(chart: Chart) -> str:
    """A chart as an ``svg`` element that scales with the page, and whose text alternative says what there is to see.

    Raises :class:`OutputError` where it cannot be drawn.
    """
    from markupsafe import escape

    svg = _drawn(spec_of(chart), "currentColor", "svg").decode()
    drawn = _TAG.sub(lambda tag: _UNUSED.sub("", tag[0]), svg)
    head = _HEAD.search(drawn)
    assert head is not None
    text = escape(printable(" ".join(filter(None, (f"{chart.caption}.", chart.text, "; ".join(chart.lines))))))
    return f'<svg role="img" aria-label="{text}"{_SIZE.sub("", head[1])}>{drawn[head.end() :]}'


def picture_of(chart: Chart, title: str, remarks: Sequence[str], kind: str) -> bytes:
    """A chart as the content of a ``png`` or ``svg`` file, black on white, with its title and remarks above it.

    The same chart gives the same bytes with the same version of vl-convert. Raises :class:`OutputError` where it cannot
    be drawn.
    """
    heading = {"text": title, "subtitle": list(remarks), "anchor": "start", "limit": 0}
    spec = spec_of(chart)
    return _drawn({**spec, "title": heading, "config": {**spec["config"], "background": "white"}}, "black", kind)


def _drawn(spec: Any, colour: str, kind: str) -> bytes:
    """A specification as the content of a ``png`` or ``svg`` file, with a ``colour`` for what has none of its own."""
    with _ONE_AT_A_TIME:
        process = _drawing(os.getpid())
        try:
            print(json.dumps([drawable(spec), colour, kind]), file=process.stdin, flush=True)
            drawn = process.stdout.readline() if process.stdout else ""
            if not drawn:
                raise BrokenPipeError
        except BaseException as error:  # as Ctrl-C, behind which the answer to this chart would be taken for another's
            _drawing.cache_clear()
            reason = _ended(process)
            if not isinstance(error, OSError):
                raise
            raise OutputError(
                f"no chart can be drawn: the process that draws them ended with {reason}. It reserves 64 GiB of "
                "addresses and more, which ulimit -v must allow"
            ) from error
    return base64.b64decode(drawn)


@functools.cache
def _drawing(_of_process: int) -> subprocess.Popen[str]:
    """The process that draws, which ends with this one; it finds modules where this one does."""
    program = f"import sys\nsys.path[:] = {sys.path!r}\n{_PROGRAM}"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="ascii",
    )
    atexit.register(_ended, process)
    return process


def _ended(process: subprocess.Popen[str]) -> str:
    """Let the process end, and say how it did."""
    with contextlib.suppress(OSError), process:  # what was not sent cannot be
        pass
    code = process.wait()
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


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
