"""A run's answer to ``evaltools capture``: for some seconds it writes its work to a trace in its run folder.

Whoever asks puts a request into the folder; the run looks for one between two blocks of examples, at most five times a
second, takes it away, and renames its answer into place once that is whole. A request that is older than the longest
capture is one that somebody left behind.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from evaltools.documents import json_values
from evaltools.engine.process_memory import NamedProcess
from evaltools.engine.stages import Span
from evaltools.engine.trace import Trace, Track
from evaltools.file_content import DATA_BYTES, Unreadable, content_of, text_of
from evaltools.result.capture import LONGEST_S

REQUEST_NAME: Final = "capture-request.json"
DONE: Final = "examples done"
"""The name of the counter with the number of examples that are done."""
_SECONDS_BETWEEN_LOOKS: Final = 0.2
_ANSWER: Final = re.compile(r"capture-[0-9a-f]{32}\.json")
_UNFINISHED: Final = ".part"
_MOST_BYTES: Final = 1024
"""A request is not longer."""


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
            self._next_look = now + _SECONDS_BETWEEN_LOOKS
            self._look(self._folder, now)
        if self._trace is not None:
            self._trace.add(spans)
            self._trace.write([self._own.counter(DONE, time.perf_counter_ns() / 1000, {"examples": done})])
            if now >= self._until:
                self._writing.close()

    def _look(self, folder: Path, now: float) -> None:
        request = folder / REQUEST_NAME
        try:
            content = content_of(request, _MOST_BYTES)
            is_stale = time.time() - request.stat().st_mtime > LONGEST_S
            request.unlink()
            asked = json_values(content)
            name, seconds = str(asked["answer"]), float(asked["seconds"])
        except (OSError, ValueError, TypeError, KeyError, ArithmeticError):
            return
        if _ANSWER.fullmatch(name) and 0 < seconds <= LONGEST_S and not is_stale:
            self._until = now + seconds
            self._begin(folder / name)

    def _begin(self, answer: Path) -> None:
        unfinished = answer.with_name(answer.name + _UNFINISHED)
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


class CaptureRequest:
    """A request to the run in a folder, for ``seconds`` of its work; a context, at whose end its files are deleted."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._request = folder / REQUEST_NAME
        self._answer = folder / f"capture-{uuid.uuid4().hex}.json"
        self._seconds = seconds

    def __enter__(self) -> CaptureRequest:
        """Ask; raises :class:`OSError` where nothing can be written to the folder."""
        draft = self._answer.with_suffix(".draft")
        draft.write_text(json.dumps({"answer": self._answer.name, "seconds": self._seconds}))
        draft.replace(self._request)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._is_own_request():
            self._request.unlink(missing_ok=True)
        for file in (self._answer, self._unfinished):
            file.unlink(missing_ok=True)

    def answer(self, patience_s: float) -> str | None:
        """The content of the trace; where it is not whole after ``patience_s`` seconds, what there is of it.

        None where the run has written nothing.
        """
        end = time.monotonic() + patience_s
        while not self._answer.exists() and time.monotonic() < end:
            time.sleep(0.05)
        for file in (self._answer, self._unfinished, self._answer):
            with suppress(Unreadable):
                return text_of(file, DATA_BYTES)
        return None

    @property
    def _unfinished(self) -> Path:
        return self._answer.with_name(self._answer.name + _UNFINISHED)

    def _is_own_request(self) -> bool:
        try:
            return self._answer.name in text_of(self._request)
        except Unreadable:
            return False
