"""Finds label lists and input values that do not fit a model before hours are spent on them.

A few pictures are run; the model's first answers are compared with the labels as given, and with a line more or less in
front. What the model answered goes into pure functions, a diagnosis comes out.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from evaltools.errors import DataError
from evaltools.metrics.classification import best_classes
from evaltools.metrics.proportions import PairedCounts, mcnemar_p
from evaltools.preprocess import NORMALIZATION_NAMES
from evaltools.tasks.framework.definition import Trial
from evaltools.tasks.framework.steps import Prepare

_MOST_PROBES: Final = 64
_FEWEST_PROBES: Final = 20
_SIGNIFICANCE: Final = 1e-4
_EXAMPLES_PER_LABEL: Final = 4
_MOST_COMPARED: Final = 256
"""Pictures by which two orders of channels are compared."""
_ONE_SIDED_SIGNIFICANCE: Final = 0.05
_LOW_ACCURACY_DIVISOR: Final = 5
"""Other input values are tried where at most one picture in five is right."""
_PUT_IN_ORDER: Final = "Put the lines in the order in which the model was trained"
_Item = TypeVar("_Item")


class Diagnosis(Struct, frozen=True):
    """What does not fit the model: what was found, in a sentence, and what to do about it."""

    finding: str
    advice: str
    subject: str = "the labels"


def probe_positions(truths: Sequence[str], count: int | None = None) -> list[int]:
    """Positions of the examples to try: few, spread over the whole list, several per label where possible.

    >>> probe_positions(["a", "b"] * 30)[:4]
    [0, 1, 2, 3]
    """
    wanted = count or max(_FEWEST_PROBES, min(_MOST_PROBES, len(truths) // 2))
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
    """Say what is wrong with the label list: a line more or less in front, or lines in another order; None if nothing.

    ``answers`` are the classes that the model put first for the probes, ``truths`` their right labels.
    """
    as_given = count_hits(answers, truths, shifted(labels, class_count, offset))
    readings = [
        (count_hits(answers, truths, shifted(labels, class_count, each)), offset_in_words(each), offset_advice(each))
        for each in (offset + 1, offset - 1)
    ]
    for name, lines in other_orders(labels).items():
        hits = count_hits(answers, truths, shifted(lines, class_count, offset))
        readings.append((hits, f"with the lines {name}", f"{_PUT_IN_ORDER}: {name}"))
    hits, name, advice = max(readings, key=lambda reading: reading[0])
    matched = hits_by_the_others(answers, truths)
    finding = f"of {len(answers)} pictures tried, {as_given} are right as given, "
    if matched > 2 * hits and 2 * matched >= len(answers) and clearly_better(matched, as_given, truths):
        pairs = Counter(zip(answers, truths, strict=True)).most_common(3)
        shown = ", ".join(f"class {answer} is {truth!r} in {count}" for (answer, truth), count in pairs)
        return Diagnosis(
            f"{finding}but {matched} where each class has the label that it mostly meets ({shown}): the lines stand in "
            "another order than the classes",
            f"{_PUT_IN_ORDER}; folders are often sorted as text: 0, 1, 10, 2",
        )
    return Diagnosis(f"{finding}{hits} {name}", advice) if clearly_better(hits, as_given, truths) else None


def other_orders(labels: Sequence[str]) -> dict[str, list[str]]:
    """The lines in the orders that tools and people give them, without those that change nothing.

    >>> other_orders(["0", "1", "10", "2"])
    {'in reverse': ['2', '10', '1', '0'], 'sorted as numbers': ['0', '1', '2', '10']}
    """
    by_text = sorted(range(len(labels)), key=str)
    back = sorted(range(len(labels)), key=by_text.__getitem__)
    orders = {
        "in reverse": [*reversed(labels)],
        "sorted as text": sorted(labels),
        "sorted as numbers": sorted(labels, key=_as_numbers),
        "sorted by their numbers as text (0, 1, 10, 11, 2)": [labels[place] for place in by_text],
        "sorted back from the order of their numbers as text": [labels[place] for place in back],
    }
    different: dict[str, list[str]] = {}
    for name, lines in orders.items():
        if lines != [*labels] and lines not in different.values():
            different[name] = lines
    return different


def _as_numbers(label: str) -> list[tuple[int, str]]:
    """A key by which ``class 2`` comes before ``class 10``."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split("([0-9]+)", label)]


