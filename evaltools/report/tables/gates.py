"""Verdicts on limits, for a person."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from evaltools.gates.outcome import GateOutcome
from evaltools.report.tables.columns import Column, print_columns
from evaltools.report.words.gates import GateLine, counts, lines, warnings_of, why_not

_WIDEST: Final = 16
"""Limits and figures take two lines rather than leave what was found out."""


def print_gates(outcome: GateOutcome, console: Console) -> None:
    """Warnings, the counts, one row per limit and configuration, why some did not pass, and the counts again."""
    for warning in warnings_of(outcome):
        console.print(f"warning: {warning}")
    console.print(counts(outcome))
    names = [
        Column[GateLine]("run", lambda line: line.run),
        Column[GateLine]("configuration", lambda line: line.configuration),
        Column[GateLine]("limit", lambda line: line.limit),
    ]
    columns = [
        Column[GateLine]("found", lambda line: line.figure, rank=1, justify="left", folds=True),
        Column[GateLine]("examples", lambda line: line.examples, rank=2),
        Column[GateLine]("verdict", lambda line: line.verdict, justify="left"),
    ]
    print_columns(names, columns, list(lines(outcome)), console, widest_name=_WIDEST)
    console.print()
    for found in why_not(outcome):
        console.print(f"{found.place}: {found.verdict}: {found.explanation}")
    console.print(counts(outcome))
