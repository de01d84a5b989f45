"""What a result says of a classifier's answers: accuracies, how answers changed, the answers; and their metrics."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

from msgspec import Struct, field

from evaltools.metrics.classification import Agreement, ClassificationMetrics
from evaltools.metrics.interval import Interval
from evaltools.metrics.metric import ABSENT, Figure, Metric
from evaltools.metrics.power import Change, CountedChange, Share
from evaltools.metrics.proportions import PairedCounts
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import against_reference
from evaltools.text import printable


class Classified(Struct, frozen=True):
    """What one configuration answered; ``topk_intervals`` has the 95 % interval (Wilson) of each accuracy."""

    metrics: ClassificationMetrics
    topk_intervals: list[Interval]


class TopKChange(Struct, frozen=True):
    """Top-k accuracy of ``other`` minus that of ``baseline``, with its 95 % interval (Tango's score).

    ``lost``: only the baseline has the right label among its k best; ``gained``: only the other has. ``p_value`` is
    that of McNemar's exact test, ``p_value_holm`` the same where several configurations are compared with one baseline.
    """

    k: int
    lost: int
    gained: int
    change: float
    interval: Interval
    p_value: float
    p_value_holm: float


Effect = Literal["lost", "gained", "neither"]
"""Of another first class: the baseline's was right, the other's is right, or neither is."""
_WORST_FIRST: Final = ("lost", "gained", "neither")


class FirstAnswer(Struct, frozen=True):
    """The label of the class that came first, and its score (dequantised), null for what is not a number.

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
        effect = "wrong both ways" if self.effect == "neither" else self.effect
        return f"{effect}, a tie" if self.tie else effect


class Comparison(Struct, frozen=True):
    """``other`` compared with ``baseline`` on the same examples; ``topk`` has Top-1 first.

    ``identical`` examples have the same best classes with bit for bit the same scores. ``ties`` have another first
    class, but one that has the best score as well on one of the sides. ``changed`` are examples with another first
    class, the first 1000 of them.
    """

    baseline: str
    other: str
    agreement: Agreement
    topk: list[TopKChange] = field(default_factory=list)
    identical: int = 0
    ties: int = 0
    changed: list[ChangedAnswer] = field(default_factory=list)

    def __post_init__(self) -> None:
        for entry in self.topk:
            PairedCounts(self.agreement.example_count, entry.lost, entry.gained)

    @property
    def worst_first(self) -> list[ChangedAnswer]:
        """The changes with lost answers first, then gained, then neither; in each group exact ties come last."""
        return sorted(self.changed, key=lambda found: (_WORST_FIRST.index(found.effect), found.tie))


class ExampleAnswer(Struct, frozen=True):
    """One configuration's best classes for one example with raw scores; ``rank`` of the right label, from 0."""

    classes: list[int]
    scores: list[float | None]
    rank: int | None
    invoke_us: float


class ExampleRecord(Struct, frozen=True):
    """One example with the answer of each configuration that finished it."""

    example: str
    truth: str
    answers: dict[str, ExampleAnswer]


class TopKPart(Struct, frozen=True):
    """The answers of a classifier: ``classified`` by configuration, ``examples`` on request."""

    classified: dict[str, Classified]
    comparisons: list[Comparison]
    examples: list[ExampleRecord] | None = None

    def answers_of(self, configuration: str) -> list[ExampleAnswer]:
        """The recorded answers of a configuration in order; none unless every example has one."""
        recorded = [example.answers.get(configuration) for example in self.examples or []]
        answers = [answer for answer in recorded if answer is not None]
        return answers if len(answers) == len(recorded) else []


MOST: Final = 10
"""The metrics are of Top-1 to Top-10."""


def topk_of(result: EvaluationResult) -> TopKPart | None:
    """The answers of a classifier in a result; None where it has none."""
    found: TopKPart | None = getattr(result.part, "topk", None)
    return found


def _classified(result: EvaluationResult, configuration: ConfigurationResult) -> ClassificationMetrics | None:
    part = topk_of(result)
    answered = part.classified.get(configuration.name) if part else None
    return answered.metrics if answered else None


def _comparison(result: EvaluationResult, configuration: ConfigurationResult) -> Comparison | None:
    part = topk_of(result)
    return against_reference(result, part.comparisons, configuration) if part else None


def _share(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> Share | None:
    """The counts behind an accuracy."""
    classified = _classified(result, configuration)
    topk = classified.topk if classified else None
    if topk is None or not topk.example_count or len(topk.accuracies) < k:
        return None
    return Share(round(topk.accuracies[k - 1] * topk.example_count), topk.example_count)


def _accuracy(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    share = _share(k, result, configuration)
    return ABSENT if share is None else share.successes / share.count


def _interval(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> Interval | None:
    part = topk_of(result)
    answered = part.classified.get(configuration.name) if part else None
    return answered.topk_intervals[k - 1] if answered and len(answered.topk_intervals) >= k else None


def _change(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> Change | None:
    comparison = _comparison(result, configuration)
    if comparison is None or not comparison.agreement.example_count:
        return None
    count = comparison.agreement.example_count
    flips = [PairedCounts(count, entry.lost, entry.gained) for entry in comparison.topk if entry.k == k]
    return CountedChange(flips[0]) if flips else None


def _each(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> list[float]:
    """1 for each right answer, 0 for each wrong one; none unless every example has one."""
    part = topk_of(result)
    answers = part.answers_of(configuration.name) if part else []
    return [float(answer.rank is not None and answer.rank < k) for answer in answers]


def agreement(result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    """The share of examples with the same first answer as the reference, 0..1."""
    comparison = _comparison(result, configuration)
    return ABSENT if comparison is None else comparison.agreement.share


def _distinct_answers(result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    classified = _classified(result, configuration)
    count = classified.distinct_answers if classified else None
    return ABSENT if count is None else float(count)


def _topk(k: int) -> Metric:
    return Metric(
        f"top{k}",
        f"Top-{k} accuracy, 0..1",
        partial(_accuracy, k),
        better="higher",
        is_share=True,
        heading=f"top-{k}" if k in (1, 5) else "",
        interval=partial(_interval, k),
        share=partial(_share, k),
        change=partial(_change, k),
        each=partial(_each, k),
        ranked=k,
    )


METRICS: Final = (
    *(_topk(k) for k in range(1, MOST + 1)),
    Metric(
        "agreement",
        "imagenet: share of examples with the reference's best class, 0..1",
        agreement,
        better="higher",
        is_share=True,
        of_reference=True,
    ),
    Metric("distinct_answers", "imagenet: how many classes came first at least once", _distinct_answers),
)
