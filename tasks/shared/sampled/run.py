"""The pass over drawn examples: the reference runs all, the tests those that are drawn, until all is decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic

from msgspec.structs import replace

from evaltools.engine.execution import Shard
from evaltools.engine.journal import Journal, TaskJournal
from evaltools.engine.ledger import Tally
from evaltools.engine.preparation import Preparer
from evaltools.engine.run import PassOptions, PassOutcome, run_pass, settle
from evaltools.engine.stages import Span, StageTimes
from evaltools.engine.task import Example, Observation, Task
from evaltools.errors import UsageError
from evaltools.result.sampling import Sampling
from evaltools.runtime import Session
from evaltools.tasks.shared.sampled.draws import Draws, sampling_of
from evaltools.tasks.shared.sampled.elsewhere import Elsewhere
from evaltools.tasks.shared.sampled.population import answers_of
from evaltools.tasks.shared.sampled.setup import SampledPass, SamplingSetup, with_all_records

Sessions = Mapping[str, Session]
Progress = Callable[[str, int], Any]
REFERENCE_PHASE: Final = "reference"


def run_sampled(
    task: Task[Observation],
    workers: Sequence[Sessions],
    journal: Journal,
    reference: str | None,
    setup: SamplingSetup[Observation],
    options: PassOptions,
    shard: Shard,
    progress: Progress,
    on_spans: Callable[[Sequence[Span]], None],
    makers: Sequence[Preparer],
    elsewhere: Elsewhere | None = None,
) -> SampledPass:
    """Run the reference on all examples, then the tests on blocks of drawn ones, here or ``elsewhere``.

    Of a ``shard``, all examples are its own. What the journal has is not run again: blocks are drawn by the seed and by
    recorded answers alone. ``progress`` is a context that is entered with a phase and its number of examples. A
    shard in which the reference has no answer has nothing to draw. Raises :class:`UsageError` where a whole run has
    none.
    """
    if reference not in workers[0]:
        raise UsageError(
            "--sample=informed draws by the reference's answers, and the reference cannot run here; leave --sample out"
        )
    return _SampledRun(
        task, workers, journal, str(reference), setup, options, shard, progress, on_spans, makers, elsewhere
    ).run()


class _SampledRun(Generic[Observation]):
    """One pass."""

    def __init__(
        self,
        task: Task[Observation],
        workers: Sequence[Sessions],
        journal: Journal,
        reference: str,
        setup: SamplingSetup[Observation],
        options: PassOptions,
        shard: Shard,
        progress: Progress,
        on_spans: Callable[[Sequence[Span]], None],
        makers: Sequence[Preparer],
        elsewhere: Elsewhere | None,
    ) -> None:
        self._task, self._workers, self._journal = task, workers, journal
        self._reference, self._setup, self._options, self._shard = reference, setup, options, shard
        self._progress, self._on_spans, self._makers = progress, on_spans, makers
        self._elsewhere = elsewhere
        self._tests = [name for name in workers[0] if name != reference]
        self._tests += elsewhere.names if elsewhere is not None else []
        self._records = TaskJournal(journal, task.examples, task.observation_type)
        self._stages = StageTimes()
        self._elapsed_s = 0.0
        self._examples_run = 0

    def run(self) -> SampledPass:
        """Run the whole pass."""
        examples = self._shard.of(self._task.examples)
        with self._progress(REFERENCE_PHASE, len(examples)) as on_progress:
            last = self._pass([self._reference], examples, on_progress)
        self._examples_run = 0
        if last.stopped is not None:
            return self._ended(replace(last, examples_done=0), [], sampling_of(self._setup.asked))
        if self._shard.count > 1 and not answers_of(
            self._records, self._reference, self._shard.numbers_of(len(self._task.examples))
        ):
            return self._ended(replace(last, examples_done=0), [], sampling_of(self._setup.asked))
        draws = Draws(self._task, self._records, self._reference, self._tests, self._setup, self._shard)
        drawn: list[Example] = []
        last = PassOutcome({})
        with self._progress("", len(draws.population.examples)) as on_progress:
            tell = _each_once(on_progress)
            try:
                while (block := draws.next_block()) is not None:
                    drawn += draws.examples_of(block)
                    last = self._pass_of_tests(drawn, tell)
                    draws.give_up(last.given_up)
                    if last.stopped is not None:
                        break
                    draws.take(block)
            except KeyboardInterrupt:
                last = last.interrupted()
        return self._ended(last, drawn, draws.facts())

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
        on_progress(Tally(outcome.examples_done, outcome.failed_examples, dict.fromkeys(self._tests, 0)))
        return outcome

    def _ended(self, last: PassOutcome[Any], drawn: Sequence[Example], sampling: Sampling) -> SampledPass:
        names = [self._reference, *self._tests]
        outcome = with_all_records(last, self._records, names, len(self._task.examples))
        outcome = replace(outcome, examples_run=self._examples_run, elapsed_s=self._elapsed_s, stages=self._stages)
        return SampledPass(outcome, sampling, sorted(drawn, key=lambda example: example.index))


def _each_once(on_progress: Callable[[Tally], None]) -> Callable[[Tally], None]:
    """Tells of examples that were not told of before: each pass counts those of earlier ones again."""
    most = 0

    def tell(tally: Tally) -> None:
        nonlocal most
        if tally.done > most:
            most = tally.done
            on_progress(tally)

    return tell
