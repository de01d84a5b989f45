"""The records of a run, read from its journal: from one, or from those of its shards, or of several places."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from operator import itemgetter
from typing import Generic

from msgspec.structs import replace

from evaltools.engine.journal import Journal, Kept
from evaltools.engine.steps import Failure, Observation, Record, RecordDecoder
from evaltools.errors import DataError

Failures = Mapping[str, Failure | None]
"""The failure of each configuration that was tried, None where there was none."""


class Records(Generic[Observation]):
    """The records of so many ``examples`` in ``parts``: journals, with what is appended to their configurations' names.

    Records are read when they are gone through. Every method may raise :class:`DataError`.
    """

    def __init__(
        self, parts: Sequence[tuple[Journal, str]], examples: int, observation_type: type[Observation]
    ) -> None:
        self._parts = parts
        self._examples = examples
        self._decoder: RecordDecoder[Observation] = RecordDecoder(observation_type)

    @property
    def configurations(self) -> list[str]:
        """The names of all configurations that have records."""
        return list(dict.fromkeys(name + suffix for journal, suffix in self._parts for name in journal.records))

    def of(self, configuration: str, last_example: int | None = None) -> RecordsOf[Observation]:
        """The records of one configuration in the order of the examples, up to one of these."""
        places = [(journal, kept) for _, journal, kept in self._kept(configuration, last_example)]
        return RecordsOf(configuration, places, self._decoder)

    def failures(self) -> Iterator[tuple[int, Failures]]:
        """Every example in order, with the failure of each configuration; None where it did not fail."""
        in_order = heapq.merge(*map(self._failures_of, self.configurations), key=itemgetter(0))
        for example, together in groupby(in_order, key=itemgetter(0)):
            yield example, {name: failure for _, name, failure in together}

    def given_up(self, max_crashes: int) -> set[str]:
        """The configurations that some journal gave up: with so many crashes in a row, it has no more of them."""
        found = set()
        for part in self._parts:
            alone = Records([part], self._examples, self._decoder.observation_type)
            for name in alone.configurations:
                crashes = 0
                for _, _, failure in alone._failures_of(name):
                    crashes = crashes + 1 if failure is not None and failure.crashed else 0
                    found |= {name} if crashes == max_crashes else set()
        return found

    def preprocessing_us(self, last_example: int) -> list[int]:
        """Microseconds of making the input of each example up to ``last_example`` where that could be done, in order.

        Where several configurations have the example, those of the first one.
        """
        found: dict[int, int] = {}
        for name in self.configurations:
            for example, _, kept in self._kept(name, last_example):
                if kept.prepared_us is not None:
                    found.setdefault(example, kept.prepared_us)
        return [found[example] for example in sorted(found)]

    def _failures_of(self, configuration: str) -> Iterator[tuple[int, str, Failure | None]]:
        return ((example, configuration, kept.failure) for example, _, kept in self._kept(configuration))

    def _kept(self, configuration: str, last_example: int | None = None) -> list[tuple[int, Journal, Kept]]:
        """The records of a configuration with their journals, in the order of the examples."""
        together: dict[int, tuple[int, Journal, Kept]] = {}
        for journal, suffix in self._parts:
            name = configuration.removesuffix(suffix)
            if name + suffix == configuration:
                own = journal.records.get(name, {})
                together |= {example: (example, journal, kept) for example, kept in own.items()}
        found = sorted(together.values(), key=itemgetter(0))
        if found and found[-1][0] >= self._examples:
            raise DataError(f"a journal names example {found[-1][0]} of {self._examples}; start the run anew")
        return found if last_example is None else list(takewhile(lambda each: each[0] <= last_example, found))


class RecordsOf(Collection[Record[Observation]]):
    """Records of one configuration, which are read each time that they are gone through."""

    def __init__(
        self, configuration: str, places: Sequence[tuple[Journal, Kept]], decoder: RecordDecoder[Observation]
    ) -> None:
        self._configuration, self._places, self._decoder = configuration, places, decoder

    def __iter__(self) -> Iterator[Record[Observation]]:
        for journal, kept in self._places:
            record = self._decoder.decode(journal.content_of(kept))
            is_named_so = record.configuration == self._configuration
            yield record if is_named_so else replace(record, configuration=self._configuration)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, record: object) -> bool:
        return any(record == own for own in self)
