"""Runs entries of a suite on this machine, each in a process of its own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from evaltools.errors import OutputError
from evaltools.runs.handing_over import close_stdin, end, start
from evaltools.suite.entries import Entry
from evaltools.suite.runs import LOG, RESULT, Runs

_SECONDS_BETWEEN_LOOKS: Final = 0.05


class _Running(Struct, frozen=True):
    entry: Entry
    process: subprocess.Popen[bytes]
    start: float


def run_here(runs: Runs, entries: Sequence[Entry], at_a_time: int, is_timed: bool) -> Iterator[Entry]:
    """Run all entries, ``at_a_time`` of them; gives each that has ended, whatever came of it.

    ``is_timed``: nothing else runs meanwhile. At the end no process is left, however it comes.
    """
    waiting, running = list(entries), list[_Running]()
    with _ending(running):
        while waiting or running:
            while waiting and len(running) < at_a_time:
                running.append(_started(runs, waiting.pop(0)))
            for one in [each for each in running if each.process.poll() is not None]:
                running.remove(one)
                close_stdin(one.process)
                runs.keep(one.entry, one.process.returncode, time.monotonic() - one.start, is_timed)
                yield one.entry
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _started(runs: Runs, entry: Entry) -> _Running:
    place = runs.place(entry)
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / RESULT).unlink(missing_ok=True)
        request = entry.request.stating(output_file_path=place / RESULT)
        if runs.is_kept and "run_dir" in request.options.parameters:
            request = request.stating(run_dir=place / "run")
        with open(place / LOG, "wb") as log:
            process = start(request, request.folder, place, log)
    except OSError as error:
        raise OutputError(f"{place} cannot be written: {error.strerror}; make room, and resume") from error
    return _Running(entry, process, time.monotonic())


@contextmanager
def _ending(running: Sequence[_Running]) -> Iterator[None]:
    """Each process ends by itself when its stdin closes."""
    try:
        yield
    finally:
        for each in running:
            close_stdin(each.process)
        for each in running:
            end(each.process)
