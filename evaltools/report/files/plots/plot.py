"""Models and configurations as a picture: accuracy against latency and size, or latencies alone."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.metrics.pareto import pareto_front
from evaltools.report.files.plots.labels import Position, label_points
from evaltools.report.tables.cells import milliseconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLOT_ENDINGS: Final = (".png", ".svg")

_LOG_FROM: Final = 10.0
_MOST_LETTERS: Final = 100
"""Of all labels together; where there are more, points are numbered."""
_LONGEST_SHARED_LINE: Final = 40
_SETTINGS: Final[Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "svg.hashsalt": "evaltools",
    "svg.fonttype": "path",
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_DOTS_PER_INCH: Final = 150
_WIDTH: Final = 10.0
_ROW_HEIGHT: Final = 0.3
_KEY_INCHES: Final = 0.058
"""A character of the key."""
_KEY_LINE_INCHES: Final = 0.17


class Point(Struct, frozen=True):
    """What is drawn of one model in one configuration.

    ``accuracy`` is in percent, of ``metric``, which is empty without one; ``interval_ms`` is that of the median.
    ``model`` is the number of the model.
    """

    label: str
    model: int
    latency_ms: float
    interval_ms: tuple[float, float] | None
    size_mb: float
    accuracy: float
    metric: str
    on_front: bool


def require_plot(path: Path) -> None:
    """Raise :class:`UsageError` where a plot cannot be drawn to ``path``, before anything is measured."""
    if path.suffix.lower() not in PLOT_ENDINGS:
        raise UsageError(f"{path} is no name for a plot: it must end in {' or '.join(PLOT_ENDINGS)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        message = f"a plot needs matplotlib, which cannot be imported ({error}): pip install 'evaltools[plot]'"
        raise UsageError(message) from error


def drawn(points: Sequence[Point], models: str, words: Sequence[str], path: Path) -> bytes:
    """The content of a .png or .svg file, with ``words`` below; ``path`` is only looked at for its ending.

    Points that have a metric: accuracy in percent against the median latency in milliseconds, logarithmic where the
    slowest takes 10 times as long as the fastest, and against the model's size in units of 1000 * 1000 bytes. The line
    is the Pareto front, whose points are filled. Others: a bar per point with the 95 % interval of the median. The same
    points give the same bytes with the same version of matplotlib. Raises what :func:`require_plot` does.
    """
    require_plot(path)
    import matplotlib

    kind = path.suffix.lower().removeprefix(".")
    content = io.BytesIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        metadata = {"Date": None} if kind == "svg" else None
        draw = _scatter if any(point.metric for point in points) else _bars
        draw(points, models, words).savefig(content, format=kind, dpi=_DOTS_PER_INCH, metadata=metadata)
    return content.getvalue()


def _new_figure(height: float, words: Sequence[str], more_width: float = 0.0) -> Figure:
    """With ``words`` below what will be drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    text = "\n".join(words)
    lines = text.count("\n") + 1
    figure = Figure(figsize=(_WIDTH + more_width, height + 0.16 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    figure.supxlabel(text, x=0.01, ha="left", fontsize=8, color="0.3")
    return figure


def _bars(points: Sequence[Point], models: str, words: Sequence[str]) -> Figure:
    """The fastest on top."""
    ranked = sorted(points, key=lambda point: point.latency_ms)
    note = "bars: median of invoke() alone; lines: its 95 % interval"
    figure = _new_figure(1.2 + _ROW_HEIGHT * max(2, len(ranked)), [note, *words])
    axes = figure.add_subplot()
    axes.set_title(f"Latency of {models}", loc="left")
    axes.set_xlabel("median latency (ms)")
    places = range(len(ranked))
    axes.barh(places, [point.latency_ms for point in ranked], height=0.6, color=[_color(point) for point in ranked])
    axes.set_yticks(places, [textwrap.shorten(point.label, 80, placeholder=" ...") for point in ranked])
    axes.set_ylim(max(2, len(ranked)) - 0.4, -0.6)
    for place, point in zip(places, ranked, strict=True):
        low, high = point.interval_ms or (point.latency_ms, point.latency_ms)
        if point.interval_ms:
            axes.plot([low, high], [place, place], color="0.1", linewidth=1.2, marker="|", markersize=5)
        text, end = milliseconds(1000 * point.latency_ms), max(high, point.latency_ms)
        axes.annotate(text, (end, place), (5, 0), textcoords="offset points", va="center", fontsize=8)
    longest = max((max(point.latency_ms, *(point.interval_ms or (0.0,))) for point in ranked), default=0.0)
    axes.set_xlim(0, 1.12 * longest or 1.0)
    if not ranked:
        axes.text(0.5, 0.5, "nothing was measured", transform=axes.transAxes, ha="center")
    return figure


def _scatter(points: Sequence[Point], models: str, words: Sequence[str]) -> Figure:
    ranked = sorted(points, key=lambda point: (point.latency_ms, -point.accuracy, point.label))
    is_numbered = sum(len(point.label) for point in ranked) > _MOST_LETTERS
    names = [str(number) if is_numbered else point.label for number, point in enumerate(ranked, 1)]
    note = "line and filled points: the Pareto front; no other is as good on both axes and better on one"
    key_width = _KEY_INCHES * (4 + max(len(point.label) for point in ranked)) if is_numbered else 0.0
    key_height = 0.6 + _KEY_LINE_INCHES * len(ranked) if is_numbered else 0.0
    figure = _new_figure(max(5.0, key_height), [note, *words], key_width)
    ratios = [_WIDTH / 2, _WIDTH / 2, *([key_width] if is_numbered else [])]
    panels = figure.subplots(1, len(ratios), width_ratios=ratios)
    figure.suptitle(f"Accuracy of {models}", x=0.01, ha="left")
    by_latency = [(point.latency_ms, point.accuracy) for point in ranked]
    by_size = [(point.size_mb, point.accuracy) for point in ranked]
    if is_numbered:
        _write_key(panels[2], ranked)
    lines = _draw_panel(panels[0], ranked, by_latency, [point.on_front for point in ranked])
    lines_by_size = _draw_panel(panels[1], ranked, by_size, _size_front(ranked))
    panels[0].set_xlabel("median latency (ms)")
    panels[1].set_xlabel("model size (MB)")
    figure.canvas.draw()
    label_points(panels[0], _shared_labels(by_latency, names), lines)
    label_points(panels[1], _shared_labels(by_size, names), lines_by_size)
    return figure


def _draw_panel(
    axes: Axes, points: Sequence[Point], places: Sequence[Position], on_front: Sequence[bool]
) -> list[tuple[Position, Position]]:
    """Points with their intervals, and the front; gives the lines that were drawn."""
    metrics = sorted({point.metric for point in points})
    axes.set_ylabel(f"{' and '.join(metrics)} (%)")
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    costs = [cost for cost, _ in places]
    if min(costs) > 0 and max(costs) > _LOG_FROM * min(costs):
        _set_log_scale(axes)
    lines = []
    for point, (cost, gain), is_on in zip(points, places, on_front, strict=True):
        if point.interval_ms and cost == point.latency_ms:
            low, high = point.interval_ms
            axes.plot((low, high), (gain, gain), color="0.7", linewidth=1.0)
            lines.append(((low, gain), (high, gain)))
        marker = "o" if point.metric == metrics[0] else "s"
        fill = _color(point) if is_on else "white"
        axes.plot(cost, gain, marker, color=_color(point), markerfacecolor=fill, markersize=6, zorder=4 if is_on else 3)
    for metric in metrics:
        chosen = zip(places, points, on_front, strict=True)
        corners = _steps([place for place, point, is_on in chosen if is_on and point.metric == metric])
        axes.plot(*zip(*corners, strict=True), color="0.55", linewidth=1.2)
        lines += list(pairwise(corners))
    axes.margins(0.15)
    return lines


def _size_front(points: Sequence[Point]) -> list[bool]:
    """Which points are on the front of accuracy against size, each metric by itself."""
    found = [False] * len(points)
    for metric in {point.metric for point in points}:
        places = [place for place, point in enumerate(points) if point.metric == metric]
        front = pareto_front([(points[place].size_mb, points[place].accuracy) for place in places])
        for place, is_on in zip(places, front, strict=True):
            found[place] = is_on
    return found


def _steps(front: Sequence[Position]) -> list[Position]:
    """The corners of the line through a front: as good as the last point until the next one."""
    corners: list[Position] = []
    for cost, gain in sorted(front):
        corners += [(cost, corners[-1][1]), (cost, gain)] if corners else [(cost, gain)]
    return corners


def _set_log_scale(axes: Axes) -> None:
    """With plain numbers, for powers of ten would be formulas."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _color(point: Point) -> str:
    """One per model; they come again after ten."""
    return f"C{point.model % 10}"


def _shared_labels(places: Sequence[Position], names: Sequence[str]) -> dict[Position, str]:
    """One label for all points of a place."""
    found: dict[Position, list[str]] = {}
    for place, name in zip(places, names, strict=True):
        found.setdefault(place, []).append(name)
    return {place: textwrap.fill(", ".join(several), _LONGEST_SHARED_LINE) for place, several in found.items()}


def _write_key(axes: Axes, points: Sequence[Point]) -> None:
    """What the numbers stand for, one line each from the top."""
    axes.set_axis_off()
    in_axes: dict[str, Any] = {"transform": axes.transAxes, "fontsize": 7}
    step = 1 / max(24, len(points))
    for number, point in enumerate(points, 1):
        height = 1 - step * number
        axes.text(0.06, height, str(number), ha="right", color=_color(point), fontweight="bold", **in_axes)
        axes.text(0.08, height, point.label, **in_axes)
