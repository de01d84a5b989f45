"""What a result says of a run on examples that were drawn: which ones, and what is known of all by them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class DrawnExample(Struct, frozen=True):
    """An example that was run: the reference's ``lead``, by which it was drawn, and the ``chance`` that it had.

    The chance is that among the examples that were left, 0..1.
    """

    example: str
    lead: float
    chance: float


class SampledFigure(Struct, frozen=True):
    """A figure of all examples: that of the ``reference``, and the ``value`` of the configuration as an estimate.

    ``low`` and ``high`` are bounds of the latter, each with 95 % confidence, however often was looked; an estimate
    beyond them is moved to the nearer one. Before that it has no bias after a number of examples that is fixed
    beforehand; of a run that ends when its limit is decided it has one, and the bounds hold all the same.
    """

    reference: float
    value: float
    low: float
    high: float


class SampledAnswer(Struct, frozen=True):
    """Whether a configuration keeps the limit: ``open`` where too few examples were run to tell.

    It is ``open``, without figures, too where it was given up or has no answer.
    ``decided_after`` counts the examples after which that was known, or all that were run. ``figures`` are by the names
    that limits use.
    """

    answer: Literal["kept", "broken", "open"]
    decided_after: int
    figures: dict[str, SampledFigure]


class Sampling(Struct, frozen=True):
    """How the examples were drawn, in order, and what came of it.

    ``limit`` is about the figure of all ``examples``, those on which the reference has an answer. ``stops``: the run
    ends as soon as every configuration is decided. ``reference_run`` is the folder that the reference's answers are
    from, empty where they are of this run. ``answers`` are by configuration.
    Each of the ``shards`` drew from examples of its own; they stand one after the other in ``drawn``.
    """

    limit: str
    stops: bool
    seed: int
    examples: int
    reference_run: str
    drawn: list[DrawnExample]
    answers: dict[str, SampledAnswer]
    shards: int = 1

    @property
    def is_part(self) -> bool:
        """Whether not all examples were run, so that figures of the tests are those that the drawn ones suggest."""
        return len(self.drawn) < self.examples
