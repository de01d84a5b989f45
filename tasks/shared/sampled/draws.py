"""The draws of a run, or of a shard of one: which examples come next, and what is known by those that were drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Generic

import numpy as np

from evaltools.engine.execution import Shard
from evaltools.engine.journal import TaskJournal
from evaltools.engine.task import Example, Observation, Task
from evaltools.result.sampling import DrawnExample, SampledAnswer, SampledFigure, Sampling
from evaltools.stats.sampled.course import CONFIDENCE, Course
from evaltools.stats.sampled.drawing import Block
from evaltools.stats.sampled.parts import PART_CONFIDENCE, total_of
from evaltools.stats.sampled.strata import strata_of
from evaltools.tasks.shared.options.sampling import SamplingAsked
from evaltools.tasks.shared.sampled.population import Numbers, Population
from evaltools.tasks.shared.sampled.setup import SamplingSetup


def sampling_of(
    asked: SamplingAsked,
    examples: int = 0,
    drawn: Sequence[DrawnExample] = (),
    answers: Mapping[str, SampledAnswer] = {},
    shards: int = 1,
) -> Sampling:
    """What a result says of draws from so many ``examples``, by default of none."""
    return Sampling(
        limit=asked.limit.text,
        stops=asked.stops,
        seed=asked.seed,
        examples=examples,
        reference_run="" if asked.reference_run is None else str(asked.reference_run),
        drawn=list(drawn),
        answers=dict(answers),
        shards=shards,
    )


class Draws(Generic[Observation]):
    """The draws of a ``shard``, which may be the whole run, for the ``tests``, by what is recorded.

    Raises :class:`UsageError` as :class:`Population` does.
    """

    def __init__(
        self,
        task: Task[Observation],
        records: TaskJournal[Observation],
        reference: str,
        tests: Sequence[str],
        setup: SamplingSetup[Observation],
        shard: Shard,
    ) -> None:
        is_part = shard.count > 1
        numbers = shard.numbers_of(len(task.examples))
        self.population: Final = Population(records, reference, setup, numbers, is_part)
        self.blocks: Final[list[Block]] = []
        self._asked = setup.asked
        bounds, limits, is_whole = self._limited()
        self.strata: Final = strata_of(self.population.leads, *bounds)
        self.courses: Final = {
            name: Course(
                self.strata,
                limits,
                setup.asked.seed,
                whole=is_whole,
                part=shard.index + 1 if is_part else 0,
                confidence=PART_CONFIDENCE if is_part else CONFIDENCE,
            )
            for name in tests
        }
        self._values: dict[str, list[dict[str, Numbers]]] = {name: [] for name in tests}
        self._given_up: set[str] = set()

    def _limited(self) -> tuple[tuple[Numbers, Numbers], Numbers, bool]:
        """The bounds of the limited losses, their limits, ``(N,)``, and whether they are whole numbers.

        Of a part in which nothing counts all are 0, so that it is over after a block, which the other figures take.
        """
        population, limit = self.population, self._asked.limit
        if limit.figure not in population.own:
            nothing = np.zeros(len(population.examples))
            return (nothing, nothing), nothing, True
        figure, own = population.figures[limit.figure], population.own[limit.figure]
        return figure.bounds(own), figure.limits(own, limit), population.is_whole(limit.figure)

    def give_up(self, names: Collection[str]) -> None:
        """Decide nothing of these tests any more."""
        self._given_up |= set(names)

    def next_block(self) -> Block | None:
        """Draw the examples that come next, None at the end; :meth:`take` takes what they gave."""
        courses = [course for name, course in self.courses.items() if name not in self._given_up]
        undecided = [course for course in courses if course.answer == "open"]
        if not courses or courses[0].is_whole or (self._asked.stops and not undecided):
            return None
        return (undecided or courses)[0].next_block()

    def examples_of(self, block: Block) -> list[Example]:
        """The examples of a block, in the order in which they were drawn."""
        return [self.population.examples[place] for place in block.examples]

    def take(self, block: Block) -> None:
        """Read what the tests gave for a block."""
        self.blocks.append(block)
        for name, course in self.courses.items():
            losses = self.population.losses(name, block.examples.tolist())
            self._values[name].append(losses)
            course.add(block, losses.get(self._asked.limit.figure, np.zeros(len(block.examples))))

    def facts(self) -> Sampling:
        """What is known of all examples."""
        answers = {name: self._answer(name, course) for name, course in self.courses.items()}
        return sampling_of(self._asked, len(self.population.examples), self.drawn(), answers)

    def drawn(self) -> list[DrawnExample]:
        """The examples that were drawn, in that order."""
        population = self.population
        return [
            DrawnExample(population.examples[place].id, population.leads[place], chance)
            for block in self.blocks
            for place, chance in zip(block.examples.tolist(), block.chances.tolist(), strict=True)
        ]

    def _answer(self, name: str, course: Course) -> SampledAnswer:
        """What is known of a configuration: nothing where it was given up or has no answer at all.

        A part in which the limited figure counts nothing says nothing of the limit.
        """
        if name in self._given_up or not course.has_answers:
            return SampledAnswer("open", course.decided_after, {})
        answer = course.answer if self._asked.limit.figure in self.population.own else "open"
        return SampledAnswer(answer, course.decided_after, self._known(name, course))

    def _known(self, name: str, course: Course) -> dict[str, SampledFigure]:
        """Of all examples, as the drawn ones suggest; none where all were run, so that the figures are known."""
        if course.is_whole or not self.blocks:
            return {}
        return {figure: self._figure(name, figure, course) for figure in self.population.own}

    def _figure(self, name: str, figure: str, course: Course) -> SampledFigure:
        read, own, count = self.population.figures[figure], self.population.own[figure], len(self.population.examples)
        values = [losses[figure] for losses in self._values[name]]
        total = total_of(self.strata, read.bounds(own), self.blocks, values, self.population.is_whole(figure))
        if figure == self._asked.limit.figure:
            total = total.within(*course.allowed)
        return read.known(own, total.estimate / count, total.low / count, total.high / count)
