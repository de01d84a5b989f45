"""Writes a trace of a pass, for chrome://tracing and ui.perfetto.dev (Trace Event Format, JSON, microseconds).

A run that goes on is asked, by a file in its folder, to write its work to one for some seconds. It looks for the file
between two blocks of examples, at most five times a second, takes it away, and renames the trace into place once it is
whole.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from evaltools.engine.journal import JOURNAL_NAME
from evaltools.engine.sampling import NamedProcess
from evaltools.engine.steps import Span
from evaltools.errors import UsageError
from evaltools.file_content import DATA_BYTES, Unreadable, content_of

Event = dict[str, object]
_HEAD: Final = '{"displayTimeUnit": "ms", "traceEvents": [\n'
_BETWEEN: Final = ",\n"
_TAIL: Final = "\n]}\n"
_JOURNAL: Final = -1
"""The worker that writes the journal."""


class Track(Struct, frozen=True):
    """A thread of a process by its numbers, which is a row of the trace, and the category of its work.

    >>> Track(1, 0, "work").complete("decode", 5.0, 1.5, {"what": "a"})
    {'name': 'decode', 'cat': 'work', 'ph': 'X', 'pid': 1, 'tid': 0, 'args': {'what': 'a'}, 'ts': 5.0, 'dur': 1.5}
    """

    process: int
    thread: int
    category: str

    def process_name(self, name: str) -> Event:
        """Metadata that says what the process is."""
        return self._event("M", "process_name", {"name": name})

    def process_place(self, place: int) -> Event:
        """Metadata that puts the process among the others, smaller numbers on top."""
        return self._event("M", "process_sort_index", {"sort_index": place})

    def thread_name(self, name: str) -> Event:
        """Metadata that says what the thread is."""
        return self._event("M", "thread_name", {"name": name})

    def complete(self, name: str, start_us: float, duration_us: float, facts: Mapping[str, object]) -> Event:
        """Work from a start that lasted so long, with what else is known of it."""
        return self._event("X", name, facts, ts=start_us, dur=duration_us)

    def counter(self, name: str, moment_us: float, values: Mapping[str, float]) -> Event:
        """Values at a moment, drawn as steps; one for each name in ``values``."""
        return self._event("C", name, values, ts=moment_us)

    def _event(self, phase: str, name: str, facts: Mapping[str, object], **times_us: float) -> Event:
        own = {"name": name, "cat": self.category, "ph": phase, "pid": self.process, "tid": self.thread, "args": facts}
        return {**own, **times_us}


def whole_trace(events: Iterable[Event]) -> bytes:
    """The content of a trace file with these events."""
    return f"{_HEAD}{_BETWEEN.join(map(json.dumps, events))}{_TAIL}".encode()


class Trace:
    """A context in which a pass is written to a file, one event on each line; at its end the file is whole.

    Without a path nothing is written. A file that cannot be written ends nothing: nothing more is written then, and
    ``failure`` has the reason. Where it ``must_be_new``, nothing that is there already is written to, nor through, be
    it a link or a pipe. ``process`` is the number of the process in the trace.
    """

    def __init__(self, path: Path | None, process: int = 1, must_be_new: bool = False) -> None:
        self._path = path
        self._mode: Final = "x" if must_be_new else "w"
        self.failure: OSError | None = None
        self._file: IO[str] | None = None
        self._has_events = False
        self._process = process
        self._named: set[int] = set()

    def __enter__(self) -> Trace:
        if self._path is not None:
            try:
                self._file = self._path.open(self._mode, encoding="utf-8")
            except OSError as error:
                self.failure = error
        self._put(_HEAD)
        return self

    def __exit__(self, *_error: object) -> None:
        self._put(_TAIL)
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self.failure = self.failure or error

    @property
    def why_useless(self) -> str | None:
        """Why the file is of no use, None where it is not so."""
        if self.failure is None:
            return None
        return f"--trace={self._path} cannot be written: {self.failure.strerror}; the file is of no use"

    def add(self, spans: Sequence[Span]) -> None:
        """Write pieces of work; each row is named with the first of its own."""
        events = []
        for span in spans if self._file is not None else ():
            track = Track(self._process, span.worker + 1, "evaltools")
            if span.worker not in self._named:
                self._named.add(span.worker)
                events.append(track.thread_name("journal" if span.worker == _JOURNAL else f"worker {span.worker}"))
            events.append(
                track.complete(span.stage, span.start_ns / 1000, span.duration_ns / 1000, {"what": span.label})
            )
        self.write(events)

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


LONGEST_S: Final = 600.0
REQUEST_NAME: Final = "capture-request"
"""The file that asks; the seconds stand in it."""
TRACE_NAME: Final = "capture.json"
_UNFINISHED: Final = "capture.part"
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
        self._next_look = 0.0
        self._until = 0.0
        self._trace: Trace | None = None

    def __enter__(self) -> CaptureAnswers:
        return self

    def __exit__(self, *_error: object) -> None:
        self._end()

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
                self._begin(self._folder / _UNFINISHED)
        if self._trace is not None:
            self._trace.add(spans)
            own = Track(os.getpid(), 0, "evaltools")
            self._trace.write([own.counter(DONE, time.perf_counter_ns() / 1000, {"examples": done})])
            if now >= self._until:
                self._end()

    def _begin(self, unfinished: Path) -> None:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        self._trace = Trace(unfinished, os.getpid(), must_be_new=True).__enter__()
        self._trace.write(
            [Track(each.process_id, 0, "evaltools").process_name(each.name) for each in self._processes()]
        )

    def _end(self) -> None:
        """Put what was written into its place, if it is of use."""
        trace, self._trace = self._trace, None
        if trace is None or self._folder is None:
            return
        trace.__exit__()
        if trace.failure is None:
            with suppress(OSError):
                (self._folder / _UNFINISHED).replace(self._folder / TRACE_NAME)


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
        _ask_for(request, answer, seconds)
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


def _ask_for(request: Path, answer: Path, seconds: float) -> None:
    try:
        answer.unlink(missing_ok=True)
        request.write_text(f"{seconds:g}")
    except OSError as error:
        raise UsageError(
            f"nothing can be written in {request.parent}: {error.strerror}; capture as the user of the run"
        ) from error


def _comes(is_so: Callable[[], bool], within_s: float) -> bool:
    end = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
