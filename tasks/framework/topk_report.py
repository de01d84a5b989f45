"""What changed between the answers of two configurations, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct, field

from evaltools.metrics.proportions import PairedCounts, change_interval, mcnemar_p
from evaltools.metrics.words import change
from evaltools.report.content import some_of
from evaltools.report.words.numbers import p_value
from evaltools.result.figure import Change
from evaltools.result.section import (
    Block,
    Cell,
    Gallery,
    Lines,
    Note,
    Number,
    Picture,
    Section,
    Table,
    Tone,
    number_cell,
)
from evaltools.tasks.framework.answers import Answer
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.text import printable

_MOST_CHANGES: Final = 1000
_MOST_SHOWN: Final = 24
_SHOWN_K: Final = (1, 5)
_TONES: Final[dict[str, Tone]] = {"lost": "bad", "gained": "good", "neither": ""}
Effect = Literal["lost", "gained", "neither"]
"""Of another first class: the baseline's was right, the other's is right, or neither is."""
_WORST_FIRST: Final = ("lost", "gained", "neither")


class FirstAnswer(Struct, frozen=True):
    """The label of the class that came first, and its score (dequantised), None for what is not a number.

    ``equal`` is the label of the other side's first class where that has the same best score here, else empty.
    """

    label: str
    score: float | None
    equal: str = ""

    @property
    def in_words(self) -> str:
        """The label and the score, and the class that has the same one.

        >>> FirstAnswer("cat", 0.5, "dog").in_words, FirstAnswer("cat", None).in_words
        ('cat 0.50 = dog 0.50', 'cat no number')
        """
        score = "no number"
        if self.score is not None:
            score = f"{self.score:#.2g}" if abs(self.score) < 1 else f"{self.score:.4g}"
        text = f"{printable(self.label)} {score}"
        return f"{text} = {printable(self.equal)} {score}" if self.equal else text


class ChangedAnswer(Struct, frozen=True):
    """A picture of which the two configurations say something else; ``truth`` is its right label.

    ``tie``: the other's first class has the best score of the baseline as well, or the other way round.
    """

    example: str
    truth: str
    baseline: FirstAnswer
    other: FirstAnswer
    effect: Effect
    tie: bool

    @property
    def effect_in_words(self) -> str:
        """What the change did, with a word for exact ties.

        >>> cat, dog = FirstAnswer("cat", 0.5), FirstAnswer("dog", 0.5)
        >>> ChangedAnswer("1.png", "cat", cat, dog, "lost", True).effect_in_words
        'lost, a tie'
        """
        effect = "wrong both ways" if self.effect == "neither" else self.effect
        return f"{effect}, a tie" if self.tie else effect


class Comparison(Struct):
    """How the answers of ``other`` differ from those of ``baseline``, over ``count`` examples that both finished.

    Class ``i`` is called ``labels[i]``, and the right label of the example ``names[i]`` is ``truths[i]``. Of Top-1 on,
    ``lost`` counts the examples of which only the baseline has the right label among its best, ``gained`` those of
    which only the other has, and ``corrected`` are p-values in which Holm's method allows for all else that is compared
    with the same baseline. ``same`` examples have the same first class; ``identical`` ones the same best classes with
    bit for bit the same scores. ``ties`` have another first class, but one that has the best score as well on one of
    the sides. ``changed`` are examples with another first class, the first 1000 of them.
    """

    baseline: str
    other: str
    lost: list[int]
    gained: list[int]
    labels: Sequence[str | None] = ()
    truths: Sequence[str] = ()
    names: Sequence[str] = ()
    count: int = 0
    same: int = 0
    identical: int = 0
    ties: int = 0
    changed: list[ChangedAnswer] = field(default_factory=list)
    corrected: list[float] = field(default_factory=list)

    def add(self, example: int, of_baseline: ObservedScores[Any], of_other: ObservedScores[Any]) -> None:
        """Add both answers to one example."""
        baseline, other = answer_in(of_baseline), answer_in(of_other)
        self.count += 1
        most = len(self.lost)
        before, after = (most if each.rank is None else min(each.rank, most) for each in (baseline, other))
        flipped = self.lost if before < after else self.gained
        for rank in range(min(before, after), max(before, after)):
            flipped[rank] += 1
        self.identical += baseline.classes == other.classes and baseline.scores == other.scores
        if baseline.top1 == other.top1:
            self.same += 1
            return
        first = self._first(baseline, other.top1)
        second = self._first(other, baseline.top1)
        tie = bool(first.equal or second.equal)
        self.ties += tie
        if len(self.changed) < _MOST_CHANGES:
            effect: Effect = "lost" if baseline.rank == 0 else "gained" if other.rank == 0 else "neither"
            self.changed.append(ChangedAnswer(self.names[example], self.truths[example], first, second, effect, tie))

    def _first(self, answer: Answer, rival: int) -> FirstAnswer:
        equal = self._label(rival) if is_best(answer, rival) else ""
        return FirstAnswer(self._label(answer.top1), answer.best if math.isfinite(answer.best) else None, equal)

    def _label(self, number: int) -> str:
        label = self.labels[number] if 0 <= number < len(self.labels) else None
        return label or f"class {number}"

    @property
    def flips(self) -> list[PairedCounts]:
        """The examples that changed sides in Top-1, Top-2 and so on; none without examples."""
        pairs = zip(self.lost, self.gained, strict=True)
        return [PairedCounts(self.count, *pair) for pair in pairs] if self.count else []

    @property
    def changes(self) -> list[Change]:
        """The change of Top-1, Top-2 and so on."""
        return [
            Change(self.baseline, counts.change, change_interval(counts), self.count, counts.lost, counts.gained,
                   p_value=p_value)
            for counts, p_value in zip(self.flips, self.corrected, strict=True)
        ]  # fmt: skip

    @property
    def worst_first(self) -> list[ChangedAnswer]:
        """The changes with lost answers first, then gained, then neither; in each group exact ties come last."""
        return sorted(self.changed, key=lambda found: (_WORST_FIRST.index(found.effect), found.tie))


def is_best(answer: Answer, number: int) -> bool:
    """Whether no class has a better score than the one of this number; NaN is not better or worse than anything."""
    scores = dict(zip(answer.classes, answer.scores, strict=True))
    return scores.get(number) == answer.scores[0]


def answer_in(observation: ObservedScores[Any]) -> Answer:
    """The answer in what was observed of one example."""
    return Answer.of(observation.whole)


def sections(comparisons: Sequence[Comparison], folder: str) -> list[Section]:
    """How many answers changed, what was lost and gained, and the pictures of it, which lie in ``folder``."""
    first = [each for each in comparisons if each.baseline == comparisons[0].baseline]
    notes = [Note(each.other, _changed(each)) for each in first if each.same < each.count]
    paired: list[Block] = [_paired(comparisons)] if comparisons else []
    return [
        Section("Changed answers", [Lines(notes)] if notes else [], "first"),
        Section("Lost and gained", paired, "accuracy"),
        Section("What changed", [_gallery(folder, each) for each in first if each.changed], "changes"),
    ]


def _changed(compared: Comparison) -> str:
    """How many of the changed first answers were right before, are right now, or neither, and how many are ties."""
    lost, gained, count = compared.lost[0], compared.gained[0], compared.count - compared.same
    text = f"{count} of {compared.count} answers changed: {lost} lost, {gained} gained"
    text += f", {count - lost - gained} wrong both ways" if count > lost + gained else ""
    ties = f"{compared.ties} {'is an exact tie' if compared.ties == 1 else 'are exact ties'}"
    return f"{text}; {ties}" if compared.ties else text


def _paired(comparisons: Sequence[Comparison]) -> Table:
    rows: list[Sequence[Cell]] = []
    for compared in comparisons:
        share = compared.same / compared.count if compared.count else None
        for k, (counts, found) in enumerate(zip(compared.flips, compared.changes, strict=True), 1):
            if k not in _SHOWN_K or found.interval is None:
                continue
            p = mcnemar_p(counts)
            rows.append(
                [
                    f"{compared.other} against {compared.baseline}",
                    f"top-{k}",
                    number_cell(counts.lost),
                    number_cell(counts.gained),
                    Number(change(found.value, found.interval.low, found.interval.high, True), found.value),
                    Number(p_value(p), p),
                    number_cell(compared.ties),
                    number_cell(compared.identical),
                    "-" if share is None else Number(f"{100 * share:.4g} %", share),
                ]
            )
    columns = (
        "configuration", "figure", "lost", "gained", "change [95 %]", "McNemar", "ties", "identical",
        "same first answer",
    )  # fmt: skip
    below = "ties: another first answer, but one that has the best score as well on one of the sides"
    return Table("Pictures that changed sides", columns, rows, below, 2)


def _gallery(folder: str, comparison: Comparison) -> Gallery:
    changed = comparison.worst_first
    count = comparison.count - comparison.same
    shown = [_picture(folder, comparison, found) for found in changed[:_MOST_SHOWN]]
    below = some_of(len(shown), count, "pictures")
    if len(changed) < count:
        below = f"{len(shown)} of {count} pictures shown, the first {len(changed)} in the JSON result"
    return Gallery(f"{count} pictures with another first answer: {comparison.other}", shown, below)


def _picture(folder: str, comparison: Comparison, found: ChangedAnswer) -> Picture:
    return Picture(
        folder=folder,
        name=found.example,
        effect=found.effect_in_words,
        tone=_TONES[found.effect],
        lines=(
            f"right: {found.truth}",
            f"{comparison.baseline}: {found.baseline.in_words}",
            f"{comparison.other}: {found.other.in_words}",
        ),
    )
