"""Puts labels beside the points of a plot so that they cover each other as little as can be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

_DISTANCES: Final = (7.0, 14.0, 24.0, 36.0, 50.0)
_ANGLES: Final = (45, 0, 315, 90, 270, 135, 180, 225)
"""In points and degrees; the first place that is free is taken."""
_FARTHEST_WITHOUT_LINE: Final = 14.0
_POINT_RADIUS: Final = 4.0
_HALF_LINE: Final = 1.0
_FONT_POINTS: Final = 8.0
_POINTS_PER_INCH: Final = 72.0
Position = tuple[float, float]


def label_points(axes: Axes, labels: Mapping[Position, str], lines: Sequence[tuple[Position, Position]] = ()) -> None:
    """Write each label near its point, in data coordinates, with a thin line where it had to go farther away.

    Of the places tried, the one is taken that covers the least of other labels, of points and of ``lines``, each of
    which is parallel to an axis, and of what is outside the axes. The limits of the axes must be final, and the figure
    must have a canvas that draws.
    """
    from matplotlib.transforms import Bbox

    figure = axes.figure
    figure.canvas.draw()
    scale = figure.dpi / _POINTS_PER_INCH
    taken = [
        Bbox(axes.transData.transform(ends)).padded(half * scale)
        for half, several in ((_POINT_RADIUS, [(point, point) for point in labels]), (_HALF_LINE, lines))
        for ends in (sorted(pair) for pair in several)
    ]
    inside = axes.get_window_extent()
    at = {point: tuple(axes.transData.transform(point)) for point in labels}
    for point in sorted(labels):
        note = _written(axes, labels[point], point)
        others = [place for other, place in at.items() if other != point]
        distance, offset, box = _best_place(note, at[point], others, taken, inside, scale)
        note.set_position(offset)
        if distance <= _FARTHEST_WITHOUT_LINE and note.arrow_patch is not None:
            note.arrow_patch.set_visible(False)
        taken.append(box)


def _written(axes: Axes, text: str, point: Position) -> Annotation:
    note = axes.annotate(
        text,
        point,
        xytext=(0.0, 0.0),
        textcoords="offset points",
        fontsize=_FONT_POINTS,
        ha="center",
        va="center",
        annotation_clip=False,
        arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3},
    )
    note.set_in_layout(False)
    return note


def _best_place(
    note: Annotation, own: Position, others: Sequence[Position], taken: Sequence[Bbox], inside: Bbox, scale: float
) -> tuple[float, Position, Bbox]:
    """Distance and offset of the label's middle in points, and the box that it fills there in pixels.

    A place without a line that is nearer to one of the ``others`` than to its ``own`` point, in pixels, counts as
    wholly covered.
    """
    from matplotlib.text import Text

    note.get_window_extent()  # finds the text's place
    at_point = Text.get_window_extent(note)
    best: tuple[float, float, Position, Bbox] | None = None
    for distance in _DISTANCES:
        for angle in _ANGLES:
            across, up = math.cos(math.radians(angle)), math.sin(math.radians(angle))
            x = across * (distance + at_point.width / scale / 2)
            y = up * (distance + at_point.height / scale / 2)
            box = at_point.translated(x * scale, y * scale)
            covered = sum(_common_area(box, other) for other in taken)
            covered += box.width * box.height - _common_area(box, inside)
            if distance <= _FARTHEST_WITHOUT_LINE and _is_nearer_to_others(box, own, others):
                covered += box.width * box.height
            if best is None or covered < best[0]:
                best = (covered, distance, (x, y), box)
    assert best is not None
    return best[1:]


def _is_nearer_to_others(box: Bbox, own: Position, others: Sequence[Position]) -> bool:
    middle = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
    return any(math.dist(middle, other) < math.dist(middle, own) for other in others)


def _common_area(first: Bbox, second: Bbox) -> float:
    width = min(first.x1, second.x1) - max(first.x0, second.x0)
    height = min(first.y1, second.y1) - max(first.y0, second.y0)
    return width * height if width > 0 and height > 0 else 0.0
