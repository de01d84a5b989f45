"""The pass over drawn examples: the reference runs all, the tests those that are drawn, until all is decided."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic

import numpy as np
import numpy.typing as npt

from evaltools.engine import Example, Journal, PassOptions, PassOutcome, StageTimes, Tally, Task, run_pass
from evaltools.engine.journal import TaskJournal
from evaltools.engine.preparation import Preparer
from evaltools.engine.run import settle
from evaltools.engine.stages import Span
from evaltools.engine.task import Observation
from evaltools.errors import UsageError
from evaltools.result.sampling import DrawnExample, SampledAnswer, SampledFigure, Sampling
from evaltools.runtime import Session
from evaltools.stats.sampled.course import Course, bounds_of_total, looks_at
from evaltools.stats.sampled.drawing import Block
from evaltools.stats.sampled.evidence import estimated_total
from evaltools.stats.sampled.strata import strata_of
from evaltools.tasks.shared.drawn_figure import DrawnFigure, OfReference
from evaltools.tasks.shared.elsewhere import OtherMachines
from evaltools.tasks.shared.options.sampling import SamplingAsked

Numbers = npt.NDArray[np.float64]
Sessions = Mapping[str, Session]
Progress = Callable[[str, int], Any]
REFERENCE_PHASE: Final = "reference"


@dataclass(frozen=True)
class SamplingSetup(Generic[Observation]):
    """What a task says of examples that are drawn.

    ``lead`` takes an example and what was observed of the reference, and says how sure it is: the smaller, the sooner
    another configuration may answer otherwise. ``figures`` takes all examples with what was observed of the reference,
    and gives those that can be known by some of the examples, by name.
    ``beside_reference``: what is observed of a configuration depends on the reference's outputs, so that the reference
    runs beside it once more.
    """

    asked: SamplingAsked
    lead: Callable[[Example, Observation], float]
    figures: Callable[[Sequence[Example], Sequence[Observation]], Mapping[str, DrawnFigure[Observation]]]
    beside_reference: bool = False


@dataclass(frozen=True)
class Elsewhere:
    """The tests that run on other machines, and the ``names`` of those that can."""

    tests: OtherMachines
    names: Sequence[str]


@dataclass(frozen=True)
class SampledPass:
    """The outcome of such a pass, what it says of all examples, and those that were drawn, in their own order."""

    outcome: PassOutcome[Any]
    sampling: Sampling
    drawn: Sequence[Example]


def run_sampled(
    task: Task[Observation],
    workers: Sequence[Sessions],
    journal: Journal,
    reference: str | None,
    setup: SamplingSetup[Observation],
    options: PassOptions,
    progress: Progress,
    on_spans: Callable[[Sequence[Span]], None],
    makers: Sequence[Preparer],
    elsewhere: Elsewhere | None = None,
) -> SampledPass:
    """Run the reference on all examples, then the tests on blocks of drawn ones, here or ``elsewhere``.

    What the journal has is not run again: blocks are drawn by the seed and by recorded answers alone. ``progress`` is a
    context that is entered with a phase and its number of examples. Raises :class:`UsageError` where the reference has
    no answers.
    """
    if reference not in workers[0]:
        raise UsageError(
            "--sample=informed draws by the reference's answers, and the reference cannot run here; leave --sample out"
        )
    return _SampledRun(
        task, workers, journal, str(reference), setup, options, progress, on_spans, makers, elsewhere
    ).run()


class _SampledRun(Generic[Observation]):
    """One pass; ``_own`` has what the reference itself scores, by figure, of the examples that it answered."""

    def __init__(
        self,
        task: Task[Observation],
        workers: Sequence[Sessions],
        journal: Journal,
        reference: str,
        setup: SamplingSetup[Observation],
        options: PassOptions,
        progress: Progress,
        on_spans: Callable[[Sequence[Span]], None],
        makers: Sequence[Preparer],
        elsewhere: Elsewhere | None,
    ) -> None:
        self._task, self._workers, self._journal = task, workers, journal
        self._reference, self._setup, self._options = reference, setup, options
        self._progress, self._on_spans, self._makers = progress, on_spans, makers
        self._elsewhere = elsewhere
        self._tests = [name for name in workers[0] if name != reference]
        self._tests += elsewhere.names if elsewhere is not None else []
        self._records = TaskJournal(journal, task.examples, task.observation_type)
        self._stages = StageTimes()
        self._elapsed_s = 0.0
        self._examples_run = 0
        self._population: list[Example] = []
        self._leads: list[float] = []
        self._figures: Mapping[str, DrawnFigure[Observation]] = {}
        self._own: dict[str, OfReference] = {}
        self._blocks: list[Block] = []
        self._values: dict[str, list[dict[str, Numbers]]] = {name: [] for name in self._tests}
        self._courses: dict[str, Course] = {}
        self._given_up: set[str] = set()

    def run(self) -> SampledPass:
        """Run the whole pass."""
        with self._progress(REFERENCE_PHASE, len(self._task.examples)) as on_progress:
            last = self._pass([self._reference], list(self._task.examples), on_progress)
        self._examples_run = 0
        if last.stopped is not None:
            return self._ended(replace(last, examples_done=0), [])
        self._read_reference()
        drawn: list[Example] = []
        last = PassOutcome({})
        with self._progress("", len(self._population)) as on_progress:
            tell = _each_once(on_progress)
            try:
                while (leading := self._leading()) is not None:
                    block = leading.next_block()
                    drawn += [self._population[number] for number in block.examples]
                    last = self._pass_of_tests(drawn, tell)
                    if last.stopped is not None:
                        break
                    self._take(block)
            except KeyboardInterrupt:
                last = last.interrupted()
        return self._ended(last, drawn)

    def _pass(
        self, names: Sequence[str], examples: Sequence[Example], on_progress: Callable[[Tally], None]
    ) -> PassOutcome[Observation]:
        """Run those of the examples that have no record yet."""
        is_first = self._reference in names
        beside = [] if is_first or not self._setup.beside_reference else [self._reference]
        workers = [{name: sessions[name] for name in (*beside, *names)} for sessions in self._workers]
        outcome = run_pass(
            self._task,
            workers,
            self._journal,
            self._reference if is_first or beside else None,
            self._options,
            examples,
            on_progress,
            self._on_spans,
            self._makers,
            frozenset(beside),
        )
        self._stages.merge(outcome.stages)
        self._elapsed_s += outcome.elapsed_s
        self._examples_run += outcome.examples_run
        self._given_up |= set(outcome.given_up)
        return outcome

    def _pass_of_tests(
        self, drawn: Sequence[Example], on_progress: Callable[[Tally], None]
    ) -> PassOutcome[Observation]:
        """Run the tests on those of the examples that have no record yet, wherever that is."""
        if self._elsewhere is None:
            return self._pass(self._tests, drawn, on_progress)
        start = time.perf_counter()
        known = set[int]().union(*(self._journal.examples_of(name) for name in self._tests))
        missing = [example for example in drawn if example.index not in known]
        if missing:
            self._elsewhere.tests.run(missing, self._journal)
        outcome = settle(self._task, self._tests, self._journal, None, self._options, drawn)
        self._elapsed_s += time.perf_counter() - start
        self._examples_run += len(missing)
        self._given_up |= set(outcome.given_up)
        on_progress(Tally(outcome.examples_done, outcome.failed_examples, dict.fromkeys(self._tests, 0)))
        return outcome

    def _read_reference(self) -> None:
        """Find out on which examples the reference has answers, how sure it is, and what it scores."""
        observed: list[Observation] = []
        for record in self._records.read(self._reference, len(self._task.examples)):
            if record.observation is not None:
                self._population.append(record.example)
                observed.append(record.observation)
        if not observed:
            raise UsageError(
                "the reference has no answer to any example, and --sample=informed draws by these; leave --sample out"
            )
        pairs = list(zip(self._population, observed, strict=True))
        self._leads = [_number(self._setup.lead(example, each)) for example, each in pairs]
        self._figures = self._setup.figures(self._population, observed)
        known = {name: figure.of_reference(pairs) for name, figure in self._figures.items()}
        self._own = {name: own for name, own in known.items() if own.weights.any()}
        limit = self._setup.asked.limit
        if limit.figure not in self._own:
            raise UsageError(
                f"--limit={limit.text!r}: the examples have nothing that {limit.figure} counts, so that it cannot be "
                "limited; limit another figure"
            )
        figure, own = self._figures[limit.figure], self._own[limit.figure]
        strata = strata_of(self._leads, *figure.bounds(own))
        limits = figure.limits(own, limit)
        seed = self._setup.asked.seed
        self._courses = {name: Course(strata, limits, seed, whole=figure.whole) for name in self._tests}

    def _leading(self) -> Course | None:
        """The course that draws the next block, None at the end."""
        courses = [course for name, course in self._courses.items() if name not in self._given_up]
        undecided = [course for course in courses if course.answer == "open"]
        if not courses or courses[0].is_whole or (self._setup.asked.stops and not undecided):
            return None
        return (undecided or courses)[0]

    def _take(self, block: Block) -> None:
        """Give the values of a block to all courses."""
        self._blocks.append(block)
        for name, course in self._courses.items():
            values = self._values_of(name, block)
            self._values[name].append(values)
            course.add(block, values[self._setup.asked.limit.figure])

    def _values_of(self, name: str, block: Block) -> dict[str, Numbers]:
        """By how much a configuration scores worse than the reference, by figure; NaN where it has no score."""
        values = {figure: np.full(len(block.examples), math.nan) for figure in self._own}
        for place, number in enumerate(block.examples):
            example = self._population[number]
            baseline, other = (self._records.record(each, example.index) for each in (self._reference, name))
            if baseline is None or baseline.observation is None or other is None or other.observation is None:
                continue
            for figure, own in self._own.items():
                read = self._figures[figure]
                score = read.score(example, baseline.observation, other.observation)
                values[figure][place] = read.loss(own, number, score)
        return values

    def _ended(self, last: PassOutcome[Any], drawn: Sequence[Example]) -> SampledPass:
        everything = len(self._task.examples)
        outcome = replace(
            last,
            records={name: self._records.records(name, everything) for name in (self._reference, *self._tests)},
            preprocessing_us=self._records.preprocessing_us(everything),
            examples_run=self._examples_run,
            elapsed_s=self._elapsed_s,
            stages=self._stages,
        )
        return SampledPass(outcome, self._facts(), sorted(drawn, key=lambda example: example.index))

    def _facts(self) -> Sampling:
        asked = self._setup.asked
        return Sampling(
            limit=asked.limit.text,
            stops=asked.stops,
            seed=asked.seed,
            examples=len(self._population),
            reference_run="" if asked.reference_run is None else str(asked.reference_run),
            drawn=[
                DrawnExample(self._population[number].id, self._leads[number], chance)
                for block in self._blocks
                for number, chance in zip(block.examples.tolist(), block.chances.tolist(), strict=True)
            ],
            answers={name: self._answer(name, course) for name, course in self._courses.items()},
        )

    def _answer(self, name: str, course: Course) -> SampledAnswer:
        """What is known of a configuration: nothing where it was given up or has no answer at all."""
        if name in self._given_up or not course.has_answers:
            return SampledAnswer("open", course.decided_after, {})
        return SampledAnswer(course.answer, course.decided_after, self._known(name, course))

    def _known(self, name: str, course: Course) -> dict[str, SampledFigure]:
        """Of all examples, as the drawn ones suggest; none where all were run, so that the figures are known."""
        if course.is_whole or not self._blocks:
            return {}
        return {figure: self._figure(name, figure, course) for figure in self._own}

    def _figure(self, name: str, figure: str, course: Course) -> SampledFigure:
        read, own, population = self._figures[figure], self._own[figure], len(self._population)
        strata = course.strata.with_bounds(*read.bounds(own))
        looks = looks_at(strata, self._blocks, [np.nan_to_num(values[figure]) for values in self._values[name]])
        low, high = bounds_of_total(strata, looks, read.whole)
        if figure == self._setup.asked.limit.figure:
            interval = course.interval()
            low, high = interval.low * population, interval.high * population
        low, high = self._possible(name, figure, low, high)
        mean = min(max(estimated_total(population, looks), low), high) / population
        return read.known(own, mean, low / population, high / population)

    def _possible(self, name: str, figure: str, low: float, high: float) -> tuple[float, float]:
        """Bounds of a sum of losses, no farther than the examples that were not drawn can take it."""
        lows, highs = (ends.copy() for ends in self._figures[figure].bounds(self._own[figure]))
        for block, values in zip(self._blocks, self._values[name], strict=True):
            answered = np.isfinite(values[figure])
            lows[block.examples[answered]] = highs[block.examples[answered]] = values[figure][answered]
        low = min(max(low, float(lows.sum())), high)
        return low, max(low, min(high, float(highs.sum())))


def _each_once(on_progress: Callable[[Tally], None]) -> Callable[[Tally], None]:
    """Tells of examples that were not told of before: each pass counts those of earlier ones again."""
    most = 0

    def tell(tally: Tally) -> None:
        nonlocal most
        if tally.done > most:
            most = tally.done
            on_progress(tally)

    return tell


def _number(lead: float) -> float:
    """The lead of an output that is no number tells nothing: 0."""
    return lead if math.isfinite(lead) else 0.0
