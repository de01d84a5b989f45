"""Top-1 to top-k accuracy: what is kept of each answer, the figures of configurations, and what changed in pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from msgspec.structs import replace

from evaltools.engine.run import PassOutcome
from evaltools.gates.accuracy_verdict import accuracy_verdict
from evaltools.metrics.interval import holm
from evaltools.metrics.proportions import mcnemar_p
from evaltools.result.evaluation import ConfigurationResult
from evaltools.result.figure import Figure, figure_of
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.collecting import Columns, Concluded, RecordsOfRun, columns, reference_among
from evaltools.tasks.framework.definition import TopK
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.tasks.framework.sums import Pair, RunSums
from evaltools.tasks.framework.topk_figures import AGREEMENT, DISTINCT_ANSWERS, accuracies
from evaltools.tasks.framework.topk_report import Comparison, answer_in, sections

_FEWEST_FOR_CONSTANT: Final = 20
_FEWEST_TO_KNOW: Final = 30
_LARGEST_SHARE: Final = 0.5
_ONE_SIDED_95: Final = 1.645
_OF_EXAMPLES: Final = (
    "example", "configuration", "truth", "is_right", "rank", "answer", "score", "latency_ms", "classes", "scores",
)  # fmt: skip
_OF_CHANGED: Final = (
    "example", "configuration", "truth", "before", "after", "score_before", "score_after", "effect", "is_tie",
)  # fmt: skip


class AnswerCounts:
    """Counts the answers of one configuration: right labels by their rank, classes that came first, bad scores."""

    def __init__(self, most: int) -> None:
        self.count = self.nonfinite = 0
        self.classes: set[int] = set()
        self._at_rank = [0] * most

    def add(self, example: int, observation: ObservedScores[Any]) -> None:
        """Count one answer."""
        answer = answer_in(observation)
        self.count += 1
        self.classes.add(answer.top1)
        self.nonfinite += answer.nonfinite > 0
        if answer.rank is not None and answer.rank < len(self._at_rank):
            self._at_rank[answer.rank] += 1

    @property
    def hits(self) -> list[int]:
        """How many examples have the right label among their best, two best and so on."""
        return list(accumulate(self._at_rank))


class CollectedAnswers:
    """The answers of all configurations; it is a :class:`~evaltools.tasks.framework.collecting.Collected`."""

    def __init__(self, metric: TopK, run: RecordsOfRun) -> None:
        self._run, self._most = run, metric.k
        self._truths = [str(example.target) for example in run.examples]
        self._counts = {name: AnswerCounts(metric.k) for name in run.measured}
        self._compared = {
            pair: Comparison(*pair, [0] * metric.k, [0] * metric.k, metric.labels, self._truths, run.outcome.names)
            for pair in run.pairs
        }

    @property
    def own(self) -> dict[str, list[AnswerCounts]]:
        """The counts of each configuration."""
        return {name: [counts] for name, counts in self._counts.items()}

    @property
    def paired(self) -> dict[Pair, list[Comparison]]:
        """The changes of each pair."""
        return {pair: [compared] for pair, compared in self._compared.items()}

    def conclude(self, configurations: Sequence[ConfigurationResult], sums: RunSums) -> Concluded:
        """Accuracies, changes, verdicts on Top-1."""
        run, comparisons = self._run, list(self._compared.values())
        correct(comparisons)
        with_reference = {each.other: each for each in comparisons if each.baseline == reference_among(configurations)}
        return Concluded(
            verdicts=topk_verdicts(comparisons, run.margin),
            figures={
                name: self._figures(name, counts, with_reference.get(name)) for name, counts in self._counts.items()
            },
            warnings=topk_warnings(self._counts, self._truths),
            blocks=sections(comparisons, run.pictures),
            nan_outputs={name: counts.nonfinite for name, counts in self._counts.items()},
            examples=answered(self._truths, run.outcome) if run.keeps_examples else {},
            changed=changed_answers(with_reference.values()),
        )

    def _figures(self, name: str, counts: AnswerCounts, compared: Comparison | None) -> dict[str, Figure]:
        scores = self._scores(name) if self._run.keeps_examples else None
        found = accuracies(counts.hits, counts.count, compared.changes if compared else (), scores)
        if compared is not None:
            found["agreement"] = figure_of(AGREEMENT, compared.same / compared.count if compared.count else None)
        return found | {"distinct_answers": figure_of(DISTINCT_ANSWERS, float(len(counts.classes)))}

    def _scores(self, name: str) -> dict[int, list[float | None]]:
        """By k, 1 for each example whose right label is among so many best, 0 for another, None for one that failed."""
        ranks: list[int | None] = [None] * len(self._truths)
        for record in self._run.outcome.records[name]:
            if record.observation is not None:
                rank = answer_in(record.observation).rank
                ranks[record.example] = self._most if rank is None else rank
        return {k: [None if rank is None else float(rank < k) for rank in ranks] for k in range(1, self._most + 1)}


def answered(truths: Sequence[str], outcome: PassOutcome[ObservedScores[Any]]) -> Columns:
    """The answer of every configuration that finished it to each example: the best class first, with raw scores."""
    rows = []
    for together in outcome.by_example():
        for name, record in together.items():
            if record.observation is not None:
                answer = answer_in(record.observation)
                classes, scores = list(answer.classes), list(answer.scores)
                best = (classes[0], scores[0]) if classes else (None, None)
                truth, time_ms = truths[record.example], record.invokes_us[-1] / 1000
                rows.append((outcome.names[record.example], name, truth, answer.rank == 0, answer.rank, *best, time_ms,
                             classes, scores))  # fmt: skip
    return columns(_OF_EXAMPLES, rows)


def changed_answers(comparisons: Iterable[Comparison]) -> Columns:
    """The first answers that are others than the baseline's."""
    rows = [
        (found.example, compared.other, found.truth, found.baseline.label, found.other.label, found.baseline.score,
         found.other.score, found.effect, found.tie)
        for compared in comparisons
        for found in compared.worst_first
    ]  # fmt: skip
    return columns(_OF_CHANGED, rows)


