"""Writes a trace file event by event, so that a long one needs no memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from evaltools.documents import json_values
from evaltools.engine.trace_format import Event

_HEAD: Final = '{"displayTimeUnit": "ms", "traceEvents": [\n'
_BETWEEN: Final = ",\n"
_TAIL: Final = "\n]}\n"


class TraceFile:
    """A context in which events are written to a file, one on each line; at its end the file is whole.

    A file that cannot be written ends nothing: nothing more is written then, and ``failure`` has the reason. Where it
    ``must_be_new``, nothing that is there already is written to, nor through, be it a link or a pipe.
    """

    def __init__(self, path: Path, must_be_new: bool = False) -> None:
        self.path: Final = path
        self._mode: Final = "x" if must_be_new else "w"
        self.failure: OSError | None = None
        self._file: IO[str] | None = None
        self._has_events = False

    def __enter__(self) -> TraceFile:
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


def events_in(text: str) -> list[Event]:
    r"""The events in the content of a trace file that :class:`TraceFile` wrote, also of one that was cut off.

    >>> events_in('{"displayTimeUnit": "ms", "traceEvents": [\n{"ph": "X"},\n{"ph": "C"},\n{"ph')
    [{'ph': 'X'}, {'ph': 'C'}]
    """
    found = []
    for line in text.split("\n")[1:]:
        try:
            event = json_values(line.removesuffix(","))
        except ValueError:
            continue
        if isinstance(event, dict):
            found.append(event)
    return found
