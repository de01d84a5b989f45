"""The figures of configurations and of pairs from the answers of a run, counted in one pass over the journal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.engine.describe import comparison_pairs
from evaltools.engine.task import Example
from evaltools.gates.accuracy_verdict import accuracy_verdict, unchanged_reasons
from evaltools.metrics.classification import AnswerPairs, ClassificationMetrics, ComparedAnswers, TopKCounts
from evaltools.metrics.interval import holm
from evaltools.metrics.proportions import PairedCounts, change_interval, mcnemar_p, wilson_interval
from evaltools.result.evaluation import ConfigurationResult
from evaltools.result.verdict import Verdict
from evaltools.tasks.imagenet.result import ChangedAnswer, Classified, Comparison, Effect, FirstAnswer, TopKChange
from evaltools.tasks.imagenet.task import TopKObservation
from evaltools.tasks.shared.figures import MeasuredPass, RunSums, judge_records, sum_up

_MOST_CHANGES: Final = 1000


class ImagenetFigures(Struct, frozen=True):
    """Everything that is counted over the examples of a run; ``classified`` by configuration."""

    configurations: list[ConfigurationResult]
    sums: RunSums
    classified: dict[str, Classified]
    comparisons: list[Comparison]


class AnswerCounts:
    """Counts the answers of one configuration."""

    def __init__(self, most: int) -> None:
        self._topk = TopKCounts(most)
        self._classes: set[int] = set()
        self._nonfinite = 0

    def add(self, example: Example, observation: TopKObservation) -> None:
        """Count one answer."""
        self._topk.add(observation.rank)
        self._classes.add(observation.top1)
        self._nonfinite += observation.nonfinite > 0

    def merge(self, other: AnswerCounts) -> None:
        """Add the counts of other examples."""
        self._topk.merge(other._topk)
        self._classes |= other._classes
        self._nonfinite += other._nonfinite

    def result(self) -> ClassificationMetrics:
        """Accuracy over all answers, and signs of a broken delegate."""
        return ClassificationMetrics(self._topk.result(), self._nonfinite, len(self._classes))


class Changes:
    """How the answers of two configurations agree; keeps those with another first class, up to a number.

    Class ``i`` is called ``labels[i]``, and the right label of example ``i`` is ``truths[i]``. ``units`` make numbers
    of raw scores, of the baseline's and of the other's.
    """

    def __init__(
        self,
        top_k: int,
        labels: Sequence[str | None],
        truths: Sequence[str],
        most: int = _MOST_CHANGES,
        units: tuple[Callable[[float], float], Callable[[float], float]] = (float, float),
    ) -> None:
        self._labels, self._truths, self._most, self._units = labels, truths, most, units
        self.pairs = AnswerPairs(top_k)
        self.identical = self.ties = 0
        self.kept: list[ChangedAnswer] = []

    def add(self, example: Example, baseline: TopKObservation, other: TopKObservation) -> None:
        """Add both answers to one example."""
        self.pairs.add(baseline, other)
        self.identical += baseline.classes == other.classes and baseline.scores == other.scores
        if baseline.top1 == other.top1:
            return
        first = self._first(baseline, other.top1, self._units[0])
        second = self._first(other, baseline.top1, self._units[1])
        tie = bool(first.equal or second.equal)
        self.ties += tie
        if len(self.kept) < self._most:
            effect: Effect = "lost" if baseline.rank == 0 else "gained" if other.rank == 0 else "neither"
            self.kept.append(ChangedAnswer(example.id, self._truths[example.index], first, second, effect, tie))

    def _first(self, answer: TopKObservation, rival: int, in_real_units: Callable[[float], float]) -> FirstAnswer:
        score = in_real_units(answer.scores[0])
        equal = self._label(rival) if _is_best(answer, rival) else ""
        return FirstAnswer(self._label(answer.top1), score if math.isfinite(score) else None, equal)

    def _label(self, number: int) -> str:
        return self._labels[number] or f"class {number}"


def _is_best(answer: TopKObservation, number: int) -> bool:
    """Whether no class has a better score than the one of this number; NaN is not better or worse than anything."""
    scores = dict(zip(answer.classes, answer.scores, strict=True))
    return scores.get(number) == answer.scores[0]


def imagenet_figures(
    described: Sequence[ConfigurationResult],
    measured: MeasuredPass,
    top_k: int,
    labels: Sequence[str | None],
    truths: Sequence[str],
    units_of: Callable[[str], Callable[[float], float]] = lambda _name: float,
) -> ImagenetFigures:
    """Top-1 to Top-``top_k`` of every configuration that has answers, and how answers differ.

    Class ``i`` is called ``labels[i]``; the right label of example ``i`` is ``truths[i]``; ``units_of`` has for each
    configuration what makes a number of a raw score.
    """
    judged = [judge_records(entry, measured.outcome) for entry in described]
    pairs = comparison_pairs(judged)
    answers = {entry.name: AnswerCounts(top_k) for entry in judged if entry.status == "measured"}
    changes = {
        (base, other): Changes(top_k, labels, truths, units=(units_of(base), units_of(other))) for base, other in pairs
    }
    sums = sum_up(
        measured,
        pairs,
        {name: [counts] for name, counts in answers.items()},
        {pair: [found] for pair, found in changes.items()},
    )
    return ImagenetFigures(
        configurations=[sums.with_figures(entry) for entry in judged],
        sums=sums,
        classified={name: classified(counts.result()) for name, counts in answers.items()},
        comparisons=[
            replace(entry, identical=found.identical, ties=found.ties, changed=found.kept)
            for entry in topk_comparisons({pair: found.pairs.result() for pair, found in changes.items()})
            for found in [changes[entry.baseline, entry.other]]
        ],
    )


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
            verdict = accuracy_verdict("top1", counts, margin, top1.p_value_holm, tests[entry.baseline])
            is_unchanged = verdict.kind == "not decided" and top1.lost == top1.gained == 0
            reasons = unchanged_reasons(counts.count, entry.identical, is_unchanged)
            found.setdefault(entry.other, []).append(replace(verdict, against=entry.baseline, reasons=reasons))
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
