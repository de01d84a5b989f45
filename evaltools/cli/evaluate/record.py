"""A part of a run: measured and kept in its run folder, for another process to make the figures of all parts."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from evaltools.cli.evaluate.terminal import Terminal
from evaltools.cli.shared.interrupts import interrupts_restored
from evaltools.cli.shared.terminal import make_console
from evaltools.request import Request
from evaltools.tasks.shared.evaluation import record
from evaltools.tasks.shared.kind import evaluation_kind


def record_part(request: Request) -> int:
    """Measure what a request asks for; returns the exit code."""
    kind = evaluation_kind(request.task)
    with interrupts_restored(), redirect_stdout(sys.stderr):  # what a task of one's own prints is no result
        return record(kind.prepare, kind.read(request), Terminal(make_console(), request.options))
