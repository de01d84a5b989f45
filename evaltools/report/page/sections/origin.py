"""Where a result comes from: the exact command, the machine, the software, what failed, its trace."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from evaltools.report.page.content.page import some_of
from evaltools.report.tables.capture import models_in_words, run_in_words
from evaltools.result.capture import ModelsCapture, RunCapture
from evaltools.result.evaluation import Environment, FailedExample
from evaltools.result.section import Block, Cell, Files, Lines, Linked, Section, Table

_MOST_FAILED: Final = 10
_WRITTEN: Final = (
    "--output",
    "--plot=",
    "--bundle=",
    "--run_dir=",
    "--save_outputs=",
)
"""The beginnings of flags that name files which tell more."""
_OPENED_BY: Final = "ui.perfetto.dev (open trace file) and chrome://tracing show it"
_OF_A_CAPTURE: Final = "trace.json"


def origin(environment: Environment, failed: Sequence[FailedExample] | None = None) -> Section:
    """The command as typed, the trace, and the first few examples that failed; None where there are no examples."""
    packages = ", ".join(f"{name} {version}" for name, version in environment.packages.items())
    rows: list[Sequence[Cell]] = [
        ("command", shlex.join(environment.command) if environment.command else "from Python"),
        ("evaltools", environment.evaltools),
        ("Python", environment.python),
        ("packages", packages),
        ("system", environment.platform),
        ("processor", f"{environment.processor or environment.machine}, {environment.cpu_count} CPUs"),
        ("started", environment.started_at),
        ("took", f"{environment.elapsed_s:.1f} s"),
    ]
    written = [word for word in environment.command if word.startswith(_WRITTEN)]
    if written:
        rows.insert(1, ("files", ", ".join(written)))
    shows = "every read, decode, run and write" if failed is not None else "loading, runs, memory, operators"
    blocks: list[Block] = [Table("As it was run", (), rows), *_traces(environment.trace, shows)]
    if failed:
        shown = [(each.example, each.configuration or "all", each.stage, each.reason) for each in failed[:_MOST_FAILED]]
        below = some_of(len(shown), len(failed), "examples")
        blocks.append(
            Table("Examples without an answer", ("example", "configuration", "stage", "reason"), shown, below)
        )
    return Section("Command and environment", blocks)


def _traces(name: str, shows: str) -> list[Block]:
    """A link to the trace of a run; nothing where none was written."""
    return [Files("Trace", [Linked(name, f"{shows}; {_OPENED_BY}")])] if name else []


def capture(found: RunCapture | ModelsCapture) -> Section:
    """What ``evaltools capture`` or ``evaltools.profile`` saw, with the trace beside its summary."""
    lines = run_in_words(found) if isinstance(found, RunCapture) else models_in_words(found)
    return Section(
        "What was captured", [Lines([line.strip() for line in lines]), *_traces(_OF_A_CAPTURE, "all events")]
    )
