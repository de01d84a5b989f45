"""Top-1 to top-k accuracy: what is kept of each answer, the figures of configurations, and what changed in pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from evaltools.gates.accuracy_verdict import accuracy_verdict
from evaltools.metrics.interval import holm
from evaltools.metrics.proportions import mcnemar_p
from evaltools.result.figure import Figure, figure_of
from evaltools.result.result import ANSWERS_CHANGED, Row
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.answers import Answers
from evaltools.tasks.framework.collecting import Columns, Concluded, RecordsOfRun, columns, reference_among
from evaltools.tasks.framework.definition import TopK
from evaltools.tasks.framework.topk_figures import AGREEMENT, DISTINCT_ANSWERS, accuracies
from evaltools.tasks.framework.topk_report import Comparison, Named, changed_in_words, compared, sections

_FEWEST_FOR_CONSTANT: Final = 20
_FEWEST_TO_KNOW: Final = 30
_LARGEST_SHARE: Final = 0.5
_ONE_SIDED_95: Final = 1.645
_OF_EXAMPLES: Final = (
    "example", "configuration", "truth", "truth_index", "is_right", "rank", "answer", "answer_index", "score",
    "latency_ms", "classes", "scores",
)  # fmt: skip
_OF_CHANGED: Final = (
    "example", "configuration", "truth", "before", "after", "score_before", "score_after", "effect", "is_tie",
)  # fmt: skip


def conclude(metric: TopK, run: RecordsOfRun, configurations: Sequence[Row]) -> Concluded:
    """Accuracies, changes, verdicts on Top-1."""
    truths = [str(example.target) for example in run.examples]
    answers = {name: Answers.of(run.outcome.records[name]) for name in run.measured}
    named = Named(metric.labels, truths, run.outcome.names)
    comparisons = [compared((base, other), answers[base], answers[other], named) for base, other in run.pairs]
    correct(comparisons)
    with_reference = {each.other: each for each in comparisons if each.baseline == reference_among(configurations)}
    return Concluded(
        verdicts=topk_verdicts(comparisons, run.share_margin),
        figures={name: _figures(own, with_reference.get(name), metric.k, run) for name, own in answers.items()},
        warnings=topk_warnings(answers, truths),
        blocks=sections(comparisons, run.pictures),
        nan_outputs={name: int(np.count_nonzero(own.nonfinite)) for name, own in answers.items()},
        texts={
            name: {ANSWERS_CHANGED: changed_in_words(each)} for name, each in with_reference.items() if each.differing
        },
        examples=answered(answers, named, run, configurations) if run.keeps_examples else {},
        changed=changed_answers(with_reference.values()),
    )


def _figures(answers: Answers, found_against: Comparison | None, most: int, run: RecordsOfRun) -> dict[str, Figure]:
    scores = _scores(answers, len(run.examples), most) if run.keeps_examples else None
    found = accuracies(answers.hits, len(answers.examples), found_against.changes if found_against else (), scores)
    if found_against is not None:
        count = found_against.count
        found["agreement"] = figure_of(AGREEMENT, found_against.same / count if count else None)
    return found | {"distinct_answers": figure_of(DISTINCT_ANSWERS, float(_distinct(answers)))}


def _distinct(answers: Answers) -> int:
    """How many classes came first."""
    return len(np.unique(answers.classes[:, :1]))


def _scores(answers: Answers, examples: int, most: int) -> dict[int, list[float | None]]:
    """By k, 1 for each example whose right label is among so many best, 0 for another, None for one that failed."""
    ranks = dict(zip(answers.examples.tolist(), answers.ranks.tolist(), strict=True))
    return {
        k: [float(ranks[example] < k) if example in ranks else None for example in range(examples)]
        for k in range(1, most + 1)
    }


def answered(answers: Mapping[str, Answers], named: Named, run: RecordsOfRun, configurations: Sequence[Row]) -> Columns:
    """The answer of every configuration that finished it to each example: the best class first, with raw scores.

    ``truth`` and ``answer`` are labels, each with the number of its class beside it. An emulator has no latency.
    """
    rows = []
    emulated = {row.name for row in configurations if row.is_emulated}
    numbers = {label: number for number, label in reversed(list(enumerate(named.labels)))}
    for number, (name, own) in enumerate(answers.items()):
        invokes_us = [each.invokes_us[-1] for each in run.outcome.records[name] if each.observation is not None]
        times_ms = [None if name in emulated else each / 1000 for each in invokes_us]
        columns_of_own = (own.examples, own.ranks, own.classes, own.scores)
        for example, rank, classes, scores, time_ms in zip(
            *(column.tolist() for column in columns_of_own), times_ms, strict=True
        ):
            truth, best = named.truths[example], classes[0]
            known = rank if rank < len(classes) else None
            of_truth = (truth, numbers.get(truth), rank == 0, known)
            of_answer = (named.label(best), best, scores[0], time_ms, classes, scores)
            rows.append((example, number, (named.examples[example], name, *of_truth, *of_answer)))
    return columns(_OF_EXAMPLES, [row for _, _, row in sorted(rows, key=lambda each: each[:2])])


def changed_answers(comparisons: Iterable[Comparison]) -> Columns:
    """The first answers that are others than the baseline's."""
    rows = [
        (found.example, compared.other, found.truth, found.baseline.label, found.other.label, found.baseline.score,
         found.other.score, found.effect, found.tie)
        for compared in comparisons
        for found in compared.worst_first
    ]  # fmt: skip
    return columns(_OF_CHANGED, rows)