def hits_by_the_others(answers: Sequence[int], truths: Sequence[str]) -> int:
    """How many answers carry the label which that class mostly has in the other pictures.

    So many would be right with the lines in the best order; a class that is answered only once counts for nothing.

    >>> hits_by_the_others([7, 7, 7, 3], ["a", "a", "b", "c"])
    2
    """
    hits = 0
    counts = Counter(zip(answers, truths, strict=True))
    for answer, truth in zip(answers, truths, strict=True):
        others = {label: count - (label == truth) for (given, label), count in counts.items() if given == answer}
        hits += others[truth] > 0 and others[truth] == max(others.values())
    return hits


def clearly_better(hits: int, as_given: int, truths: Sequence[str]) -> bool:
    """Whether a reading explains so much more than the list as given that chance cannot be the reason.

    Answers that know nothing of the pictures are right at most as often as the most frequent label occurs; so the hits
    are compared with a binomial distribution with that share.
    """
    if not truths or hits <= 3 * as_given:
        return False
    chance = max(Counter(truths).values()) / len(truths)
    return _binomial_tail(hits, len(truths), chance) < _SIGNIFICANCE


def _binomial_tail(least: int, trials: int, probability: float) -> float:
    """P(X >= least) for X ~ Binomial(trials, probability)."""
    return sum(
        math.comb(trials, count) * probability**count * (1 - probability) ** (trials - count)
        for count in range(least, trials + 1)
    )


class Labels(Struct, frozen=True):
    """The lines of a label file, the class of the first one, and the label of each class, None for one without.

    ``channel_order`` is the one in which pictures are fed, rgb or bgr; ``fed_as`` makes them inputs by a named
    normalisation.
    """

    lines: Sequence[str]
    offset: int
    by_class: Sequence[str | None]
    fed_as: Callable[[str], Prepare]
    channel_order: str = "rgb"

    @property
    def other_order(self) -> str:
        """The order of channels in which pictures are not fed."""
        return "rgb" if self.channel_order == "bgr" else "bgr"


def require_fitting_labels(labels: Labels, trial: Trial) -> list[str]:
    """Raise :class:`DataError` where another reading of the labels, or other input values, fit far better.

    Returns a warning where the channels in the other order fit somewhat better.
    """
    answers, truths = first_answers(trial)
    diagnosis = diagnose(answers, truths, labels.lines, len(labels.by_class), labels.offset)
    as_given = count_hits(answers, truths, labels.by_class)
    if as_given * _LOW_ACCURACY_DIVISOR <= len(answers):
        diagnosis = _other_input_values(labels, trial, as_given) or diagnosis
    if diagnosis is not None:
        message = (
            f"{diagnosis.subject} do not fit the model: {diagnosis.finding}.\n"
            f"  Fix: {diagnosis.advice}. To evaluate all the same: --label_check=false"
        )
        raise DataError(message)
    return _better_order(labels, trial, as_given)


def explain_label_count(labels: Labels, trial: Trial) -> str:
    """What a few pictures say about a list with one line more or less than the model has outputs."""
    class_count = len(labels.by_class)
    answers, truths = first_answers(trial)
    missing = class_count - len(labels.lines)
    hits = {offset: count_hits(answers, truths, shifted(labels.lines, class_count, offset)) for offset in (0, missing)}
    advice = offset_advice(missing)
    if hits[0] > hits[missing]:
        change = "add a last line" if missing > 0 else "delete the last line"
        advice = f"The lines are right from the first one on: {change}, or pass --label_offset=0"
    return (
        f"Of {len(answers)} pictures tried, {hits[0]} are right as given, {hits[missing]} {offset_in_words(missing)}.\n"
        f"  Fix: {advice}"
    )


