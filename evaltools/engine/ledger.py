"""What the records of a pass amount to: which examples are done, what was given up, why it stopped."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, Generic, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.engine.execution import Execution
from evaltools.engine.records import Failures, Records
from evaltools.engine.steps import Observation, Record, Steps

Stop = Literal["interrupted", "too many failed examples", "every configuration was given up"]
ALL_GIVEN_UP: Final[Stop] = "every configuration was given up"


def failures_of(records: Iterable[Record[Any]]) -> Failures:
    """Those of the records of one example."""
    return {record.configuration: record.failure for record in records}


class GivenUp(Struct, frozen=True):
    """A configuration that is not tried any more: after which example, and why."""

    after: int
    reason: str


class Tally(Struct):
    """Counts of finished examples: failed ones in all, and per configuration."""

    done: int = 0
    failed_examples: int = 0
    failed: dict[str, int] = field(default_factory=dict)

    def add(self, failures: Failures) -> None:
        """Count one example."""
        self.done += 1
        self.failed_examples += any(failure is not None for failure in failures.values())
        for name, failure in failures.items():
            self.failed[name] = self.failed.get(name, 0) + (failure is not None)


class Ledger:
    """Settles examples in their own order, however they are finished, so that the outcome is always the same.

    The run stops, as ``execution`` says, with
    too many failed examples, or when all configurations but the ``reference`` are given up.
    """

    def __init__(
        self,
        examples: Sequence[int],
        configurations: Sequence[str],
        reference: str | None = None,
        execution: Execution = Execution(),
    ) -> None:
        self.tally: Final = Tally(failed=dict.fromkeys(configurations, 0))
        self.given_up: Final[dict[str, GivenUp]] = {}
        self.stopped: Stop | None = None
        self.last_settled = -1
        self._order = array("q", examples)
        self._needed = [name for name in configurations if name != reference]
        self._execution = execution
        self._waiting: dict[int, Failures] = {}
        self._in_a_row = dict.fromkeys(configurations, 0)
        self._last_reason: dict[str, str] = {}

    @property
    def waiting(self) -> int:
        """How many examples wait for one before them."""
        return len(self._waiting)

    def add(self, example: int, failures: Failures) -> None:
        """Take the failures of an example, one a configuration, and settle what can be settled now."""
        self._waiting[example] = failures
        while self.stopped is None and self.tally.done < len(self._order):
            following = self._order[self.tally.done]
            if following not in self._waiting:
                return
            self._settle(following, self._waiting.pop(following))

    def end(self, why: Stop) -> None:
        """Stop before the next example that is not settled: the shard that had it ended there, and said why."""
        if self.stopped is not None or self.tally.done == len(self._order):
            return
        if why == ALL_GIVEN_UP:
            self._given_up_by_a_shard(self._needed)
        self.stopped = why

    def _given_up_by_a_shard(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.given_up:
                reason = f"a shard of this run gave it up; {self._last_reason.get(name, 'its reason is there')}"
                self.given_up[name] = GivenUp(self.last_settled, reason)

    def _settle(self, example: int, failures: Failures) -> None:
        self._given_up_by_a_shard(name for name in self._in_a_row if name not in failures)
        counted = {name: failure for name, failure in failures.items() if name not in self.given_up}
        self.tally.add(counted)
        self.last_settled = example
        for name, failure in counted.items():
            self._in_a_row[name] = self._in_a_row[name] + 1 if failure is not None and failure.crashed else 0
            if failure is not None and failure.crashed:
                self._last_reason[name] = failure.reason
            if failure is not None and self._in_a_row[name] >= self._execution.max_crashes:
                self.given_up[name] = GivenUp(example, failure.reason)
        most_failed = self._execution.max_failed_examples
        if most_failed is not None and self.tally.failed_examples > most_failed:
            self.stopped = "too many failed examples"
        elif self._needed and all(name in self.given_up for name in self._needed):
            self.stopped = ALL_GIVEN_UP


class PassOutcome(Struct, Generic[Observation], frozen=True):
    """Everything measured in a pass.

    ``records`` holds the records of each configuration in the order of the examples. ``preprocessing_us`` has one value
    per example whose input could be made. ``examples_done`` counts finished examples, failed ones included, up to the
    first that is not finished, ``examples_apart`` those behind it. ``stopped`` says why the pass, or what was measured
    after it, ended too early, if it did. ``given_up`` are configurations whose process died or hung too often.
    ``names`` has the name of each example.
    """

    records: Mapping[str, Collection[Record[Observation]]]
    preprocessing_us: Sequence[int] = ()
    examples_done: int = 0
    examples_apart: int = 0
    failed_examples: int = 0
    stopped: Stop | None = None
    given_up: Mapping[str, GivenUp] = field(default_factory=dict)
    names: Sequence[str] = ()

    def interrupted(self) -> PassOutcome[Observation]:
        """The same after Ctrl-C, which is why the pass stopped unless it had stopped before."""
        return self if self.stopped is not None else replace(self, stopped="interrupted")

    def by_example(self) -> Iterator[dict[str, Record[Observation]]]:
        """The records of each example by configuration, all of them in one go, in the order of the examples.

        >>> cpu = [Record(0, "cpu", (7,), 0.5), Record(1, "cpu", (8,), 0.25)]
        >>> gpu = [Record(1, "gpu", (2,), 0.25)]
        >>> [list(together) for together in PassOutcome({"cpu": cpu, "gpu": gpu}).by_example()]
        [['cpu'], ['cpu', 'gpu']]
        """
        in_order = heapq.merge(*self.records.values(), key=_number)
        for _, together in groupby(in_order, key=_number):
            yield {record.configuration: record for record in together}


def _number(record: Record[Any]) -> int:
    return record.example


def finished_examples(
    records: Records[Any], configurations: Collection[str], max_crashes: int
) -> Iterator[tuple[int, Failures]]:
    """The examples that need not be run again, in order, with the failure of each of these configurations.

    One that lacks the record of a configuration is not finished, unless that had so many crashes in a row that a
    journal gave it up.
    """
    must_have = set(configurations) - records.given_up(max_crashes)
    for example, failures in records.failures():
        if must_have <= set(failures):
            yield example, {name: failure for name, failure in failures.items() if name in configurations}


def settle(
    steps: Steps[Observation],
    configurations: Sequence[str],
    records: Records[Observation],
    reference: str | None,
    execution: Execution,
    examples: Sequence[int] | None = None,
    ended: Stop | None = None,
) -> PassOutcome[Observation]:
    """The outcome of the records of a run; nothing is run. ``examples`` are those that count, None for all.

    ``ended`` is why there may be no record of an example at all.
    """
    wanted = range(len(steps.names)) if examples is None else examples
    ledger, numbers = Ledger(wanted, configurations, reference, execution), set(wanted)
    for example, failures in finished_examples(records, configurations, execution.max_crashes):
        if example in numbers:
            ledger.add(example, failures)
    if ended is not None:
        ledger.end(ended)
    return outcome_of(records, ledger, configurations, steps.names)


def outcome_of(
    records: Records[Observation], ledger: Ledger, configurations: Iterable[str], names: Sequence[str]
) -> PassOutcome[Observation]:
    """The outcome of the examples that the ledger has settled; records of a configuration end where it was given up."""
    ends = {
        name: ledger.given_up[name].after if name in ledger.given_up else ledger.last_settled for name in configurations
    }
    return PassOutcome(
        records={name: records.of(name, end) for name, end in ends.items()},
        preprocessing_us=records.preprocessing_us(ledger.last_settled),
        examples_done=ledger.tally.done,
        examples_apart=ledger.waiting,
        failed_examples=ledger.tally.failed_examples,
        stopped=ledger.stopped,
        given_up=ledger.given_up,
        names=names,
    )
