"""What a result says of a classifier's answers: accuracies, how answers changed, and the answers themselves."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct, field

from evaltools.metrics.classification import Agreement, ClassificationMetrics
from evaltools.metrics.interval import Interval
from evaltools.metrics.proportions import PairedCounts
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
