"""A run that goes on is asked, by a file in its folder, to write its work to a trace for some seconds.

The run looks for the file between two blocks of examples, at most five times a second, takes it away, and renames the
trace into place once it is whole.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from evaltools.engine.journal import JOURNAL_NAME
from evaltools.engine.process_memory import NamedProcess
from evaltools.engine.stages import Span
from evaltools.engine.trace import Trace, Track
from evaltools.errors import UsageError
from evaltools.file_content import DATA_BYTES, Unreadable, content_of

LONGEST_S: Final = 600.0
REQUEST_NAME: Final = "capture-request"
"""The file that asks; the seconds stand in it."""
TRACE_NAME: Final = "capture.json"
DONE: Final = "examples done"
"""The name of the counter with the number of examples that are done."""
_BETWEEN_LOOKS_S: Final = 0.2
_MOST_BYTES: Final = 64
"""A request is not longer."""
_PATIENCE_S: Final = 20.0
"""Work on one block of examples may take so long."""


class CaptureAnswers:
    """A context in which a run answers requests in its folder; without a folder it does nothing.

    ``processes`` gives the processes of the run, whose names are put into the trace. The run's own has its work.
    """

    def __init__(self, folder: Path | None, processes: Callable[[], Sequence[NamedProcess]]) -> None:
        self._folder = folder
        self._processes = processes
        self._own = Track(os.getpid(), 0, "evaltools")
        self._next_look = 0.0
        self._until = 0.0
        self._trace: Trace | None = None
        self._writing = ExitStack()

    def __enter__(self) -> CaptureAnswers:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._writing.close()

    def add(self, spans: Sequence[Span], done: int) -> None:
        """Take finished work, and how many examples are done; it is written if somebody asks for it now."""
        if self._folder is None:
            return
        now = time.monotonic()
        if self._trace is None and now >= self._next_look:
            self._next_look = now + _BETWEEN_LOOKS_S
            seconds = _seconds_asked_for(self._folder / REQUEST_NAME)
            if seconds:
                self._until = now + seconds
                self._begin(self._folder / TRACE_NAME)
        if self._trace is not None:
            self._trace.add(spans)
            self._trace.write([self._own.counter(DONE, time.perf_counter_ns() / 1000, {"examples": done})])
            if now >= self._until:
                self._writing.close()

    def _begin(self, answer: Path) -> None:
        unfinished = answer.with_suffix(".part")
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        self._writing.callback(self._keep, unfinished, answer)
        self._trace = self._writing.enter_context(Trace(unfinished, os.getpid(), must_be_new=True))
        self._trace.write(
            [Track(each.process_id, 0, "evaltools").process_name(each.name) for each in self._processes()]
        )

    def _keep(self, unfinished: Path, answer: Path) -> None:
        is_of_use = self._trace is not None and self._trace.failure is None
        self._trace = None
        if is_of_use:
            with suppress(OSError):
                unfinished.replace(answer)


def _seconds_asked_for(request: Path) -> float:
    """The seconds in a request, which is taken away; 0 where there is none."""
    try:
        seconds = float(content_of(request, _MOST_BYTES))
        request.unlink()
    except (Unreadable, ValueError, OSError):
        return 0.0
    return seconds if 0 < seconds <= LONGEST_S else 0.0


def capture(folder: Path, seconds: float) -> bytes:
    """Have the run in a folder write its work for so many seconds; returns the content of the trace.

    Raises :class:`UsageError` where no run answers in time; the request is taken back then.
    """
    if not (folder / JOURNAL_NAME).is_file():
        raise UsageError(f"{folder} is not a run folder: it has no {JOURNAL_NAME}; give the folder of a --run_dir")
    request, answer = folder / REQUEST_NAME, folder / TRACE_NAME
    try:
        answer.unlink(missing_ok=True)
        request.write_text(f"{seconds:g}")
    except OSError as error:
        raise UsageError(
            f"nothing can be written in {folder}: {error.strerror}; capture as the user of the run"
        ) from error
    try:
        if not _comes(lambda: not request.exists(), _PATIENCE_S) or not _comes(answer.exists, seconds + _PATIENCE_S):
            raise UsageError(
                f"no run answers in {folder}: it has ended, or loads its models still; ask while examples are run"
            )
        return content_of(answer, DATA_BYTES)
    except Unreadable as error:
        raise UsageError(f"{answer} cannot be read: {error}; ask again, for fewer seconds") from error
    finally:
        for file in (request, answer):
            with suppress(OSError):
                file.unlink(missing_ok=True)


def _comes(is_so: Callable[[], bool], within_s: float) -> bool:
    end = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
