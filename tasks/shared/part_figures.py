"""What each configuration did in one part of a run, from the part's own records, whatever the task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaltools.engine import Journal, QuietTimes
from evaltools.engine.run_folder import decode, journals_of
from evaltools.result.device_run import PartFigures
from evaltools.tasks.shared.run_identity import QUIET, described_in


def part_figures(folder: Path) -> tuple[PartFigures, ...]:
    """The figures of every configuration that was measured in the run folder of a part."""
    with journals_of([folder]) as (journal,):
        text = journal.fact(QUIET)
        quiet: QuietTimes | None = None if text is None else decode(text, QuietTimes | None, folder)
        return tuple(
            _figures(journal, entry.name, quiet) for entry in described_in(journal) if entry.status == "measured"
        )


def not_measured(folder: Path) -> str:
    """Which configurations a part could not measure, and why; empty where it measured all."""
    with journals_of([folder]) as (journal,):
        return "; ".join(
            f"{entry.name} was not measured: {entry.reason}"
            for entry in described_in(journal)
            if entry.status == "not measured"
        )


def part_messages(folder: Path) -> str:
    """What native code printed in a part while its models were loaded: the runtime's and the delegates' own words."""
    with journals_of([folder]) as (journal,):
        return "\n".join(entry.runtime.messages for entry in described_in(journal) if entry.runtime is not None)


def _figures(journal: Journal[Any], name: str, quiet: QuietTimes | None) -> PartFigures:
    records = list(journal.read_plainly(name))
    observed = [record.observation for record in records if record.observation is not None]
    times = [time for record in records for time in record.invokes_us]
    ranked = [entry for entry in observed if isinstance(entry, dict) and "rank" in entry]
    return PartFigures(
        configuration=name,
        examples=len(records),
        failed=sum(record.failure is not None for record in records),
        invokes_us=tuple(times if quiet is None else quiet.invokes_us(name)),
        right=sum(entry["rank"] == 0 for entry in ranked) if ranked else None,
    )
