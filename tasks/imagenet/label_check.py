"""Finds label lists and input values that do not fit a model before hours are spent on them.

A few pictures are run; the model's first answers are compared with the labels as given, and with a line more or less in
front. What the model answered goes into pure functions, a diagnosis comes out.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evaltools.engine.execution import available_cores
from evaltools.engine.task import Prepared
from evaltools.errors import DataError, ImageError, InferenceError
from evaltools.metrics.proportions import PairedCounts, mcnemar_p
from evaltools.preprocess import NORMALIZATION_NAMES, ImageToTensor, parse_normalization
from evaltools.runtime import Session
from evaltools.tasks.imagenet.task import ImagenetTask

_MOST_PROBES: Final = 64
_FEWEST_PROBES: Final = 20
_SIGNIFICANCE: Final = 1e-4
_FEWEST_TO_KNOW: Final = 30
_LARGEST_SHARE: Final = 0.5
_ONE_SIDED_95: Final = 1.645
_EXAMPLES_PER_LABEL: Final = 4
_MOST_COMPARED: Final = 256
"""Pictures by which two orders of channels are compared."""
_ONE_SIDED_SIGNIFICANCE: Final = 0.05
_LOW_ACCURACY_DIVISOR: Final = 5
"""Other input values are tried where at most one picture in five is right."""
_MADE_AT_ONCE: Final = 16
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
    """Say what is wrong with the label list, or None where it fits as well as with a line more or less in front.

    ``answers`` are the classes that the model put first for the probes, ``truths`` their right labels.
    """
    near = (offset, offset + 1, offset - 1)
    hits = {each: count_hits(answers, truths, shifted(labels, class_count, each)) for each in near}
    best = max(near[1:], key=lambda each: hits[each])
    if not clearly_better(hits[best], hits[offset], truths):
        return None
    finding = f"of {len(answers)} pictures tried, {hits[offset]} are right as given, {hits[best]} "
    return Diagnosis(finding + offset_in_words(best), offset_advice(best))


def clearly_better(hits: int, as_given: int, truths: Sequence[str]) -> bool:
    """Whether a reading explains so much more than the list as given that chance cannot be the reason.

    Answers that know nothing of the pictures are right at most as often as the most frequent label occurs; so the hits
    are compared with a binomial distribution with that share.
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


def require_fitting_labels(task: ImagenetTask, session: Session, labels: Sequence[str], offset: int) -> str:
    """Raise :class:`DataError` where another reading of the labels, or other input values, fit far better.

    ``labels`` are the lines of the label file, ``offset`` the class of its first line. Returns a warning where the
    channels in the other order fit somewhat better, else an empty text.
    """
    class_count = len(task.class_labels)
    answers, truths = first_answers(task, session)
    diagnosis = diagnose(answers, truths, labels, class_count, offset)
    as_given = count_hits(answers, truths, task.class_labels)
    if as_given * _LOW_ACCURACY_DIVISOR <= len(answers):
        diagnosis = _other_input_values(task, session, as_given) or diagnosis
    if diagnosis is not None:
        message = (
            f"{diagnosis.subject} do not fit the model: {diagnosis.finding}.\n"
            f"  Fix: {diagnosis.advice}. To evaluate all the same: --label_check=false"
        )
        raise DataError(message)
    return _better_order(task, session, as_given)


def explain_label_count(task: ImagenetTask, session: Session, labels: Sequence[str]) -> str:
    """What a few pictures say about a list with one line more or less than the model has outputs."""
    class_count = len(task.class_labels)
    answers, truths = first_answers(task, session)
    missing = class_count - len(labels)
    hits = {offset: count_hits(answers, truths, shifted(labels, class_count, offset)) for offset in (0, missing)}
    advice = offset_advice(missing)
    if hits[0] > hits[missing]:
        change = "add a last line" if missing > 0 else "delete the last line"
        advice = f"The lines are right from the first one on: {change}, or pass --label_offset=0"
    return (
        f"Of {len(answers)} pictures tried, {hits[0]} are right as given, {hits[missing]} {offset_in_words(missing)}.\n"
        f"  Fix: {advice}"
    )


