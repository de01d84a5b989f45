"""Writes a trace of a pass, for chrome://tracing and ui.perfetto.dev (Trace Event Format, JSON)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from evaltools.engine.stages import Span
from evaltools.engine.trace_format import Event, Track

_JOURNAL: Final = -1
"""The worker that writes the journal."""


class Trace:
    """A trace file that is written during the pass; without a path nothing is written.

    A file that cannot be written does not end the run: nothing more is written then, and ``failure`` says why.
    """

    def __init__(self, path: Path | None) -> None:
        self.failure: str | None = None
        self._path = path
        self._file: IO[str] | None = None
        self._named: set[int] = set()

    def __enter__(self) -> Trace:
        if self._path is not None:
            try:
                self._file = self._path.open("w", encoding="utf-8")
            except OSError as error:
                self._fail(error)
            start = '{"displayTimeUnit": "ms", "traceEvents": [\n'
            self._write(start + json.dumps(_track(_JOURNAL).thread_name("journal")))
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._write("\n]}\n")
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._fail(error)

    def add(self, spans: Sequence[Span]) -> None:
        """Write pieces of work."""
        events = []
        for span in spans if self._file is not None else ():
            if span.worker >= 0 and span.worker not in self._named:
                self._named.add(span.worker)
                events.append(_track(span.worker).thread_name(f"worker {span.worker}"))
            events.append(_event(span))
        self._write("".join(f",\n{json.dumps(event)}" for event in events))

    def _write(self, text: str) -> None:
        if self._file is None or self.failure is not None:
            return
        try:
            self._file.write(text)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = f"--trace={self._path} cannot be written: {error.strerror}; the file is of no use"


def _track(worker: int) -> Track:
    """The row of a worker in the trace. All are threads of one process; the journal's comes first."""
    return Track(1, max(_JOURNAL, worker) + 1, "evaltools")


def _event(span: Span) -> Event:
    return _track(span.worker).complete(span.stage, span.start_ns / 1000, span.duration_ns / 1000, {"what": span.label})
