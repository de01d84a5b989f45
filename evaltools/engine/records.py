"""The records of a run, read from its journal: from one, or from those of its shards, or of several places."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, Generic

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from evaltools.engine.journal import FIELDS, Journal
from evaltools.engine.steps import Failure, Observation, Record, RecordDecoder
from evaltools.errors import DataError

_AT_ONCE: Final = 1000
Fates = Mapping[str, Failure | None]
"""The failure of each configuration that was tried, None where there was none."""


_NOTED: Final = np.dtype([(name, np.int64) for name in FIELDS])
"""A row for each record, as journals note them; ``part`` numbers the journal."""
Noted = npt.NDArray[np.void]


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
        return list(dict.fromkeys(name + suffix for journal, suffix in self._parts for name in journal.noted))

    def of(self, configuration: str, last_example: int | None = None) -> RecordsOf[Observation]:
        """The records of one configuration in the order of the examples, up to one of these."""
        noted = self._noted(configuration)
        return RecordsOf(self, configuration, noted if last_example is None else _up_to(noted, last_example))

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
            noted = _up_to(self._noted(name), last_example)
            for example, time_us in zip(noted["example"].tolist(), noted["prepared_us"].tolist(), strict=True):
                if time_us >= 0:
                    found.setdefault(example, time_us)
        return [found[example] for example in sorted(found)]

    def read(self, configuration: str, noted: Noted) -> Iterator[Record[Observation]]:
        """Read records in their order, a thousand at a time."""
        for start in range(0, len(noted), _AT_ONCE):
            block = noted[start : start + _AT_ONCE]
            contents: list[bytes] = [b""] * len(block)
            for part in np.unique(block["part"]).tolist():
                places = np.flatnonzero(block["part"] == part)
                wanted = block[places][["offset", "size"]].tolist()
                for place, content in zip(places, self._parts[part][0].contents(wanted), strict=True):
                    contents[place] = content
            for content in contents:
                record = self._decoder.decode(content)
                yield record if record.configuration == configuration else replace(record, configuration=configuration)

    def _fates_of(self, configuration: str) -> Iterator[tuple[int, str, Failure | None]]:
        noted = self._noted(configuration)
        failures = self.read(configuration, noted[noted["failed"] != 0])
        for example, failed in zip(noted["example"].tolist(), noted["failed"].tolist(), strict=True):
            yield example, configuration, next(failures).failure if failed else None

    def _noted(self, configuration: str) -> Noted:
        """What is noted of the last record of each example, in the order of the examples."""
        parts = [np.empty(0, _NOTED)]
        for number, (journal, suffix) in enumerate(self._parts):
            name = configuration.removesuffix(suffix)
            if name in journal.noted and name + suffix == configuration:
                parts.append(np.array(journal.noted[name]).view(_NOTED))
                parts[-1]["part"] = number
        together = np.concatenate(parts)
        together = together[np.argsort(together["example"], kind="stable")]
        examples = together["example"]
        if examples.size and examples[-1] >= self._examples:
            raise DataError(f"a journal names example {examples[-1]} of {self._examples}; start the run anew")
        last: Noted = together[np.append(examples[1:] != examples[:-1], True)[: examples.size]]
        return last


def _up_to(noted: Noted, last_example: int) -> Noted:
    return noted[: np.searchsorted(noted["example"], last_example, "right")]


class RecordsOf(Collection[Record[Observation]]):
    """Records of one configuration, which are read from the journals each time that they are gone through."""

    def __init__(self, records: Records[Observation], configuration: str, noted: Noted) -> None:
        self._records, self._configuration, self._noted = records, configuration, noted

    def __iter__(self) -> Iterator[Record[Observation]]:
        return self._records.read(self._configuration, self._noted)

    def __len__(self) -> int:
        return len(self._noted)

    def __contains__(self, record: object) -> bool:
        return any(record == own for own in self)