def first_answers(
    task: ImagenetTask, session: Session, positions: Sequence[int] | None = None
) -> tuple[list[int], list[str]]:
    """For the probes, or the examples at ``positions``: the class put first, and the right label.

    Pictures that fail are left out, and copies of one that was tried: they say nothing new.
    """
    answers, truths = [], []
    tried: set[bytes] = set()
    for prepared in _prepared(task, probe_positions(task.images.truths) if positions is None else positions):
        content = hashlib.sha256(prepared.inputs[0].tobytes()).digest()
        if content in tried:
            continue
        tried.add(content)
        try:
            observation = task.observe(prepared, session.run(prepared.inputs).outputs)
        except InferenceError:
            continue
        answers.append(observation.classes[0])
        truths.append(prepared.context)
    return answers, truths


def _prepared(task: ImagenetTask, positions: Sequence[int]) -> Iterator[Prepared]:
    """The inputs of those pictures that can be read, in order; a few are made at the same time, on all cores."""

    def prepared(position: int) -> Prepared | None:
        try:
            return task.prepare(task.examples[position])
        except ImageError:
            return None

    with ThreadPoolExecutor(available_cores()) as threads:
        for start in range(0, len(positions), _MADE_AT_ONCE):
            made = threads.map(prepared, positions[start : start + _MADE_AT_ONCE])
            yield from (each for each in made if each is not None)


def _other_input_values(task: ImagenetTask, session: Session, as_given: int) -> Diagnosis | None:
    """The named normalisation, or the order of channels, with which the model suddenly works, if there is one."""
    given, order = task.to_tensor, _other_order(task.to_tensor)
    tried = {order.upper(): _in_other_order(given)}
    if given.dtype.kind == "f":
        named = {name: replace(given, normalization=parse_normalization(name)) for name in NORMALIZATION_NAMES}
        tried = named | tried
    found = {name: first_answers(task.with_input(to_tensor), session) for name, to_tensor in tried.items()}
    hits = {name: count_hits(*each, task.class_labels) for name, each in found.items()}
    best = max(hits, key=lambda name: hits[name])
    answers, truths = found[best]
    if not clearly_better(hits[best], as_given, truths):
        return None
    flags = f"--channel_order={order}"
    if best in NORMALIZATION_NAMES:
        flags = f"--normalization={best}"
        turned, _ = first_answers(task.with_input(_in_other_order(tried[best])), session)
        if is_better(turned, answers, truths, task.class_labels):
            flags += f" --channel_order={order}"
            hits[f"{best} as {order.upper()}"] = count_hits(turned, truths, task.class_labels)
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


def _better_order(task: ImagenetTask, session: Session, as_given: int) -> str:
    """A sentence where clearly more pictures are right with the channels in the other order; else empty.

    Only where a few pictures say so, more are tried.
    """
    turned = task.with_input(_in_other_order(task.to_tensor))
    if count_hits(*first_answers(turned, session), task.class_labels) <= as_given:
        return ""
    positions = probe_positions(task.images.truths, _MOST_COMPARED)
    answers, truths = first_answers(turned, session, positions)
    given, _ = first_answers(task, session, positions)
    if not is_better(answers, given, truths, task.class_labels):
        return ""
    order = _other_order(task.to_tensor)
    share, share_given = (count_hits(each, truths, task.class_labels) / len(truths) for each in (answers, given))
    return (
        f"read as {order.upper()}, {share:.0%} instead of {share_given:.0%} of {len(truths)} pictures tried are right: "
        f"--channel_order={order}"
    ).replace("%", " %")


def _other_order(to_tensor: ImageToTensor) -> str:
    return "rgb" if to_tensor.blue_first else "bgr"


def _in_other_order(to_tensor: ImageToTensor) -> ImageToTensor:
    return replace(to_tensor, blue_first=not to_tensor.blue_first)