def first_answers(
    trial: Trial, prepare: Prepare | None = None, channel_order: str = "", most: int | None = None
) -> tuple[list[int], list[str]]:
    """For the probes, ``most`` where that is stated: the class put first, and the right label."""
    tried = trial.run(probe_positions(trial.targets, most), prepare, channel_order)
    answers = [int(best_classes(each.outputs[0].ravel(), 1)[0]) for each in tried]
    return answers, [each.target for each in tried]


def _other_input_values(labels: Labels, trial: Trial, as_given: int) -> Diagnosis | None:
    """The named normalisation, or the order of channels, with which the model suddenly works, if there is one."""
    order = labels.other_order
    named = NORMALIZATION_NAMES if trial.inputs[0].dtype.kind == "f" else ()
    found = {name: first_answers(trial, labels.fed_as(name)) for name in named}
    found[order.upper()] = first_answers(trial, channel_order=order)
    hits = {name: count_hits(*each, labels.by_class) for name, each in found.items()}
    best = max(hits, key=lambda name: hits[name])
    answers, truths = found[best]
    if not clearly_better(hits[best], as_given, truths):
        return None
    flags = f"--channel_order={order}"
    if best in NORMALIZATION_NAMES:
        flags = f"--normalization={best}"
        turned, _ = first_answers(trial, labels.fed_as(best), order)
        if is_better(turned, answers, truths, labels.by_class):
            flags += f" --channel_order={order}"
            hits[f"{best} as {order.upper()}"] = count_hits(turned, truths, labels.by_class)
    table = ", ".join(f"{name} {count}" for name, count in hits.items())
    finding = f"only {as_given} pictures are right, but other input values give: {table} (of {len(answers)})"
    return Diagnosis(finding, f"The labels are fine; pass {flags}", subject="the input values")


def is_better(
    answers: Sequence[int], as_given: Sequence[int], truths: Sequence[str], class_labels: Sequence[str | None]
) -> bool:
    """Whether more answers are right than as given, beyond chance: McNemar's exact test, one-sided, below 5 %.

    >>> is_better([0] * 20, [0] * 15 + [1] * 5, ["a"] * 20, ["a", "b"])
    True
    >>> is_better([0] * 20, [0] * 16 + [1] * 4, ["a"] * 20, ["a", "b"])
    False
    """
    if len(answers) != len(as_given):
        return False
    right = [
        tuple(class_labels[answer] == truth for answer in both)
        for *both, truth in zip(answers, as_given, truths, strict=True)
    ]
    gained, lost = right.count((True, False)), right.count((False, True))
    return gained > lost and mcnemar_p(PairedCounts(len(right), lost, gained)) / 2 < _ONE_SIDED_SIGNIFICANCE


def _better_order(labels: Labels, trial: Trial, as_given: int) -> list[str]:
    """A sentence where clearly more pictures are right with the channels in the other order.

    Only where a few pictures say so, more are tried.
    """
    order, by_class = labels.other_order, labels.by_class
    if count_hits(*first_answers(trial, channel_order=order), by_class) <= as_given:
        return []
    answers, truths = first_answers(trial, channel_order=order, most=_MOST_COMPARED)
    given, _ = first_answers(trial, most=_MOST_COMPARED)
    if not is_better(answers, given, truths, by_class):
        return []
    share, share_given = (count_hits(each, truths, by_class) / len(truths) for each in (answers, given))
    sentence = (
        f"read as {order.upper()}, {share:.0%} instead of {share_given:.0%} of {len(truths)} pictures tried are right: "
        f"--channel_order={order}"
    )
    return [sentence.replace("%", " %")]
