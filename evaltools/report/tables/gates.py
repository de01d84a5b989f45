"""Verdicts on limits, for a person."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from evaltools.report.words.gates import GateOutcome, counts, lines


def print_gates(outcome: GateOutcome, console: Console) -> None:
    """One row per limit and configuration, then why some did not pass, then the counts."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("run", "configuration", "limit", "found"):
        table.add_column(heading, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for line in lines(outcome):
        table.add_row(line.run, line.configuration, line.limit, line.found, line.verdict)
    console.print(table)
    console.print()
    for line in lines(outcome):
        if line.verdict != "pass":
            place = ", ".join((line.run, line.configuration, line.limit))
            console.print(f"{place}: {line.verdict}: {line.explanation}")
    console.print(counts(outcome))