def topk_warnings(counts: Mapping[str, AnswerCounts], truths: Sequence[str]) -> list[str]:
    """Signs that a configuration is damaged, or that labels or truths are not those of the model."""
    found = [text for name, answers in counts.items() for text in _signs_of_damage(name, answers)]
    first = next(iter(counts.items()), None)
    return found if first is None else found + _signs_of_other_truths(*first, truths)


def _signs_of_damage(name: str, answers: AnswerCounts) -> list[str]:
    found = []
    if answers.nonfinite:
        found.append(f"{name}: {answers.nonfinite} outputs hold NaN or infinite scores")
    if len(answers.classes) == 1 and answers.count >= _FEWEST_FOR_CONSTANT:
        found.append(f"{name}: the same class came first for every example")
    return found


def _signs_of_other_truths(name: str, answers: AnswerCounts, truths: Sequence[str]) -> list[str]:
    hits = answers.hits[0]
    if not knows_nothing(hits, answers.count, truths):
        return []
    return [
        f"{name}: {hits} of {answers.count} first answers are right, no more than of answers that know nothing of "
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
            for compared, p_value in zip(family, holm([mcnemar_p(counts) for counts in flips]), strict=True):
                compared.corrected.append(p_value)


def topk_verdicts(comparisons: Sequence[Comparison], margin: float) -> dict[str, list[Verdict]]:
    """The verdicts on Top-1 by configuration, from the p-values that are corrected for the other comparisons.

    ``margin`` is the change, 0..1, that counts as none.
    """
    found: dict[str, list[Verdict]] = {}
    tests = Counter(each.baseline for each in comparisons if each.count)
    for compared in comparisons:
        if compared.count:
            counts = compared.flips[0]
            several, p_value = tests[compared.baseline], compared.corrected[0]
            verdict = accuracy_verdict("top1", counts, margin, p_value, several, compared.identical)
            found.setdefault(compared.other, []).append(replace(verdict, against=compared.baseline))
    return found
