"""Writes a trace of a pass, for chrome://tracing and ui.perfetto.dev (Trace Event Format, JSON, microseconds)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final, TypeVar

from msgspec import Struct

from evaltools.engine.stages import Span

Event = dict[str, object]
Own = TypeVar("Own", bound="TraceFile")
_HEAD: Final = '{"displayTimeUnit": "ms", "traceEvents": [\n'
_BETWEEN: Final = ",\n"
_TAIL: Final = "\n]}\n"
_JOURNAL: Final = -1
"""The worker that writes the journal."""


class Track(Struct, frozen=True):
    """A thread of a process by its numbers, which is a row of the trace, and the category of its work.

    >>> Track(1, 0, "work").complete("decode", 5.0, 1.5, {"what": "a"})
    {'name': 'decode', 'cat': 'work', 'ph': 'X', 'ts': 5.0, 'dur': 1.5, 'pid': 1, 'tid': 0, 'args': {'what': 'a'}}
    """

    process: int
    thread: int
    category: str

    def process_name(self, name: str) -> Event:
        """Metadata that says what the process is."""
        return self._metadata("process_name", {"name": name})

    def process_place(self, place: int) -> Event:
        """Metadata that puts the process among the others, smaller numbers on top."""
        return self._metadata("process_sort_index", {"sort_index": place})

    def thread_name(self, name: str) -> Event:
        """Metadata that says what the thread is."""
        return self._metadata("thread_name", {"name": name})

    def complete(self, name: str, start_us: float, duration_us: float, facts: Mapping[str, object]) -> Event:
        """Work from a start that lasted so long, with what else is known of it."""
        return {
            "name": name,
            "cat": self.category,
            "ph": "X",
            "ts": start_us,
            "dur": duration_us,
            "pid": self.process,
            "tid": self.thread,
            "args": facts,
        }

    def counter(self, name: str, moment_us: float, values: Mapping[str, float]) -> Event:
        """Values at a moment, drawn as steps; one for each name in ``values``."""
        return {
            "name": name,
            "cat": self.category,
            "ph": "C",
            "ts": moment_us,
            "pid": self.process,
            "tid": self.thread,
            "args": values,
        }

    def _metadata(self, name: str, facts: Mapping[str, object]) -> Event:
        return {"name": name, "ph": "M", "pid": self.process, "tid": self.thread, "args": facts}


class TraceFile:
    """A context in which events are written to a file, one on each line; at its end the file is whole.

    Without a path nothing is written. A file that cannot be written ends nothing: nothing more is written then, and
    ``failure`` has the reason. Where it ``must_be_new``, nothing that is there already is written to, nor through, be
    it a link or a pipe.
    """

    def __init__(self, path: Path | None, must_be_new: bool = False) -> None:
        self.path: Final = path
        self._mode: Final = "x" if must_be_new else "w"
        self.failure: OSError | None = None
        self._file: IO[str] | None = None
        self._has_events = False

    def __enter__(self: Own) -> Own:
        if self.path is not None:
            try:
                self._file = self.path.open(self._mode, encoding="utf-8")
            except OSError as error:
                self.failure = error
        self._put(_HEAD)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._put(_TAIL)
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self.failure = self.failure or error

    def write(self, events: Iterable[Event]) -> None:
        """Write events behind the others."""
        text = _BETWEEN.join(map(json.dumps, events))
        if text:
            self._put(_BETWEEN + text if self._has_events else text)
            self._has_events = True

    def _put(self, text: str) -> None:
        if self._file is None or self.failure is not None:
            return
        try:
            self._file.write(text)
        except OSError as error:
            self.failure = error


def whole_trace(events: Iterable[Event]) -> bytes:
    """The content of a trace file with these events."""
    return f"{_HEAD}{_BETWEEN.join(map(json.dumps, events))}{_TAIL}".encode()


class Trace(TraceFile):
    """The trace of a pass, which is written during it. ``process`` is the number of the process in the trace."""

    def __init__(self, path: Path | None, process: int = 1, must_be_new: bool = False) -> None:
        super().__init__(path, must_be_new)
        self._process = process
        self._named: set[int] = set()

    @property
    def why_useless(self) -> str | None:
        """Why the file is of no use, None where it is not so."""
        if self.failure is None:
            return None
        return f"--trace={self.path} cannot be written: {self.failure.strerror}; the file is of no use"

    def add(self, spans: Sequence[Span]) -> None:
        """Write pieces of work; each row is named with the first of its own."""
        if self.path is None:
            return
        events = []
        for span in spans:
            track = Track(self._process, span.worker + 1, "evaltools")
            if span.worker not in self._named:
                self._named.add(span.worker)
                events.append(track.thread_name("journal" if span.worker == _JOURNAL else f"worker {span.worker}"))
            events.append(
                track.complete(span.stage, span.start_ns / 1000, span.duration_ns / 1000, {"what": span.label})
            )
        self.write(events)
