"""Finds label lists that do not fit a model before hours are spent on it.

A few pictures are run; the model's first answers are held against the labels as given and against other readings of the
list. The functions are pure: what the model answered goes in, a diagnosis comes out.
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
_WEAK_SIGNIFICANCE: Final = 1e-3
_MANY_CLASSES: Final = 100
_MANY_LABELS: Final = 10
_WEAK_TOP10: Final = 0.25
"""Share of pictures with the right label among the ten best that even a weak model reaches."""
_EXAMPLES_PER_LABEL: Final = 4
_BACKGROUND: Final = ("background", "dummy")
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
    ordered = _sorted_with_background(labels)
    if ordered != list(labels):
        hits = count_hits(answers, truths, shifted(ordered, class_count, given_offset))
        advice = "The lines are in another order than the model's outputs (permuted); sort them"
        found.append(Reading("with the lines sorted", hits, advice))
    return sorted(found, key=lambda reading: -reading.hits)


def _sorted_with_background(labels: Sequence[str]) -> list[str]:
    """Sorted, a "background" line in front, as ImageNet's WordNet ids are."""
    return sorted(labels, key=lambda label: (label.lower() not in _BACKGROUND, label))


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


def learned_hits(answers: Sequence[int], truths: Sequence[str]) -> list[bool]:
    """Which truths follow from what the *other* probes with the same answer are (leave one out).

    Mostly true where the model tells the classes apart, whatever the label list says; near chance where it does not.

    >>> learned_hits([5, 5, 5, 2], ["cat", "cat", "cat", "dog"])
    [True, True, True, False]
    """
    by_answer: dict[int, Counter[str]] = defaultdict(Counter)
    for answer, truth in zip(answers, truths, strict=True):
        by_answer[answer][truth] += 1
    hits = []
    for answer, truth in zip(answers, truths, strict=True):
        others = by_answer[answer] - Counter([truth])
        hits.append(bool(others) and others.most_common(1)[0][0] == truth)
    return hits


def diagnose(
    answers: Sequence[int],
    truths: Sequence[str],
    labels: Sequence[str],
    class_count: int,
    offset: int,
    near_hits: int | None = None,
) -> Diagnosis | None:
    """Say what is wrong with the label list, or None where it fits as well as any other reading.

    ``answers`` are the classes that the model put first for the probes, ``truths`` their right labels. ``near_hits``
    counts the probes whose right label is among the ten best classes; None: not known.
    """
    class_labels = shifted(labels, class_count, offset)
    given = [class_labels[answer] == truth for answer, truth in zip(answers, truths, strict=True)]
    as_given = sum(given)
    tried = f"of {len(answers)} pictures tried, {as_given} are right as given"
    best = readings(answers, truths, labels, class_count, offset)[0]
    learned = learned_hits(answers, truths)
    if clearly_better(best.hits, as_given, truths) and best.hits * 2 > sum(learned):
        return Diagnosis(f"{tried}, {best.hits} {best.description}", best.advice)
    if _explains_more(learned, given):
        example = _permutation_example(answers, truths, class_labels)
        finding = (
            f"lines are in another order than the model's outputs (permuted): {tried}, "
            f"while {sum(learned)} are right when each output gets the label that it fires on; {example}"
        )
        return Diagnosis(finding, "Take the label list that belongs to this model")
    if near_hits is not None and _answers_are_unrelated(answers, truths, class_count, near_hits):
        finding = (
            f"{tried}, {near_hits} have the right label among the ten best answers, although the model gives "
            f"{len(set(answers))} different answers to pictures of {len(set(truths))} labels; the lines are probably "
            "in another order than the model's outputs (permuted)"
        )
        return Diagnosis(finding, "Take the label list that belongs to this model")
    return None


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


def _explains_more(learned: Sequence[bool], given: Sequence[bool]) -> bool:
    """Whether the learned labels are right where the given ones are wrong, far more often than the other way round.

    A sign test on the pictures that only one of the two gets right, and at least a quarter of all pictures gained.
    """
    gained = sum(new and not old for new, old in zip(learned, given, strict=True))
    lost = sum(old and not new for new, old in zip(learned, given, strict=True))
    return gained - lost >= len(given) / 4 and _binomial_tail(gained, gained + lost, 0.5) < _WEAK_SIGNIFICANCE


def _answers_are_unrelated(answers: Sequence[int], truths: Sequence[str], class_count: int, near_hits: int) -> bool:
    """Many different answers to pictures of many labels, and far fewer near hits than even a weak model has."""
    many = class_count >= _MANY_CLASSES and len(set(truths)) >= _MANY_LABELS
    diverse = len(set(answers)) * 2 >= len(set(truths))
    at_most = 1 - _binomial_tail(near_hits + 1, len(answers), _WEAK_TOP10)
    return many and diverse and at_most < _WEAK_SIGNIFICANCE


def _permutation_example(answers: Sequence[int], truths: Sequence[str], class_labels: Sequence[str | None]) -> str:
    pairs = Counter(
        (answer, truth) for answer, truth in zip(answers, truths, strict=True) if class_labels[answer] != truth
    )
    (answer, truth), count = pairs.most_common(1)[0]
    return f"output {answer}, labelled {class_labels[answer]!r}, came first for {count} pictures of {truth!r}"
