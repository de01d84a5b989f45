"""Writes where the time went as a trace for chrome://tracing and ui.perfetto.dev (Trace Event Format, JSON)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from evaltools.engine.stages import Span

_JOURNAL_THREAD: Final = 0


class Trace:
    """A trace file that is written as the work goes on; without a path nothing is written.

    A file that cannot be written must not end the run: nothing more is written then, and ``failure`` says why.
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
            self._write(start + json.dumps(_thread_name(_JOURNAL_THREAD, "journal")))
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
                events.append(_thread_name(span.worker + 1, f"worker {span.worker}"))
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


def _thread_name(thread: int, name: str) -> dict[str, object]:
    return {"name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}}


def _event(span: Span) -> dict[str, object]:
    """A complete event; times are in microseconds."""
    return {
        "name": span.stage,
        "cat": "evaltools",
        "ph": "X",
        "ts": span.start_ns / 1000,
        "dur": span.duration_ns / 1000,
        "pid": 1,
        "tid": _JOURNAL_THREAD if span.worker < 0 else span.worker + 1,
        "args": {"what": span.label},
    }
