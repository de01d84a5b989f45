"""Settles finished examples in their order, however the workers finish them; says when to give up or to stop."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct, field

from evaltools.engine.steps import Failure, Record

Stop = Literal["interrupted", "too many failed examples", "every configuration was given up"]
ALL_GIVEN_UP: Final[Stop] = "every configuration was given up"
Fates = Mapping[str, Failure | None]
"""The failure of each configuration that was tried, None where there was none."""


def fates_of(records: Iterable[Record[Any]]) -> Fates:
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

    def add(self, fates: Fates) -> None:
        """Count one example."""
        self.done += 1
        self.failed_examples += any(failure is not None for failure in fates.values())
        for name, failure in fates.items():
            self.failed[name] = self.failed.get(name, 0) + (failure is not None)


class Ledger:
    """Settles examples in their own order, however they are finished, so that the outcome is always the same.

    A fate is the failure of each configuration, None where it did not fail. A configuration is given up after
    ``max_crashes`` examples in a row at which its process died or hung. The run stops with more than
    ``max_failed_examples`` failed examples, or when all configurations of ``needed`` are given up.
    """

    def __init__(
        self,
        examples: Sequence[int],
        configurations: Sequence[str],
        needed: Sequence[str],
        max_crashes: int,
        max_failed_examples: int | None,
    ) -> None:
        self.tally: Final = Tally(failed=dict.fromkeys(configurations, 0))
        self.given_up: Final[dict[str, GivenUp]] = {}
        self.stopped: Stop | None = None
        self.last_settled = -1
        self._order = array("q", examples)
        self._needed = needed
        self._max_crashes = max_crashes
        self._max_failed = max_failed_examples
        self._waiting: dict[int, Fates] = {}
        self._in_a_row = dict.fromkeys(configurations, 0)
        self._last_reason: dict[str, str] = {}

    @property
    def waiting(self) -> int:
        """How many examples wait for one before them."""
        return len(self._waiting)

    def add(self, example: int, fates: Fates) -> None:
        """Take the fates of an example, and settle all examples that can be settled now."""
        self._waiting[example] = fates
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

    def _settle(self, example: int, fates: Fates) -> None:
        self._given_up_by_a_shard(name for name in self._in_a_row if name not in fates)
        counted = {name: failure for name, failure in fates.items() if name not in self.given_up}
        self.tally.add(counted)
        self.last_settled = example
        for name, failure in counted.items():
            self._in_a_row[name] = self._in_a_row[name] + 1 if failure is not None and failure.crashed else 0
            if failure is not None and failure.crashed:
                self._last_reason[name] = failure.reason
            if failure is not None and self._in_a_row[name] >= self._max_crashes:
                self.given_up[name] = GivenUp(example, failure.reason)
        if self._max_failed is not None and self.tally.failed_examples > self._max_failed:
            self.stopped = "too many failed examples"
        elif self._needed and all(name in self.given_up for name in self._needed):
            self.stopped = ALL_GIVEN_UP
