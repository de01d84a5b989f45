"""Writes a trace of a pass, for chrome://tracing and ui.perfetto.dev (Trace Event Format, JSON)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final

from evaltools.engine.stages import Span
from evaltools.engine.trace_file import TraceFile
from evaltools.engine.trace_format import Event, Track

_JOURNAL: Final = -1
"""The worker that writes the journal."""


class Trace:
    """A trace file that is written during the pass; without a path nothing is written.

    ``process`` is the number of the process in the trace. A file that cannot be written does not end the run: nothing
    more is written then, and ``failure`` says why; so it is where it ``must_be_new`` and something is there.
    """

    def __init__(self, path: Path | None, process: int = 1, must_be_new: bool = False) -> None:
        self._file = None if path is None else TraceFile(path, must_be_new)
        self._process = process
        self._named: set[int] = set()
        self._open = ExitStack()

    def __enter__(self) -> Trace:
        if self._file is not None:
            self._open.enter_context(self._file)
            self._file.write([self._track(_JOURNAL).thread_name("journal")])
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def failure(self) -> str | None:
        """Why the file is of no use, None where it is not so."""
        if self._file is None or self._file.failure is None:
            return None
        return f"--trace={self._file.path} cannot be written: {self._file.failure.strerror}; the file is of no use"

    def add(self, spans: Sequence[Span]) -> None:
        """Write pieces of work."""
        if self._file is None:
            return
        events = []
        for span in spans:
            if span.worker >= 0 and span.worker not in self._named:
                self._named.add(span.worker)
                events.append(self._track(span.worker).thread_name(f"worker {span.worker}"))
            events.append(self._event(span))
        self._file.write(events)

    def write(self, events: Sequence[Event]) -> None:
        """Write events of any kind."""
        if self._file is not None:
            self._file.write(events)

    def _track(self, worker: int) -> Track:
        """The row of a worker. All are threads of one process; the journal's comes first."""
        return Track(self._process, max(_JOURNAL, worker) + 1, "evaltools")

    def _event(self, span: Span) -> Event:
        start_us, duration_us = span.start_ns / 1000, span.duration_ns / 1000
        return self._track(span.worker).complete(span.stage, start_us, duration_us, {"what": span.label})
