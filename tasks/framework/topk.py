"""Top-1 to top-k accuracy: what is kept of each answer, and the figures of configurations and of pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from evaltools.engine.run import PassOutcome
from evaltools.gates.accuracy_verdict import accuracy_verdict
from evaltools.metrics.classification import (
    AnswerPairs,
    ClassificationMetrics,
    ComparedAnswers,
    TopKCounts,
)
from evaltools.metrics.interval import holm
from evaltools.metrics.proportions import PairedCounts, change_interval, mcnemar_p, wilson_interval
from evaltools.result.evaluation import ConfigurationResult
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.answers import Answer
from evaltools.tasks.framework.collecting import Concluded, RecordsOfRun
from evaltools.tasks.framework.definition import TopK
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.tasks.framework.sums import RunSums
from evaltools.tasks.framework.topk_result import (
    ChangedAnswer,
    Classified,
    Comparison,
    Effect,
    ExampleAnswer,
    ExampleRecord,
    FirstAnswer,
    TopKChange,
    TopKPart,
)

_MOST_CHANGES: Final = 1000
_FEWEST_FOR_CONSTANT: Final = 20
_FEWEST_TO_KNOW: Final = 30
_LARGEST_SHARE: Final = 0.5
_ONE_SIDED_95: Final = 1.645


class AnswerCounts:
    """Counts the answers of one configuration."""

    def __init__(self, most: int) -> None:
        self._topk = TopKCounts(most)
        self._classes: set[int] = set()
        self._nonfinite = 0

    def add(self, example: int, observation: ObservedScores[Any]) -> None:
        """Count one answer."""
        answer = answer_in(observation)
        self._topk.add(answer.rank)
        self._classes.add(answer.top1)
        self._nonfinite += answer.nonfinite > 0

    def result(self) -> ClassificationMetrics:
        """Accuracy over all answers, and signs of a broken delegate."""
        return ClassificationMetrics(self._topk.result(), self._nonfinite, len(self._classes))


class Changes:
    """How the answers of two configurations agree; keeps those with another first class, up to a number.

    Class ``i`` is called ``labels[i]``, and the right label of the example ``names[i]`` is ``truths[i]``.
    """

    def __init__(
        self,
        top_k: int,
        labels: Sequence[str | None],
        truths: Sequence[str],
        names: Sequence[str],
        most: int = _MOST_CHANGES,
    ) -> None:
        self._labels, self._truths, self._names, self._most = labels, truths, names, most
        self.pairs = AnswerPairs(top_k)
        self.identical = self.ties = 0
        self.kept: list[ChangedAnswer] = []

    def add(self, example: int, of_baseline: ObservedScores[Any], of_other: ObservedScores[Any]) -> None:
        """Add both answers to one example."""
        baseline, other = answer_in(of_baseline), answer_in(of_other)
        self.pairs.add(baseline, other)
        self.identical += baseline.classes == other.classes and baseline.scores == other.scores
        if baseline.top1 == other.top1:
            return
        first = self._first(baseline, other.top1)
        second = self._first(other, baseline.top1)
        tie = bool(first.equal or second.equal)
        self.ties += tie
        if len(self.kept) < self._most:
            effect: Effect = "lost" if baseline.rank == 0 else "gained" if other.rank == 0 else "neither"
            self.kept.append(ChangedAnswer(self._names[example], self._truths[example], first, second, effect, tie))

    def _first(self, answer: Answer, rival: int) -> FirstAnswer:
        equal = self._label(rival) if _is_best(answer, rival) else ""
        return FirstAnswer(self._label(answer.top1), answer.best if math.isfinite(answer.best) else None, equal)

    def _label(self, number: int) -> str:
        label = self._labels[number] if 0 <= number < len(self._labels) else None
        return label or f"class {number}"


class CollectedAnswers:
    """The answers of all configurations; it is an :class:`~evaltools.tasks.framework.collecting.Collected`."""

    def __init__(self, metric: TopK, run: RecordsOfRun) -> None:
        self._run = run
        self._truths = [str(example.target) for example in run.examples]
        self._counts = {name: AnswerCounts(metric.k) for name in run.measured}
        self._changes = {pair: Changes(metric.k, metric.labels, self._truths, run.outcome.names) for pair in run.pairs}

    @property
    def own(self) -> dict[str, list[AnswerCounts]]:
        """The counts of each configuration."""
        return {name: [counts] for name, counts in self._counts.items()}

    @property
    def paired(self) -> dict[tuple[str, str], list[Changes]]:
        """The changes of each pair."""
        return {pair: [changes] for pair, changes in self._changes.items()}

    def conclude(
        self,
        configurations: Sequence[ConfigurationResult],
        sums: RunSums,
    ) -> Concluded:
        """Accuracies, changes, verdicts on Top-1."""
        run = self._run
        part = topk_part(
            self._counts,
            self._changes,
            example_records(self._truths, run.outcome) if run.keeps_examples else None,
        )
        return Concluded(part, topk_verdicts(part.comparisons, run.margin), topk_warnings(part, self._truths))


def _is_best(answer: Answer, number: int) -> bool:
    """Whether no class has a better score than the one of this number; NaN is not better or worse than anything."""
    scores = dict(zip(answer.classes, answer.scores, strict=True))
    return scores.get(number) == answer.scores[0]


def answer_in(observation: ObservedScores[Any]) -> Answer:
    """The answer in what was observed of one example."""
    return Answer.of(observation.whole)


def topk_part(
    counts: Mapping[str, AnswerCounts],
    changes: Mapping[tuple[str, str], Changes],
    examples: list[ExampleRecord] | None,
) -> TopKPart:
    """Top-1 to top-k of every configuration that has answers, and how answers of pairs differ."""
    return TopKPart(
        classified={name: classified(each.result()) for name, each in counts.items()},
        comparisons=[
            replace(entry, identical=found.identical, ties=found.ties, changed=found.kept)
            for entry in topk_comparisons({pair: found.pairs.result() for pair, found in changes.items()})
            for found in [changes[entry.baseline, entry.other]]
        ],
        examples=examples,
    )


def example_records(truths: Sequence[str], outcome: PassOutcome[ObservedScores[Any]]) -> list[ExampleRecord]:
    """Each example with the answer of every configuration that finished it."""
    found = []
    for together in outcome.by_example():
        answers = {}
        for name, record in together.items():
            if record.observation is not None:
                answer = answer_in(record.observation)
                answers[name] = ExampleAnswer(
                    list(answer.classes), list(answer.scores), answer.rank, record.invokes_us[-1]
                )
        if answers:
            example = next(iter(together.values())).example
            found.append(ExampleRecord(outcome.names[example], truths[example], answers))
    return found


def topk_warnings(part: TopKPart, truths: Sequence[str]) -> list[str]:
    """Signs that a configuration is damaged, or that labels or truths are not those of the model."""
    found = [text for name, answered in part.classified.items() for text in _signs_of_damage(name, answered.metrics)]
    first = next(iter(part.classified.items()), None)
    return found if first is None else found + _signs_of_other_truths(*first, truths)


def _signs_of_damage(name: str, metrics: ClassificationMetrics) -> list[str]:
    found = []
    if metrics.outputs_with_nonfinite:
        found.append(f"{name}: {metrics.outputs_with_nonfinite} outputs hold NaN or infinite scores")
    if metrics.distinct_answers == 1 and metrics.topk.example_count >= _FEWEST_FOR_CONSTANT:
        found.append(f"{name}: the same class came first for every example")
    return found


def _signs_of_other_truths(name: str, answered: Classified, truths: Sequence[str]) -> list[str]:
    topk = answered.metrics.topk
    hits = round(topk.accuracies[0] * topk.example_count) if topk.accuracies else 0
    if not knows_nothing(hits, topk.example_count, truths):
        return []
    return [
        f"{name}: {hits} of {topk.example_count} first answers are right, no more than of answers that know nothing of "
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


def classified(metrics: ClassificationMetrics) -> Classified:
    """The accuracies of a configuration with the 95 % interval of each."""
    topk = metrics.topk
    intervals = [wilson_interval(round(share * topk.example_count), topk.example_count) for share in topk.accuracies]
    return Classified(metrics, intervals)


def topk_comparisons(compared: Mapping[tuple[str, str], ComparedAnswers]) -> list[Comparison]:
    """Comparisons of ``(baseline, other)`` with tests and intervals.

    Holm's correction is over all others that are compared with the same baseline.
    """
    comparisons = [
        Comparison(
            baseline,
            other,
            found.agreement,
            [_topk_change(k, counts) for k, counts in enumerate(found.topk, 1) if counts.count],
        )
        for (baseline, other), found in compared.items()
    ]
    baselines = dict.fromkeys(entry.baseline for entry in comparisons)
    families = {name: [entry for entry in comparisons if entry.baseline == name] for name in baselines}
    return [entry for family in families.values() for entry in _corrected(family)]


def topk_verdicts(comparisons: Sequence[Comparison], margin: float) -> dict[str, list[Verdict]]:
    """The verdicts on Top-1 by configuration, from the p-values that are corrected for the other comparisons.

    ``margin`` is the change, 0..1, that counts as none.
    """
    found: dict[str, list[Verdict]] = {}
    tests = Counter(entry.baseline for entry in comparisons if entry.topk)
    for entry in comparisons:
        if entry.topk:
            top1 = entry.topk[0]
            counts = PairedCounts(entry.agreement.example_count, top1.lost, top1.gained)
            several = tests[entry.baseline]
            verdict = accuracy_verdict("top1", counts, margin, top1.p_value_holm, several, entry.identical)
            found.setdefault(entry.other, []).append(replace(verdict, against=entry.baseline))
    return found


def _topk_change(k: int, counts: PairedCounts) -> TopKChange:
    p_value = mcnemar_p(counts)
    return TopKChange(k, counts.lost, counts.gained, counts.change, change_interval(counts), p_value, p_value)


def _corrected(family: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with p-values corrected by Holm's method, for each k apart.

    Comparisons without a common example have no p-values.
    """
    tested = [entry for entry in family if entry.topk]
    columns = zip(*([change.p_value for change in entry.topk] for entry in tested), strict=True)
    rows = zip(*map(holm, columns), strict=True)
    corrected = {}
    for entry, row in zip(tested, rows, strict=True):
        changes = [replace(change, p_value_holm=p) for change, p in zip(entry.topk, row, strict=True)]
        corrected[entry.other] = replace(entry, topk=changes)
    return [corrected.get(entry.other, entry) for entry in family]
