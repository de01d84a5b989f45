"""What changed between the answers of two configurations, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from evaltools.metrics.proportions import PairedCounts, change_interval
from evaltools.report.content import some_of
from evaltools.result.figure import Change
from evaltools.result.section import (
    Gallery,
    Lines,
    Note,
    Picture,
    Section,
    Tone,
)
from evaltools.tasks.framework.answers import Answers
from evaltools.text import printable

_MOST_CHANGES: Final = 1000
_MOST_SHOWN: Final = 48
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
        return f"{self.kind}, a tie" if self.tie else self.kind

    @property
    def kind(self) -> str:
        """The same without a word for ties."""
        return "wrong both ways" if self.effect == "neither" else self.effect


class Comparison(Struct):
    """How the answers of ``other`` differ from those of ``baseline``, over ``count`` examples that both finished.

    Of Top-1 on, ``lost`` counts the examples of which only the baseline has the right label among its best, ``gained``
    those of which only the other has, and ``corrected`` are p-values in which Holm's method allows for all else that is
    compared with the same baseline. ``same`` examples have the same first class; ``identical`` ones the same best
    classes with bit for bit the same scores. ``ties`` have another first class, but one that has the best score as well
    on one of the sides. ``changed`` are examples with another first class, the first 1000 of them.
    """

    baseline: str
    other: str
    lost: list[int]
    gained: list[int]
    count: int = 0
    same: int = 0
    identical: int = 0
    ties: int = 0
    changed: list[ChangedAnswer] = field(default_factory=list)
    corrected: list[float] = field(default_factory=list)

    @property
    def differing(self) -> int:
        """How many examples have another first class."""
        return self.count - self.same

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


class Named(Struct, frozen=True):
    """What classes and examples are called: class ``i`` ``labels[i]``.

    The right label of the example ``examples[i]`` is ``truths[i]``.
    """

    labels: Sequence[str | None]
    truths: Sequence[str]
    examples: Sequence[str]

    def label(self, number: int) -> str:
        """The label of a class."""
        label = self.labels[number] if 0 <= number < len(self.labels) else None
        return label or f"class {number}"


def compared(pair: tuple[str, str], before: Answers, after: Answers, named: Named) -> Comparison:
    """The answers of a pair of configurations, on the examples that both finished."""
    _, own, others = np.intersect1d(before.examples, after.examples, assume_unique=True, return_indices=True)
    before, after = before.at(own), after.at(others)
    most = min(before.classes.shape[1], after.classes.shape[1])
    rights = [(before.ranks < k, after.ranks < k) for k in range(1, most + 1)]
    are_others = before.classes[:, :1] != after.classes[:, :1]
    places = np.flatnonzero(are_others)
    first, second = before.at(places), after.at(places)
    equal_first, equal_second = _is_best(first, second.classes[:, :1]), _is_best(second, first.classes[:, :1])
    is_identical = (before.classes == after.classes).all(axis=1) & (before.scores == after.scores).all(axis=1)
    return Comparison(
        *pair,
        lost=[int(np.count_nonzero(own & ~other)) for own, other in rights],
        gained=[int(np.count_nonzero(other & ~own)) for own, other in rights],
        count=len(before.examples),
        same=len(before.examples) - places.size,
        identical=int(np.count_nonzero(is_identical)),
        ties=int(np.count_nonzero(equal_first | equal_second)),
        changed=[
            _changed_answer(first, second, place, bool(equal_first[place]), bool(equal_second[place]), named)
            for place in range(min(places.size, _MOST_CHANGES))
        ],
    )


def _is_best(answers: Answers, rivals: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Whether the classes (N, 1) have the best score as well; NaN is not better or worse than anything."""
    found: npt.NDArray[np.bool_] = ((answers.classes == rivals) & (answers.scores == answers.scores[:, :1])).any(axis=1)
    return found


def _changed_answer(
    before: Answers, after: Answers, place: int, is_tie_before: bool, is_tie_after: bool, named: Named
) -> ChangedAnswer:
    number = int(before.examples[place])
    effect: Effect = "lost" if before.ranks[place] == 0 else "gained" if after.ranks[place] == 0 else "neither"
    return ChangedAnswer(
        named.examples[number],
        named.truths[number],
        _first(before, after, place, is_tie_before, named),
        _first(after, before, place, is_tie_after, named),
        effect,
        is_tie_before or is_tie_after,
    )


def _first(answers: Answers, rivals: Answers, place: int, is_tie: bool, named: Named) -> FirstAnswer:
    best = float(answers.best[place])
    equal = named.label(int(rivals.classes[place, 0])) if is_tie else ""
    return FirstAnswer(named.label(int(answers.classes[place, 0])), best if math.isfinite(best) else None, equal)


def sections(comparisons: Sequence[Comparison], folder: str) -> list[Section]:
    """How many answers changed, what was lost and gained, and the pictures of it, which lie in ``folder``."""
    first = [each for each in comparisons if each.baseline == comparisons[0].baseline]
    notes = [Note(each.other, _changed(each)) for each in first if each.differing]
    return [
        Section("Changed answers", [Lines(notes)] if notes else [], "first"),
        Section("What changed", [_gallery(folder, each) for each in first if each.changed], "changes"),
    ]


def changed_in_words(compared: Comparison) -> str:
    """How many first answers are others."""
    return f"{compared.differing} of {compared.count} answers changed"


def _changed(compared: Comparison) -> str:
    """How many of the changed first answers were right before, are right now, or neither, and how many are ties."""
    lost, gained, count = compared.lost[0], compared.gained[0], compared.differing
    text = f"{changed_in_words(compared)}: {lost} lost, {gained} gained"
    text += f", {count - lost - gained} wrong both ways" if count > lost + gained else ""
    ties = f"{compared.ties} {'is an exact tie' if compared.ties == 1 else 'are exact ties'}"
    return f"{text}; {ties}" if compared.ties else text


def _gallery(folder: str, comparison: Comparison) -> Gallery:
    changed = comparison.worst_first
    count = comparison.differing
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
        kind=found.kind,
        classes=[printable(found.truth)],
        score=found.other.score,
        lines=(
            f"right: {found.truth}",
            f"{comparison.baseline}: {found.baseline.in_words}",
            f"{comparison.other}: {found.other.in_words}",
        ),
    )
