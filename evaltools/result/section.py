"""What a report shows below its first screen: blocks under a heading.

The sections that all tasks have are in ``evaltools/report/page/sections``; a task adds its own by
``TaskReport.sections``, and says by ``place`` beside which of those they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from msgspec import Struct

from evaltools.result.evaluation import EvaluationResult
from evaltools.result.small_pictures import Panel

Tone = Literal["", "good", "bad", "open"]
"""The colour of a statement: what a verdict says, never a judgement of the page's own."""
Place = Literal["accuracy", "numerics", "changes", "task"]


class Number(Struct, frozen=True):
    """A figure in a cell.

    ``text`` is shown, ``value`` is what is sorted by, and ``path`` leads to it in the JSON result, as in
    ``configurations/1/figures/top1`` (:func:`path_to`); empty for one that is not there as it is.
    """

    text: str
    value: float | None
    path: str = ""


class Word(Struct, frozen=True):
    """A word in a cell, in the colour of what it says."""

    text: str
    tone: Tone


Cell = str | Number | Word


def number_cell(value: float | None, show: Callable[[Any], str] = str, path: str = "", absent: str = "-") -> Cell:
    """A figure as ``show`` puts it; ``absent`` where there is none.

    >>> number_cell(1.25, "{:.1f} ms".format), number_cell(None)
    (Number(text='1.2 ms', value=1.25, path=''), '-')
    """
    return absent if value is None else Number(show(value), value, path)


def path_to(*steps: str | int) -> str:
    """The place of a figure in the JSON result: a JSON Pointer (RFC 6901) without its first slash.

    >>> path_to("configurations", 1, "figures", "mAP 50/95")
    'configurations/1/figures/mAP 50~195'
    """
    return "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in steps)


class Table(Struct, frozen=True):
    """``caption`` says what it is; ``below`` is a line under it, empty for none."""

    kind: ClassVar = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    below: str = ""


class Chart(Struct, frozen=True):
    """A Vega-Lite specification; ``told`` says in a sentence, with the figures, what there is to see."""

    kind: ClassVar = "chart"
    caption: str
    spec: Mapping[str, Any]
    told: str


class Frame(Struct, frozen=True):
    """A box in a picture: top, left, bottom, right in shares of its height and width."""

    box: tuple[float, float, float, float]
    label: str
    tone: Tone = ""


class Picture(Struct, frozen=True):
    """A picture of which configurations say something else.

    ``folder`` and ``name`` say which file, ``effect`` in a word what changed, ``lines`` who says what of it. ``panels``
    are small pictures that stand beside it, or over it.
    """

    folder: str
    name: str
    effect: str
    tone: Tone
    lines: Sequence[str]
    frames: Sequence[Frame] = ()
    panels: Sequence[Panel] = ()


class Gallery(Struct, frozen=True):
    """Pictures, the most important first; ``below`` says how many are left out."""

    kind: ClassVar = "gallery"
    caption: str
    pictures: Sequence[Picture]
    below: str = ""


class Lines(Struct, frozen=True):
    """Sentences, each an item of a list."""

    kind: ClassVar = "lines"
    lines: Sequence[str]


class Linked(Struct, frozen=True):
    """A file that is not part of the page: ``name`` as it was given, ``about`` says what it is and what opens it."""

    name: str
    about: str


class Files(Struct, frozen=True):
    """Files to which the page leads, each with its size, by links that hold while they keep their places."""

    kind: ClassVar = "files"
    caption: str
    files: Sequence[Linked]


Block = Table | Chart | Gallery | Lines | Files


class Section(Struct, frozen=True):
    """A heading with blocks below it; ``lead`` is a sentence before them that says how to read them.

    ``source`` names the JSON result that the paths of its figures lead to, where it is not that of the evaluation.
    """

    title: str
    blocks: Sequence[Block]
    place: Place = "task"
    lead: str = ""
    source: str = ""


def no_sections(_result: EvaluationResult) -> list[Section]:
    """For tasks whose figures say all."""
    return []
