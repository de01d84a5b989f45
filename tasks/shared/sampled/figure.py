"""A figure that is a mean over examples, so that drawn examples tell it of all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from msgspec import Struct

from evaltools.engine.task import Example, Observation
from evaltools.result.sampling import SampledFigure

if TYPE_CHECKING:
    import numpy.typing as npt

    from evaltools.gates.criteria import Criterion

    Numbers = np.ndarray[Any, np.dtype[np.float64]]


class OfReference(Struct, frozen=True):
    """What the reference scores of each example, and how much that counts, each ``(N,)``.

    The mean weight is 1, or each is 0 where there is nothing to count.
    """

    scores: Numbers
    weights: Numbers

    @property
    def mean(self) -> float:
        """The figure of the reference."""
        return float(np.average(self.scores, weights=self.weights))

    def without(self, examples: npt.NDArray[np.int64]) -> OfReference:
        """The same where some examples, given by their numbers, count nothing; the others keep their weights."""
        weights = self.weights.copy()
        weights[examples] = 0.0
        return OfReference(self.scores, weights)


class DrawnFigure(Struct, Generic[Observation], frozen=True):
    """A mean over examples of a score from ``lowest`` to ``highest``, and how it is read of what was observed.

    ``score`` takes an example and what was observed of the reference and of a configuration, and gives None where there
    is no score. ``size`` says by what was observed of the reference how much an example counts, None: all alike.
    ``whole``: losses are whole numbers where an example counts 1. ``lower_is_better``: a larger score is a loss.
    ``counts_among_others``: how much an example counts depends on which others there are, so that the figure of all is
    no mean of those of parts.

    The loss of an example is the reference's score less that of the configuration, as a share of the span from lowest
    to highest, times its weight; so the mean loss over all examples is the change of the figure by that span.

    >>> figure = DrawnFigure(lambda _example, _reference, own: own, highest=10.0, size=lambda _example, own: own)
    >>> own = figure.of_reference([(Example(0, "a"), 2.0), (Example(1, "b"), 6.0)])
    >>> own.mean, own.weights.tolist(), figure.loss(own, 1, 5.0)
    (5.0, [0.5, 1.5], 0.15)
    """

    score: Callable[[Example, Observation, Observation], float | None]
    lowest: float = 0.0
    highest: float = 1.0
    size: Callable[[Example, Observation], float] | None = None
    whole: bool = False
    lower_is_better: bool = False
    counts_among_others: bool = False

    @property
    def _span(self) -> float:
        """From lowest to highest, negative where a larger score is a loss."""
        span = self.highest - self.lowest
        return -span if self.lower_is_better else span

    def of_reference(self, observed: Sequence[tuple[Example, Observation]]) -> OfReference:
        """What the reference scores in each example; one without a score counts nothing."""
        scores = [self.score(example, each, each) for example, each in observed]
        sizes = [1.0 if self.size is None else self.size(example, each) for example, each in observed]
        sizes = [0.0 if score is None else size for score, size in zip(scores, sizes, strict=True)]
        mean = sum(sizes) / len(sizes)
        return OfReference(
            np.array([self.lowest if score is None else score for score in scores], np.float64),
            np.array(sizes, np.float64) / (mean or 1.0),
        )

    def is_whole(self, own: OfReference) -> bool:
        """Whether all losses are whole numbers: those of examples that count otherwise than others are not.

        >>> figure = DrawnFigure(lambda example, _reference, _own: 1.0 if example.index else None, whole=True)
        >>> examples = [(Example(0, "a"), ()), (Example(1, "b"), ()), (Example(2, "c"), ())]
        >>> figure.is_whole(figure.of_reference(examples)), figure.is_whole(figure.of_reference(examples[1:]))
        (False, True)
        """
        return self.whole and bool((own.weights == 1).all())

    def loss(self, own: OfReference, number: int, score: float | None) -> float:
        """The loss of an example with this score, NaN without one; 0 where the example does not count."""
        if not own.weights[number]:
            return 0.0
        if score is None:
            return math.nan
        return float(own.weights[number] * (own.scores[number] - score) / self._span)

    def bounds(self, own: OfReference) -> tuple[Numbers, Numbers]:
        """The smallest and the largest loss that each example can have, ``(N,)``."""
        ends = [own.weights * (own.scores - end) / self._span for end in (self.lowest, self.highest)]
        return np.minimum(*ends), np.maximum(*ends)

    def limits(self, own: OfReference, limit: Criterion) -> npt.NDArray[np.float64]:
        """The limit on the mean loss that means the same as one on the figure, of each example, ``(N,)``."""
        if limit.kind in ("drop", "rise"):
            return own.weights * limit.value / abs(self._span)
        return own.weights * (own.scores - limit.value) / self._span

    def known(self, own: OfReference, loss: float, least: float, most: float) -> SampledFigure:
        """The figure of a configuration whose mean loss is known with its bounds."""
        value, *ends = (own.mean - each * self._span for each in (loss, least, most))
        return SampledFigure(own.mean, value, min(ends), max(ends))
