"""``evaltools.profile``: a trace of the models that the user's own program runs."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Final

import psutil

from evaltools.capture.files import TRACE, make_folder, write_summary
from evaltools.capture.recorder import Recorder, recording
from evaltools.capture.running import UsedOverTime, sample_of, usage_events
from evaltools.engine.trace import TraceFile, Track
from evaltools.errors import OutputError, UsageError
from evaltools.report.words.capture import models_in_words
from evaltools.result.capture import ModelsCapture

_SECONDS_BETWEEN_SAMPLES: Final = 0.1
_MOST_WAITING: Final = 200_000
_LONGEST_NAME: Final = 60


class Profile:
    """A context in which every call of a model in this process is recorded.

    These are models of the user's own: those that an ``Interpreter`` of tflite-runtime or ai-edge-litert runs, also one
    that was made before, and those of a ``CompiledModel``. In ``folder``, which is made if missing, ``trace.json`` has
    each call by model and thread, and memory, processor time and threads of this process, for ui.perfetto.dev and
    chrome://tracing; ``summary.json`` has ``summary``. Files of these names from before are replaced. After an error
    they are written, too, and the error is raised.

    A call takes some microseconds more meanwhile. Raises :class:`~evaltools.errors.UsageError` for a folder that cannot
    be used and while another profile is open, and at its end :class:`~evaltools.errors.OutputError` where the files
    cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, str | os.PathLike):
            raise UsageError(f"the folder of a profile: expected a path, got {folder!r}")
        self.folder: Final = Path(folder).absolute()
        self._summary: ModelsCapture | None = None
        self._is_used = False
        self._end = threading.Event()
        self._process = psutil.Process()
        self._used = UsedOverTime(self._process.pid, _own_name())

    @property
    def summary(self) -> ModelsCapture:
        """What was recorded; raises :class:`~evaltools.errors.UsageError` before the context has ended."""
        if self._summary is None:
            raise UsageError("the summary of a profile is there once its context has ended; ask for it after the block")
        return self._summary

    def __str__(self) -> str:
        return "\n".join(models_in_words(self.summary))

    def __enter__(self) -> Profile:
        if self._is_used:
            raise UsageError("a profile records one block; make another one for the next")
        self._start_ns = time.perf_counter_ns()
        self._recorder = Recorder(self._process.pid, self._start_ns)
        self._context = contextlib.ExitStack()
        with contextlib.ExitStack() as opened:
            make_folder(self.folder)
            opened.enter_context(recording(self._recorder))
            self._file = opened.enter_context(TraceFile(self.folder / TRACE))
            if self._file.failure is not None:
                raise UsageError(
                    f"{self._file.path} cannot be written: {self._file.failure.strerror}; give another folder"
                )
            self._file.write([Track(self._process.pid, 0, "").process_name(self._used.name)])
            self._context = opened.pop_all()
        self._is_used = True
        self._sampler = threading.Thread(target=self._sample, name="evaltools profile", daemon=True)
        self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        seconds = (time.perf_counter_ns() - self._start_ns) / 1e9
        self._end.set()
        self._sampler.join()
        self._take_sample()
        self._file.write(self._recorder.events())
        self._context.close()
        self._summary = ModelsCapture(round(seconds, 6), self._recorder.models(), self._used.use)
        try:
            self._write_summary()
        except OutputError:
            if kind is None:
                raise

    def _sample(self) -> None:
        """What this process uses, again and again; calls are written only where they are many, since that disturbs."""
        while not self._end.wait(_SECONDS_BETWEEN_SAMPLES):
            self._take_sample()
            if self._recorder.waiting > _MOST_WAITING:
                self._file.write(self._recorder.events())

    def _take_sample(self) -> None:
        sample = sample_of(self._process, (time.perf_counter_ns() - self._start_ns) / 1e9)
        if sample is not None:
            before = self._used.samples[-1] if self._used.samples else None
            self._file.write(usage_events(self._process.pid, sample, before))
            self._used.samples.append(sample)

    def _write_summary(self) -> None:
        failure = self._file.failure
        if failure is not None:
            raise OutputError(f"{self._file.path} cannot be written: {failure.strerror}; the file is of no use")
        write_summary(self.folder, self._summary)


def _own_name() -> str:
    program = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    return f"{program[:_LONGEST_NAME]} ({os.getpid()})"


def profile(folder: str | os.PathLike[str]) -> Profile:
    """Record what models run in this process during a ``with`` block, as a trace in ``folder``: see :class:`Profile`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with profile(folder) as recorded:
    ...         pass
    ...     sorted(path.name for path in Path(folder).iterdir()), recorded.summary.models
    (['summary.json', 'trace.json'], [])
    """
    return Profile(folder)
