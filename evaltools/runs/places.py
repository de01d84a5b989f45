"""Where the examples of a run are carried out: on this computer, on a cluster, on a device."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from evaltools.engine.journal import JOURNAL_NAME
from evaltools.errors import EvaltoolsError
from evaltools.known_tasks import task_command
from evaltools.request import Request
from evaltools.request.plain import from_plain
from evaltools.runs.evaluate import record
from evaltools.runs.stored import seen_from
from evaltools.tasks.framework import read
from evaltools.tasks.framework.observer import Observer


class Place(Protocol):
    """Somewhere that carries out ranges of a run's examples, and gives their records back."""

    def carry_out(self, ranges: Mapping[Path, Request]) -> Iterator[Path]:
        """Carry out the examples of each request's shard; gives each folder as soon as the journal of them lies there.

        Raises an :class:`~evaltools.errors.EvaltoolsError` where a range did not come to its end; what others did is
        kept.
        """


class RangeDone(Struct, frozen=True):
    """What a process elsewhere gives back: the exit code, the journal, and why there is none."""

    code: int
    journal: bytes
    reason: str


def carry_out_range(plain: dict[str, Any]) -> RangeDone:
    """Carry out a request, as plain values, for its records alone; in this process, wherever that is."""
    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        try:
            request = seen_from(from_plain(plain, {}), Path.cwd()).stating(run_dir=f"{folder}/run")
            code = record(read(task_command(request.task), request), Observer())
        except EvaltoolsError as error:
            return RangeDone(error.exit_code, b"", str(error))
        journal = Path(folder, "run", JOURNAL_NAME)
        return RangeDone(code, journal.read_bytes() if journal.exists() else b"", "")
