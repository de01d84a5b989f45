"""What a report shows: blocks under a heading, made once, for terminals, pages, Markdown and CSV.

A result has those that its rows do not say; ``evaltools/report/page`` makes the others of the rows. By ``place`` a
section says beside which of those it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from evaltools.metrics.interval import Interval

Tone = Literal["", "good", "near", "open", "bad", "missing"]
"""The colour of a statement: what a verdict says, never a judgement of the page's own.

``good`` is the same, ``near`` within a precision, ``open`` not decided, ``bad`` worse, ``missing`` not measured.
"""
Place = Literal["first", "glance", "accuracy", "numerics", "changes", "task", "speed", "run"]
"""Where a section stands.

``first`` is the first screen; ``glance`` too on a page, and a section of its own elsewhere; what is of ``speed`` and
has no title stands under the times of all rows; ``run`` is about what ran and where, which a page folds.
"""


class Panel(Struct, frozen=True):
    """A small picture, ``png`` the content of its file; ``name`` says whose it is.

    ``is_over``: it has transparent places, and is laid over the picture of the example.
    """

    name: str
    png: bytes
    is_over: bool = False


class Drawing(Struct, frozen=True):
    """What changed for an example, ``changed`` by how much, 0 or above: the most come first.

    ``text`` says it in a few words, ``picture`` names the file of the example, and ``panels`` stand side by side.
    """

    changed: float
    text: str
    picture: str
    panels: Sequence[Panel]


class Number(Struct, frozen=True, tag="number"):
    """A figure in a cell.

    ``text`` is shown, ``value`` is what is sorted by, and ``path`` leads to it in the JSON result, as in
    ``rows/1/figures/top1`` (:func:`path_to`); empty for one that is not there as it is.
    """

    text: str
    value: float | None
    path: str = ""


class Word(Struct, frozen=True, tag="word"):
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

    >>> path_to("rows", 1, "figures", "mAP 50/95")
    'rows/1/figures/mAP 50~195'
    """
    return "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def text_of(cell: Cell) -> str:
    """What is shown of a cell."""
    return cell if isinstance(cell, str) else cell.text


_OF_ALL: Final = "All rows: "
_MOST_AT_A_GLANCE: Final = 8
"""Rows."""


