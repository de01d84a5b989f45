"""What the shards of a run over drawn examples tell of all examples, by replaying the draws of each."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Generic

import numpy as np
import numpy.typing as npt

from evaltools.engine.execution import Shard
from evaltools.engine.journal import Journal, TaskJournal
from evaltools.engine.run import PassOptions, PassOutcome, settle
from evaltools.engine.task import Example, Observation, Task
from evaltools.result.sampling import SampledAnswer, SampledFigure, Sampling
from evaltools.stats.sampled.course import CONFIDENCE, ends_of_limit
from evaltools.stats.sampled.parts import (
    BOUNDS_CONFIDENCE,
    Total,
    answer_of_all,
    confidence_of_each,
    sum_of,
    total_of,
)
from evaltools.tasks.shared.sampled.draws import Draws, sampling_of
from evaltools.tasks.shared.sampled.population import Numbers, Population, answers_of
from evaltools.tasks.shared.sampled.setup import SampledPass, SamplingSetup, with_all_records


def merge_sampled(
    task: Task[Observation],
    journal: Journal,
    reference: str,
    tests: Sequence[str],
    setup: SamplingSetup[Observation],
    options: PassOptions,
    shards: Sequence[Shard],
) -> SampledPass:
    """Replay the draws of finished ``shards``, all of whose records ``journal`` has, and put them together.

    A shard without an answer of the reference tells nothing. Raises :class:`UsageError` as :class:`Population` does.
    """
    records = TaskJournal(journal, task.examples, task.observation_type)
    answered = {example.index for example, _ in answers_of(records, reference, range(len(task.examples)))}
    drawn: list[Example] = []
    parts = []
    for shard in shards:
        if len(shards) > 1 and answered.isdisjoint(shard.numbers_of(len(task.examples))):
            continue
        part = Draws(task, records, reference, tests, setup, shard)
        drawn += _replay(part, task, journal, tests, options)
        parts.append(part)
    outcome = settle(task, tests, journal, None, options, drawn)
    outcome = with_all_records(outcome, records, [reference, *tests], len(task.examples))
    sampling = (
        parts[0].facts()
        if len(shards) == 1
        else _facts_of_all(records, reference, setup, parts, outcome, range(len(task.examples)))
    )
    return SampledPass(outcome, sampling, sorted(drawn, key=lambda example: example.index))


def _facts_of_all(
    records: TaskJournal[Observation],
    reference: str,
    setup: SamplingSetup[Observation],
    parts: Sequence[Draws[Observation]],
    outcome: PassOutcome[Observation],
    numbers: Collection[int],
) -> Sampling:
    """What several shards tell of all examples; nothing where one was given up, or the run stopped."""
    whole = Population(records, reference, setup, numbers)
    merged = _Merged(setup, whole, parts)
    drawn = [entry for part in parts for entry in part.drawn()]
    is_over = outcome.stopped is not None
    answers = {
        name: SampledAnswer("open", len(drawn), {}) if is_over or name in outcome.given_up else merged.answer(name)
        for name in parts[0].courses
    }
    return sampling_of(setup.asked, len(whole.examples), drawn, answers, len(parts))


def _replay(
    part: Draws[Any], task: Task[Any], journal: Journal, tests: Sequence[str], options: PassOptions
) -> list[Example]:
    """Draw what a shard drew, by its records; returns the examples in that order."""
    drawn: list[Example] = []
    while (block := part.next_block()) is not None:
        drawn += part.examples_of(block)
        outcome = settle(task, tests, journal, None, options, drawn)
        part.give_up(outcome.given_up)
        if outcome.stopped is not None:
            break
        part.take(block)
    return drawn


class _Merged(Generic[Observation]):
    """All examples, and the ``parts`` in which they were drawn.

    A shard weighs its examples among each other. Here each counts as it does among all of them, and so do the sums of
    the parts: they are those of the same draws, whose chances are known whatever an example counts.
    """

    def __init__(
        self, setup: SamplingSetup[Observation], whole: Population[Observation], parts: Sequence[Draws[Observation]]
    ) -> None:
        self._limit: Final = setup.asked.limit
        self._whole, self._parts = whole, parts
        places = {example.index: place for place, example in enumerate(whole.examples)}
        self._places = [np.array([places[example.index] for example in part.population.examples]) for part in parts]

    def answer(self, name: str) -> SampledAnswer:
        """What is known of a configuration.

        A limit is one on a weighted mean, whose value for all examples is the mean of those for the shards, each
        weighted with what its examples count. So each of them is held against the same limit, the sums of what they are
        held against are that for all, and :func:`answer_of_all` takes their answers. Where an example counts otherwise
        among all than in its shard (``counts_among_others``), the shards answered of other figures, and bounds alone
        decide.
        """
        count = sum(len(block.examples) for part in self._parts for block in part.blocks)
        courses = [part.courses[name] for part in self._parts]
        if not any(course.has_answers for course in courses):
            return SampledAnswer("open", count, {})
        limited = self._limit.figure
        losses = self._losses(name)
        total = self._total(limited, losses, BOUNDS_CONFIDENCE)
        most, broken_from = ends_of_limit(self._sum_of_limits(losses), self._whole.is_whole(limited))
        of_parts = [part.courses[name].answer for part in self._parts if limited in part.population.own]
        if self._whole.figures[limited].counts_among_others:
            of_parts = []
        answer = answer_of_all(of_parts, total, most)
        if all(course.is_whole for course in courses):
            return SampledAnswer(answer, count, {})
        figures = self._whole.own.keys()
        totals = {figure: self._total(figure, losses, CONFIDENCE) for figure in figures if figure != limited}
        if answer != "open":
            total = total.within(*((-math.inf, most) if answer == "kept" else (broken_from, math.inf)))
        totals[limited] = total
        return SampledAnswer(answer, count, {figure: self._known(figure, totals[figure], losses) for figure in figures})

    def _losses(self, name: str) -> list[list[dict[str, Numbers]]]:
        """What a configuration lost in each block of each part, by figure."""
        return [
            [self._whole.losses(name, places[block.examples].tolist()) for block in part.blocks]
            for part, places in zip(self._parts, self._places, strict=True)
        ]

    def _total(self, figure: str, losses: Sequence[Sequence[Mapping[str, Numbers]]], confidence: float) -> Total:
        read, own = self._whole.figures[figure], self._whole.own[figure]
        lows, highs = read.bounds(own)
        each = confidence_of_each(confidence, len(self._parts))
        return sum_of(
            [
                total_of(
                    part.strata,
                    (lows[places], highs[places]),
                    part.blocks,
                    [block[figure] for block in blocks],
                    self._whole.is_whole(figure),
                    each,
                )
                for part, places, blocks in zip(self._parts, self._places, losses, strict=True)
            ]
        )

    def _sum_of_limits(self, losses: Sequence[Sequence[Mapping[str, Numbers]]]) -> float:
        """What the sum of losses is held against, which is not about examples that turned out to have no score."""
        limited = self._limit.figure
        limits = self._whole.figures[limited].limits(self._whole.own[limited], self._limit).copy()
        limits[self._without_score(limited, losses)] = 0.0
        return float(limits.sum())

    def _known(self, figure: str, total: Total, losses: Sequence[Sequence[Mapping[str, Numbers]]]) -> SampledFigure:
        """A figure, which is not about examples that turned out to have no score either."""
        own = self._whole.own[figure].without(self._without_score(figure, losses))
        count = float(own.weights.sum())
        return self._whole.figures[figure].known(own, total.estimate / count, total.low / count, total.high / count)

    def _without_score(self, figure: str, losses: Sequence[Sequence[Mapping[str, Numbers]]]) -> npt.NDArray[np.int64]:
        """The places of drawn examples that turned out to have no score."""
        found = [
            places[block.examples[np.isnan(values[figure])]]
            for part, places, blocks in zip(self._parts, self._places, losses, strict=True)
            for block, values in zip(part.blocks, blocks, strict=True)
        ]
        return np.concatenate(found)
