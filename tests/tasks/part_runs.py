"""Finished runs, and parts of runs, as their journals hold them; nothing is ever run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from evaltools.engine.execution import Shard
from evaltools.engine.journal import Finished, TaskJournal, open_journal
from evaltools.engine.quiet_latency import QuietTime, QuietTimes
from evaltools.engine.run_folder import RunIdentity, encode
from evaltools.engine.task import Example, Failure, Record
from evaltools.result.evaluation import ConfigurationResult
from evaltools.tasks.shared.merging import QUIET, begin_run
from tests.results import configuration

DESCRIBED = (configuration("reference", "reference"), configuration("test"))
IDENTITY = RunIdentity({"the model": "m"})
WHOLE = Shard()
DIED = Failure("inference", "died", crashed=True)


def quiet(first: int = 0, **times: Sequence[int]) -> QuietTimes:
    """Times of two examples from number ``first`` on; with reading each takes 1000 longer."""
    return QuietTimes(
        2,
        {
            name: [QuietTime(index, (time,), time + 1000) for index, time in enumerate(values, first)]
            for name, values in times.items()
        },
    )


class Numbers:
    """A task of numbers that is never run."""

    def __init__(self, count: int) -> None:
        self.examples = [Example(index, f"e{index}") for index in range(count)]
        self.observation_type = int
        self.in_order = False
        self.keeps_state = False

    def prepare(self, example: Example) -> Any:
        raise AssertionError("nothing is run here")

    def observe(self, prepared: Any, outputs: Any, reference: Any, configuration: str) -> int:
        raise AssertionError("nothing is run here")


class Part(Struct, frozen=True):
    """What is in the journal of a part of ``count`` examples.

    Example i gives ``first`` + i in every configuration, and takes so many microseconds; its input takes
    ``preprocessing_us``. ``without`` were not finished, at those of ``died`` the process of ``test`` died.
    """

    count: int
    shard: Shard = WHOLE
    first: int = 0
    preprocessing_us: int = 7
    without: Sequence[int] = ()
    died: Sequence[int] = ()
    quiet: QuietTimes | None = None
    described: Sequence[ConfigurationResult] = DESCRIBED
    identity: RunIdentity = IDENTITY

    def write(self, folder: Path) -> Path:
        """Write it; the folder again."""
        task = Numbers(self.count)
        journal = open_journal(folder)
        begin_run(journal, self.described, self.identity, self.shard, None)
        rows = TaskJournal(journal, task.examples, int)
        for example in self.shard.of(task.examples):
            if example.index not in self.without:
                records = [self._record(example, entry.name) for entry in self.described if entry.status == "measured"]
                rows.add(Finished(example, self.preprocessing_us, records))
        rows.flush()
        if self.quiet is not None:
            journal.state({QUIET: encode(self.quiet)})
        journal.close()
        return folder

    def _record(self, example: Example, name: str) -> Record[int]:
        if name == "test" and example.index in self.died:
            return Record(example, name, (), None, DIED)
        value = self.first + example.index
        return Record(example, name, (value,), value, None, 1)
