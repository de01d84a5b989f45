"""Traces: what each shows, and what opens it."""

from __future__ import annotations

from typing import Final

from evaltools.report.tables.capture import models_in_words, run_in_words
from evaltools.result.capture import ModelsCapture, RunCapture
from evaltools.result.section import Block, Files, Lines, Linked, Section

_OPENED_BY: Final = "ui.perfetto.dev (open trace file) and chrome://tracing show it"
_OF_A_CAPTURE: Final = "trace.json"


def traces(name: str, shows: str) -> list[Block]:
    """A link to the trace of a run; nothing where none was written."""
    return [Files("Trace", [Linked(name, f"{shows}; {_OPENED_BY}")])] if name else []


def captured(found: RunCapture | ModelsCapture) -> Section:
    """What ``evaltools capture`` or ``evaltools.profile`` saw, with the trace beside its summary."""
    lines = run_in_words(found) if isinstance(found, RunCapture) else models_in_words(found)
    return Section("What was captured", [Lines([line.strip() for line in lines]), *traces(_OF_A_CAPTURE, "all events")])