def topk_warnings(answers: Mapping[str, Answers], truths: Sequence[str]) -> list[str]:
    """Signs that a configuration is damaged, or that labels or truths are not those of the model."""
    found = [text for name, own in answers.items() for text in _signs_of_damage(name, own)]
    first = next(iter(answers.items()), None)
    return found if first is None else found + _signs_of_other_truths(*first, truths)


def _signs_of_damage(name: str, answers: Answers) -> list[str]:
    found = []
    nonfinite = np.count_nonzero(answers.nonfinite)
    if nonfinite:
        found.append(f"{name}: {nonfinite} outputs hold NaN or infinite scores")
    if _distinct(answers) == 1 and len(answers.examples) >= _FEWEST_FOR_CONSTANT:
        found.append(f"{name}: the same class came first for every example")
    return found


def _signs_of_other_truths(name: str, answers: Answers, truths: Sequence[str]) -> list[str]:
    count = len(answers.examples)
    hits = answers.hits[0] if count else 0
    if not knows_nothing(hits, count, truths):
        return []
    return [
        f"{name}: {hits} of {count} first answers are right, no more than of answers that know nothing of "
        "the examples; see that each example has its own right label, and that the labels are those of this model"
    ]


def knows_nothing(hits: int, answers: int, truths: Sequence[str]) -> bool:
    """Whether so many answers are right as where they know nothing of the examples.

    These are right at most as often as the most frequent label occurs: above the one-sided bound of 95 % of that
    (normal approximation) a model knows something. False for fewer than 30 answers, and where one label is that of half
    of the examples.

    >>> truths = ["cat", "dog", "owl", "ant"] * 25
    >>> knows_nothing(31, 100, truths), knows_nothing(33, 100, truths)
    (True, False)
    """
    share = max(Counter(truths).values()) / len(truths)
    if answers < _FEWEST_TO_KNOW or share >= _LARGEST_SHARE:
        return False
    return hits <= answers * share + _ONE_SIDED_95 * math.sqrt(answers * share * (1 - share))


def correct(comparisons: Sequence[Comparison]) -> None:
    """Correct the p-values by Holm's method, for each k apart, over all others with the same baseline."""
    for baseline in {each.baseline for each in comparisons}:
        family = [each for each in comparisons if each.baseline == baseline and each.count]
        for flips in zip(*(each.flips for each in family), strict=True):
            for each, p_value in zip(family, holm([mcnemar_p(counts) for counts in flips]), strict=True):
                each.corrected.append(p_value)


def topk_verdicts(comparisons: Sequence[Comparison], margin: float) -> dict[str, list[Verdict]]:
    """The verdicts on Top-1 by configuration, from the p-values that are corrected for the other comparisons.

    ``margin`` is the change, 0..1, that counts as none.
    """
    found: dict[str, list[Verdict]] = {}
    tests = Counter(one.baseline for one in comparisons if one.count)
    for each in comparisons:
        if each.count:
            counts = each.flips[0]
            several, p_value = tests[each.baseline], each.corrected[0]
            verdict = accuracy_verdict("top1", counts, margin, p_value, several, each.identical)
            found.setdefault(each.other, []).append(replace(verdict, against=each.baseline))
    return found
