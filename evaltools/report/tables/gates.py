"""Verdicts on limits, for a person."""

from __future__ import annotations

from rich.console import Console

from evaltools.report.tables.columns import Column, print_columns
from evaltools.report.words.gates import GateLine, GateOutcome, counts, lines, why_not


def print_gates(outcome: GateOutcome, console: Console) -> None:
    """One row per limit and configuration, then why some did not pass, then the counts."""
    names = [
        Column[GateLine]("run", lambda line: line.run),
        Column[GateLine]("configuration", lambda line: line.configuration),
        Column[GateLine]("limit", lambda line: line.limit),
    ]
    columns = [
        Column[GateLine]("found", lambda line: line.found, rank=1, justify="left"),
        Column[GateLine]("verdict", lambda line: line.verdict, justify="left"),
    ]
    print_columns(names, columns, list(lines(outcome)), console)
    console.print()
    for found in why_not(outcome):
        console.print(f"{found.place}: {found.verdict}: {found.explanation}")
    console.print(counts(outcome))
