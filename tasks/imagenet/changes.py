"""The pictures to which a configuration gives another first answer than the reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evaltools.tasks.imagenet.result import ChangedAnswer, Comparison, FirstAnswer, ImagenetPart
from evaltools.text import printable

MOST_LISTED: Final = 20
_EFFECTS: Final = ("lost", "gained", "neither")
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
