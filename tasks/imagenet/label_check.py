"""Finds label lists that do not fit a model before hours are spent on it.

A few pictures are run; the model's first answers are compared with the labels as given, and with a line more or less in
front. The functions are pure: what the model answered goes in, a diagnosis comes out.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import Struct

_MOST_PROBES: Final = 64
_FEWEST_PROBES: Final = 20
_SIGNIFICANCE: Final = 1e-4
_FEWEST_TO_KNOW: Final = 30
_LARGEST_SHARE: Final = 0.5
_ONE_SIDED_95: Final = 1.645
_EXAMPLES_PER_LABEL: Final = 4
_Item = TypeVar("_Item")


class Reading(Struct, frozen=True):
    """One way to read the label list, and how many probes it gets right."""

    description: str
    hits: int
    advice: str


class Diagnosis(Struct, frozen=True):
    """What does not fit the model: what was found, in a sentence, and what to do about it."""

    finding: str
    advice: str
    subject: str = "the labels"


def probe_positions(truths: Sequence[str]) -> list[int]:
    """Positions of the examples to try: few, spread over the whole list, several per label where possible.

    >>> probe_positions(["a", "b"] * 30)[:4]
    [0, 1, 2, 3]
    """
    wanted = max(_FEWEST_PROBES, min(_MOST_PROBES, len(truths) // 2))
    by_label: dict[str, list[int]] = defaultdict(list)
    for position, truth in enumerate(truths):
        by_label[truth].append(position)
    repeated = [positions[:_EXAMPLES_PER_LABEL] for positions in by_label.values() if len(positions) > 1]
    groups = _spread(repeated, wanted // _EXAMPLES_PER_LABEL)
    chosen = {position for group in groups for position in group}
    rest = [position for position in range(len(truths)) if position not in chosen]
    return sorted(chosen.union(_spread(rest, wanted - len(chosen))))


def _spread(items: Sequence[_Item], count: int) -> list[_Item]:
    """``count`` items at even distances."""
    if count <= 0:
        return []
    if len(items) <= count:
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]


def shifted(labels: Sequence[str], class_count: int, offset: int) -> list[str | None]:
    """Label per class where line i (0-based) belongs to class ``i + offset``; None for a class without a line.

    >>> shifted(["cat", "dog"], 3, 1)
    [None, 'cat', 'dog']
    """
    return [labels[index - offset] if 0 <= index - offset < len(labels) else None for index in range(class_count)]


def count_hits(answers: Sequence[int], truths: Sequence[str], class_labels: Sequence[str | None]) -> int:
    """How many first answers carry the right label."""
    return sum(class_labels[answer] == truth for answer, truth in zip(answers, truths, strict=True))


def readings(
    answers: Sequence[int], truths: Sequence[str], labels: Sequence[str], class_count: int, given_offset: int
) -> list[Reading]:
    """Other ways to read the list than as given, best first."""
    found = []
    for offset in (given_offset + 1, given_offset - 1):
        hits = count_hits(answers, truths, shifted(labels, class_count, offset))
        found.append(Reading(offset_in_words(offset), hits, offset_advice(offset)))
    return sorted(found, key=lambda reading: -reading.hits)


def offset_in_words(offset: int) -> str:
    """How the list is read with an offset."""
    if offset == 0:
        return "as the list stands"
    lines = "one line" if abs(offset) == 1 else f"{abs(offset)} lines"
    return f"with {lines} put in front" if offset > 0 else f"without the first {lines}"


def offset_advice(offset: int) -> str:
    """What to do to have the list read with that offset."""
    if offset == 1:
        return 'Add a first line "background", or pass --label_offset=1'
    if offset == -1:
        return "Delete the first line, or pass --label_offset=-1"
    return f"Pass --label_offset={offset}"


def diagnose(
    answers: Sequence[int], truths: Sequence[str], labels: Sequence[str], class_count: int, offset: int
) -> Diagnosis | None:
    """Say what is wrong with the label list, or None where it fits as well as with a line more or less in front.

    ``answers`` are the classes that the model put first for the probes, ``truths`` their right labels.
    """
    as_given = count_hits(answers, truths, shifted(labels, class_count, offset))
    best = readings(answers, truths, labels, class_count, offset)[0]
    if not clearly_better(best.hits, as_given, truths):
        return None
    finding = f"of {len(answers)} pictures tried, {as_given} are right as given, {best.hits} {best.description}"
    return Diagnosis(finding, best.advice)


def clearly_better(hits: int, as_given: int, truths: Sequence[str]) -> bool:
    """Whether a reading explains so much more than the list as given that chance cannot be the reason.

    Answers that know nothing of the pictures are right at most as often as the most frequent label occurs; so the hits
    are held against a binomial distribution with that share.
    """
    if not truths or hits <= 3 * as_given:
        return False
    chance = max(Counter(truths).values()) / len(truths)
    return _binomial_tail(hits, len(truths), chance) < _SIGNIFICANCE


def knows_nothing(hits: int, answers: int, truths: Sequence[str]) -> bool:
    """Whether so many answers are right as where they know nothing of the pictures.

    These are right at most as often as the most frequent label occurs: above the one-sided bound of 95 % of that
    (normal approximation) a model knows something. False for fewer than 30 answers, and where one label is that of half
    of the pictures.

    >>> truths = ["cat", "dog", "owl", "ant"] * 25
    >>> knows_nothing(31, 100, truths), knows_nothing(33, 100, truths)
    (True, False)
    """
    share = max(Counter(truths).values()) / len(truths)
    if answers < _FEWEST_TO_KNOW or share >= _LARGEST_SHARE:
        return False
    return hits <= answers * share + _ONE_SIDED_95 * math.sqrt(answers * share * (1 - share))


def _binomial_tail(least: int, trials: int, probability: float) -> float:
    """P(X >= least) for X ~ Binomial(trials, probability)."""
    return sum(
        math.comb(trials, count) * probability**count * (1 - probability) ** (trials - count)
        for count in range(least, trials + 1)
    )
