"""The examples that are drawn from, and what the records say of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Generic

import numpy as np

from evaltools.engine.journal import TaskJournal
from evaltools.engine.task import Example, Observation
from evaltools.errors import UsageError
from evaltools.tasks.shared.sampled.figure import DrawnFigure, OfReference
from evaltools.tasks.shared.sampled.setup import SamplingSetup

Numbers = np.ndarray[Any, np.dtype[np.float64]]


class Population(Generic[Observation]):
    """Those ``examples`` of some numbers on which the reference has answers, in order.

    ``leads`` say how sure it is of each. ``figures`` are those that some of the examples tell, ``own`` what the
    reference itself scores in each that counts any example.
    """

    def __init__(
        self,
        records: TaskJournal[Observation],
        reference: str,
        setup: SamplingSetup[Observation],
        numbers: Collection[int],
        is_part: bool = False,
    ) -> None:
        """Read the records of the reference.

        Raises :class:`UsageError` where it has no answer, or the limit is on a figure that counts no example; of a part
        of the examples another part may have some.
        """
        self._records, self._reference = records, reference
        answers = answers_of(records, reference, numbers)
        if not answers:
            raise UsageError(
                "the reference has no answer to any example, and --sample=informed draws by these; leave --sample out"
            )
        self.examples: Final = [example for example, _ in answers]
        self.leads: Final = [_number(setup.lead(example, observed)) for example, observed in answers]
        self.figures: Final[Mapping[str, DrawnFigure[Observation]]] = setup.figures(
            self.examples, [observed for _, observed in answers]
        )
        known = {name: figure.of_reference(answers) for name, figure in self.figures.items()}
        self.own: Final[dict[str, OfReference]] = {name: own for name, own in known.items() if own.weights.any()}
        limit = setup.asked.limit
        if limit.figure not in self.own and not is_part:
            raise UsageError(
                f"--limit={limit.text!r}: the examples have nothing that {limit.figure} counts, so that it cannot be "
                "limited; limit another figure"
            )

    def is_whole(self, figure: str) -> bool:
        """Whether all losses of a figure are whole numbers."""
        return self.figures[figure].is_whole(self.own[figure])

    def losses(self, name: str, places: Sequence[int]) -> dict[str, Numbers]:
        """By how much a configuration scores worse than the reference in the examples at some places, by figure.

        NaN where it has no score.
        """
        values = {figure: np.full(len(places), math.nan) for figure in self.own}
        for number, place in enumerate(places):
            example = self.examples[place]
            baseline, other = (self._records.record(each, example.index) for each in (self._reference, name))
            if baseline is None or baseline.observation is None or other is None or other.observation is None:
                continue
            for figure, own in self.own.items():
                read = self.figures[figure]
                score = read.score(example, baseline.observation, other.observation)
                values[figure][number] = read.loss(own, place, score)
        return values


def answers_of(
    records: TaskJournal[Observation], reference: str, numbers: Collection[int]
) -> list[tuple[Example, Observation]]:
    """The examples of some numbers on which the reference has an answer, in order, with what was observed of it."""
    return [
        (record.example, record.observation)
        for record in records.read(reference, max(numbers, default=0))
        if record.observation is not None and record.example.index in numbers
    ]


def _number(lead: float) -> float:
    """The lead of an output that is no number tells nothing: 0."""
    return lead if math.isfinite(lead) else 0.0
