"""The pictures to which a configuration gives another first answer, drawn side by side."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.imagenet.changes import against_the_first, answer_in_words, effect_in_words, worst_first
from evaltools.tasks.imagenet.result import ChangedAnswer, Comparison
from evaltools.tasks.shared.contact_sheet import LoadPicture
from evaltools.text import printable

_MOST_DRAWN: Final = 24
_COLUMNS: Final = 4
_PANEL: Final = (240, 180)
_MARGIN: Final = 8
_LINE: Final = 16
_LINES: Final = 4
_COLOURS: Final[Mapping[str, str]] = {"lost": "#c0392b", "gained": "#1e8449", "neither": "#7f8c8d"}


def draw_changes(result: EvaluationResult, load: LoadPicture) -> bytes | None:
    """A PNG with a panel for each picture, up to 24 per configuration; None where no first answer changed."""
    panels = [
        (comparison, found)
        for comparison in against_the_first(result.part)
        for found in worst_first(comparison)[:_MOST_DRAWN]
    ]
    if not panels:
        return None
    columns, rows = min(_COLUMNS, len(panels)), -(-len(panels) // _COLUMNS)
    width, height = _PANEL[0] + _MARGIN, _PANEL[1] + _LINES * _LINE + _MARGIN
    canvas = Image.new("RGB", (columns * width + _MARGIN, rows * height + _MARGIN), "white")
    for number, (comparison, found) in enumerate(panels):
        row, column = divmod(number, _COLUMNS)
        place = (_MARGIN + column * width, _MARGIN + row * height)
        canvas.paste(_panel(comparison, found, load), place)
    buffer = io.BytesIO()
    canvas.save(buffer, "PNG")
    return buffer.getvalue()


def _panel(comparison: Comparison, found: ChangedAnswer, load: LoadPicture) -> Image.Image:
    """The picture above its name, the effect with the right label, and both answers, whose ends may be cut off."""
    panel = Image.new("RGB", (_PANEL[0], _PANEL[1] + _LINES * _LINE), "white")
    picture = Image.fromarray(load(found.example))
    picture.thumbnail(_PANEL)
    panel.paste(picture, (0, 0))
    draw, font = ImageDraw.Draw(panel), ImageFont.load_default(12)
    lines = (
        (printable(found.example), "black"),
        (f"{effect_in_words(found)}; right: {printable(found.truth)}", _COLOURS[found.effect]),
        *(
            (f"{printable(side)}: {answer_in_words(answer)}", "black")
            for side, answer in ((comparison.baseline, found.baseline), (comparison.other, found.other))
        ),
    )
    for number, (text, colour) in enumerate(lines):
        draw.text((0, _PANEL[1] + number * _LINE), text, colour, font)
    return panel