class Table(Struct, frozen=True, tag_field="kind", tag="table"):
    """``caption`` says what it is; ``below`` is a line under it, empty for none. Without ``columns``: names and values.

    ``names`` is how many of the first columns are names, which take several lines before another column is left out
    for them. Rows ascend by the column ``sorted_by``, if it is stated. ``ranks`` says how important each column is: of
    those that do not fit a terminal, the one of the highest rank is left out first, none of rank 0. Empty: names are,
    and of the others those to the left. ``is_matrix``: all columns are of one kind, so that no word speaks for a row.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    below: str = ""
    names: int = 1
    ranks: Sequence[int] = ()
    sorted_by: str = ""
    is_matrix: bool = False

    def __post_init__(self) -> None:
        width = len(self.columns) or max(map(len, self.rows), default=0)
        wrong = next((len(row) for row in self.rows if len(row) != width), width)
        if wrong != width or len(self.ranks) not in (0, len(self.columns)):
            raise ValueError(f"a table of {width} columns has a row of {wrong} and {len(self.ranks)} ranks")

    @property
    def compact(self) -> Table:
        """The table without columns in which no cell says anything.

        >>> Table("", ("a", "b", "c"), [("1", "-", "2"), ("3", "", "")], ranks=(0, 1, 2)).compact.ranks
        [0, 2]
        """
        if not self.columns or not self.rows:
            return self
        kept = [
            place
            for place in range(len(self.columns))
            if any(text_of(row[place]) not in ("", "-") for row in self.rows)
        ]
        return self.of_columns(kept)

    @property
    def is_long(self) -> bool:
        """Whether it has more rows than a screen has room for beside something else."""
        return len(self.rows) > _MOST_AT_A_GLANCE

    def with_facts(self, texts: Mapping[str, str]) -> Table:
        """Without those of these columns that say the same in each row: a text below says it once.

        >>> Table("", ("a", "MB"), [("1", "4"), ("2", "4")]).with_facts({"MB": "{} MB"}).below
        'All rows: 4 MB.'
        """
        same = [
            place
            for place, column in enumerate(self.columns)
            if column in texts and len({text_of(row[place]) for row in self.rows}) == 1
        ]
        facts = [texts[self.columns[place]].format(text_of(self.rows[0][place])) for place in same]
        others = self.of_columns([place for place in range(len(self.columns)) if place not in same])
        before, known = self.below.partition(_OF_ALL)[::2]
        every = [*([known.removesuffix(".")] if known else []), *facts]
        text = f"{_OF_ALL}{'; '.join(every)}." if every else ""
        return replace(others, below=" ".join(filter(None, (before.strip(), text))))

    def of_columns(self, places: Sequence[int]) -> Table:
        """The table with only the columns at these places."""
        return replace(
            self,
            columns=[self.columns[place] for place in places],
            rows=[[row[place] for place in places] for row in self.rows],
            names=sum(place < self.names for place in places),
            ranks=[self.ranks[place] for place in places] if self.ranks else (),
        )


class Axis(Struct, frozen=True, omit_defaults=True):
    """Its ``title``, and how numbers lie on it: evenly, or as logarithms.

    Where one stands for "no change", or for a limit, a line is drawn ``at`` it, with a band of ``margin`` to its sides.
    """

    title: str = ""
    scale: Literal["", "log", "symlog"] = ""
    at: float | None = None
    margin: float = 0.0


class Mark(Struct, frozen=True, omit_defaults=True):
    """One thing that a chart shows, by numbers, or by names in the order in which they come.

    A number that is null is beyond all others, as an error that is infinite. ``of`` is what its colour and the legend
    tell apart, and ``shape`` what its shape does; ``tone`` is the colour of a statement, ``missing`` grey. The
    intervals are 95 %; a line leads through those that are ``joined``, and ``beside``: others are compared with it.
    """

    x: float | str | None
    y: float | str | None
    of: str = ""
    tone: Tone = ""
    x_interval: Interval | None = None
    y_interval: Interval | None = None
    shape: str = ""
    size: float | None = None
    joined: bool = False
    beside: bool = False


class Chart(Struct, frozen=True, tag_field="kind", tag="chart"):
    """Marks on two axes; ``text`` says in a sentence what there is to see, ``lines`` the figures, the worst first.

    ``names`` are what colours are for, in this order, so that a configuration has the same one in all charts; empty
    for those that marks are of, as they come. ``bars`` with the same name follow each other in one, ``shares`` too, as
    parts of their sum. ``strip`` has only one axis.
    """

    kind: ClassVar[str] = "chart"
    caption: str
    form: Literal["points", "lines", "bars", "shares", "strip"]
    marks: Sequence[Mark]
    text: str
    x: Axis = Axis()
    y: Axis = Axis()
    lines: Sequence[str] = ()
    names: Sequence[str] = ()


class Frame(Struct, frozen=True):
    """A box in a picture: top, left, bottom, right in shares of its height and width."""

    box: tuple[float, float, float, float]
    label: str
    tone: Tone = ""


class Picture(Struct, frozen=True):
    """A picture of which configurations say something else.

    ``folder`` and ``name`` say which file, ``effect`` in a word what changed, ``lines`` who says what of it. ``panels``
    are small pictures that stand beside it, or over it. Galleries are filtered by ``kind``, what sort of change it is,
    and by ``classes``, and sorted by ``score``, the higher the surer.
    """

    folder: str
    name: str
    effect: str
    tone: Tone
    lines: Sequence[str]
    frames: Sequence[Frame] = ()
    panels: Sequence[Panel] = ()
    kind: str = ""
    classes: Sequence[str] = ()
    score: float | None = None


class Gallery(Struct, frozen=True, tag_field="kind", tag="gallery"):
    """Pictures, the most important first; ``below`` says how many are left out."""

    kind: ClassVar[str] = "gallery"
    caption: str
    pictures: Sequence[Picture]
    below: str = ""


class Sentence(Struct, frozen=True, tag_field="kind", tag="sentence"):
    """The answer to the question that was asked, in the colour of what it says."""

    kind: ClassVar[str] = "sentence"
    text: str
    tone: Tone = ""


class Note(Struct, frozen=True):
    """A remark on ``of``: a configuration, or what sort of remark it is, such as ``next`` or ``warning``.

    ``command`` is what is to be typed, of which the text says what it brings; empty for none.
    """

    of: str
    text: str
    tone: Tone = ""
    command: str = ""

    @property
    def line(self) -> str:
        """The command with what it brings, or the text alone.

        >>> Note("next", "says what runs here", command="evaltools doctor").line
        'evaltools doctor says what runs here'
        """
        return f"{self.command} {self.text}" if self.command else self.text


class Lines(Struct, frozen=True, tag_field="kind", tag="lines"):
    """Sentences and remarks, each an item of a list."""

    kind: ClassVar[str] = "lines"
    lines: Sequence[str | Note]


class Linked(Struct, frozen=True):
    """A file that is not part of the page: ``name`` as it was given, ``about`` says what it is and what opens it."""

    name: str
    about: str


class Files(Struct, frozen=True, tag_field="kind", tag="files"):
    """Files to which the page leads, each with its size, by links that hold while they keep their places."""

    kind: ClassVar[str] = "files"
    caption: str
    files: Sequence[Linked]


Block = Sentence | Table | Chart | Gallery | Lines | Files


class Section(Struct, frozen=True):
    """A heading with blocks below it; ``intro`` is a sentence before them that says how to read them.

    ``source`` names the JSON result that the paths of its figures lead to, where it is not that of the evaluation.
    ``is_brief``: a terminal shows it without ``--verbose``, and Markdown has it.
    """

    title: str
    blocks: Sequence[Block]
    place: Place = "task"
    intro: str = ""
    source: str = ""
    is_brief: bool = False
