"""The pictures to which a configuration gives another first answer than the reference."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.imagenet.result import ChangedAnswer, Comparison, FirstAnswer, ImagenetPart
from evaltools.tasks.shared.contact_sheet import LoadPicture
from evaltools.text import printable

MOST_LISTED: Final = 20
_MOST_DRAWN: Final = 24
_COLUMNS: Final = 4
_PANEL: Final = (240, 180)
_MARGIN: Final = 8
_LINE: Final = 16
_LINES: Final = 4
_COLOURS: Final[Mapping[str, str]] = {"lost": "#c0392b", "gained": "#1e8449", "neither": "#7f8c8d"}
_EFFECTS: Final = tuple(_COLOURS)
_WORDS: Final[Mapping[str, str]] = {"neither": "wrong both ways"}


def worst_first(comparison: Comparison) -> list[ChangedAnswer]:
    """The changes with lost answers first, then gained, then neither; in each group exact ties come last."""
    return sorted(comparison.changed, key=lambda found: (_EFFECTS.index(found.effect), found.tie))


def effect_in_words(found: ChangedAnswer) -> str:
    """What a change did, with a word for exact ties.

    >>> effect_in_words(ChangedAnswer("1.png", "cat", FirstAnswer("cat", 0.5), FirstAnswer("dog", 0.5), "lost", True))
    'lost, a tie'
    """
    effect = _WORDS.get(found.effect, found.effect)
    return f"{effect}, a tie" if found.tie else effect


def answer_in_words(answer: FirstAnswer) -> str:
    """The label and the score, and the class that has the same one.

    >>> answer_in_words(FirstAnswer("cat", 0.5, "dog")), answer_in_words(FirstAnswer("cat", None))
    ('cat 0.50 = dog 0.50', 'cat no number')
    """
    text = f"{printable(answer.label)} {_score(answer)}"
    return f"{text} = {printable(answer.equal)} {_score(answer)}" if answer.equal else text


def _score(answer: FirstAnswer) -> str:
    """A score with two digits for a share, four for a number above 1."""
    if answer.score is None:
        return "no number"
    return f"{answer.score:#.2g}" if abs(answer.score) < 1 else f"{answer.score:.4g}"


def against_the_first(part: ImagenetPart) -> list[Comparison]:
    """The comparisons with the first baseline in which a first answer changed."""
    return [entry for entry in part.comparisons if entry.changed and entry.baseline == part.comparisons[0].baseline]


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
