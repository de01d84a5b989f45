"""The records of a run, read from its journal: from one, or from those of its shards, or of several places."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from evaltools.engine.codec import RecordDecoder
from evaltools.engine.journal import Entries, Journal
from evaltools.engine.steps import Failure, Observation, Record
from evaltools.errors import DataError

_AT_ONCE: Final = 1000
Fates = dict[str, Failure | None]
"""The failure of each configuration that was tried, None where there was none."""
Ints = npt.NDArray[np.int64]


class _Part(NamedTuple):
    """A journal; ``suffix`` is appended to the names of its configurations."""

    journal: Journal
    suffix: str


class _Located(NamedTuple):
    """Where the records of one configuration are, one for each example, in their order.

    ``parts`` are the numbers of their journals.
    """

    examples: Ints
    parts: Ints
    offsets: Ints
    sizes: Ints
    failed: Ints
    prepared_us: Ints

    def up_to(self, last_example: int) -> _Located:
        """Those of the examples up to a number."""
        end = int(np.searchsorted(self.examples, last_example, "right"))
        return _Located(*(column[:end] for column in self))

    def only(self, places: Any) -> _Located:
        """Those at some places."""
        return _Located(*(column[places] for column in self))


class Records(Generic[Observation]):
    """The records of so many ``examples`` in ``parts``: journals, with what is appended to their configurations' names.

    Records are read when they are gone through. Every method may raise :class:`DataError`.
    """

    def __init__(
        self, parts: Sequence[tuple[Journal, str]], examples: int, observation_type: type[Observation]
    ) -> None:
        self._parts = [_Part(*part) for part in parts]
        self._examples = examples
        self._decoder: RecordDecoder[Observation] = RecordDecoder(observation_type)

    @property
    def configurations(self) -> list[str]:
        """The names of all configurations that have records."""
        return list(dict.fromkeys(name + part.suffix for part in self._parts for name in part.journal.entries))

    def of(self, configuration: str, last_example: int | None = None) -> RecordsOf[Observation]:
        """The records of one configuration in the order of the examples, up to one of these."""
        located = self._located(configuration)
        return RecordsOf(self, configuration, located if last_example is None else located.up_to(last_example))

    def fates(self) -> Iterator[tuple[int, Fates]]:
        """Every example in order, with the failure of each configuration; None where it did not fail."""
        in_order = heapq.merge(*map(self._fates_of, self.configurations), key=itemgetter(0))
        for example, together in groupby(in_order, key=itemgetter(0)):
            yield example, {name: failure for _, name, failure in together}

    def given_up(self, max_crashes: int) -> set[str]:
        """The configurations that some journal gave up: with so many crashes in a row, it has no more of them."""
        found = set()
        for part in self._parts:
            alone = Records([part], self._examples, self._decoder.observation_type)
            for name in alone.configurations:
                crashes = 0
                for _, _, failure in alone._fates_of(name):
                    crashes = crashes + 1 if failure is not None and failure.crashed else 0
                    found |= {name} if crashes == max_crashes else set()
        return found

    def preprocessing_us(self, last_example: int) -> list[int]:
        """Microseconds of making the input of each example up to ``last_example`` where that could be done, in order.

        Where several configurations have the example, those of the first one.
        """
        found: dict[int, int] = {}
        for name in self.configurations:
            located = self._located(name).up_to(last_example)
            for example, time_us in zip(located.examples.tolist(), located.prepared_us.tolist(), strict=True):
                if time_us >= 0:
                    found.setdefault(example, time_us)
        return [found[example] for example in sorted(found)]

    def read(self, configuration: str, located: _Located) -> Iterator[Record[Observation]]:
        """Read records in their order, a thousand at a time."""
        for start in range(0, len(located.examples), _AT_ONCE):
            block = located.only(slice(start, start + _AT_ONCE))
            contents: list[bytes] = [b""] * len(block.examples)
            for number in np.unique(block.parts).tolist():
                places = np.flatnonzero(block.parts == number).tolist()
                wanted = [(int(block.offsets[place]), int(block.sizes[place])) for place in places]
                for place, content in zip(places, self._parts[number].journal.contents(wanted), strict=True):
                    contents[place] = content
            for content in contents:
                record = self._decoder.decode(content)
                yield record if record.configuration == configuration else replace(record, configuration=configuration)

    def _fates_of(self, configuration: str) -> Iterator[tuple[int, str, Failure | None]]:
        located = self._located(configuration)
        failures = self.read(configuration, located.only(np.flatnonzero(located.failed)))
        for example, failed in zip(located.examples.tolist(), located.failed.tolist(), strict=True):
            yield example, configuration, next(failures).failure if failed else None

    def _located(self, configuration: str) -> _Located:
        """The last record of each example."""
        columns = [
            _columns(number, part.journal.entries[configuration.removesuffix(part.suffix)])
            for number, part in enumerate(self._parts)
            if configuration.endswith(part.suffix) and configuration.removesuffix(part.suffix) in part.journal.entries
        ]
        together = _Located(*(np.concatenate(each) for each in zip(*columns, strict=True)) if columns else [_NONE] * 6)
        unknown = together.examples[together.examples >= self._examples]
        if unknown.size:
            raise DataError(f"a journal names example {unknown[0]} of {self._examples}; start the run anew")
        in_order = np.argsort(together.examples, kind="stable")
        examples = together.examples[in_order]
        is_last = np.append(examples[1:] != examples[:-1], True)[: examples.size]
        return together.only(in_order[is_last])


_NONE: Final = np.empty(0, np.int64)


def _columns(number: int, entries: Entries) -> tuple[Ints, ...]:
    examples, *others = (
        np.array(column, np.int64)
        for column in (entries.examples, entries.offsets, entries.sizes, entries.failed, entries.prepared_us)
    )
    return examples, np.full(examples.size, number), *others


class RecordsOf(Collection[Record[Observation]]):
    """Records of one configuration, which are read from the journals each time that they are gone through."""

    def __init__(self, records: Records[Observation], configuration: str, located: _Located) -> None:
        self._records, self._configuration, self._located = records, configuration, located

    def __iter__(self) -> Iterator[Record[Observation]]:
        return self._records.read(self._configuration, self._located)

    def __len__(self) -> int:
        return len(self._located.examples)

    def __contains__(self, record: object) -> bool:
        return any(record == own for own in self)
