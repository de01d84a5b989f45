"""Finished runs, and parts of runs, as their journals hold them; nothing is ever run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from evaltools.engine.execution import Shard
from evaltools.engine.facts import PASS, PassFacts
from evaltools.engine.journal import open_journal
from evaltools.engine.quiet_latency import QuietTime, QuietTimes
from evaltools.engine.run_folder import RunIdentity
from evaltools.engine.steps import Failure, Record, Steps
from evaltools.result.execution import ExecutionUsed
from evaltools.result.result import Row
from evaltools.runs.first_look import FOUND, FirstLook
from evaltools.runs.identity import begin_run
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


def numbers(count: int) -> Steps[int]:
    """Steps with so many numbers, which are never run."""
    return Steps([f"e{index}" for index in range(count)], _not_run, _not_run, int)


def _not_run(*_given: Any) -> Any:
    raise AssertionError("nothing is run here")


class Part(Struct, frozen=True):
    """What is in the journal of a part of ``count`` examples.

    Example i gives ``first`` + i in every configuration, and takes so many microseconds; its input takes
    ``preprocessing_us``. ``without`` were not finished, at those of ``died`` the process of ``test`` died. Where it
    could not be run, ``found`` says so.
    """

    count: int
    shard: Shard = WHOLE
    first: int = 0
    preprocessing_us: int = 7
    without: Sequence[int] = ()
    died: Sequence[int] = ()
    quiet: QuietTimes | None = None
    described: Sequence[Row] = DESCRIBED
    identity: RunIdentity = IDENTITY
    found: FirstLook = FirstLook(can_run=True)

    def write(self, folder: Path) -> Path:
        """Write it; the folder again."""
        journal = open_journal(folder)
        shard = str(self.shard) if self.shard.count > 1 else ""
        begin_run(journal, self.described, replace(self.identity, shard=shard), None)
        for example in self.shard.numbers_of(self.count):
            if self.found.can_run and example not in self.without:
                names = [entry.name for entry in self.described if entry.status == "measured"]
                journal.add([self._record(example, name) for name in names])
        journal.flush()
        FOUND.write(journal, self.found)
        PASS.write(journal, PassFacts(is_over=True, execution=ExecutionUsed(workers=1), quiet=self.quiet))
        journal.close()
        return folder

    def _record(self, example: int, name: str) -> Record[int]:
        if name == "test" and example in self.died:
            return Record(example, name, (), None, DIED, None, self.preprocessing_us)
        value = self.first + example
        return Record(example, name, (value,), value, None, 1, self.preprocessing_us)
