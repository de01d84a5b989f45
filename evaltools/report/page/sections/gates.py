"""Limits and what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.gates.decide import GateVerdict
from evaltools.gates.outcome import GateOutcome
from evaltools.report.page.content.page import First
from evaltools.report.words.gates import counts, lines, warnings_of, why_not
from evaltools.result.section import Block, Cell, Lines, Note, Sentence, Table, Tone, Word

_TONES: Final[Mapping[GateVerdict, Tone]] = {
    "pass": "good",
    "fail": "bad",
    "not measured": "missing",
    "inconclusive": "open",
}


def limits(name: str, outcome: GateOutcome) -> First:
    """How many limits are kept, every limit with what was found, and why some did not pass."""
    answer = counts(outcome) if outcome.decisions else "no limit was checked"
    blocks: list[Block] = [Sentence(f"{outcome.gates}: {answer}")]
    blocks += [limits_table(outcome)] if outcome.decisions else []
    notes = why_notes(outcome)
    return First("limits", (*blocks, *([Lines(notes)] if notes else [])), source=name)


def limits_table(outcome: GateOutcome) -> Table:
    """A row for each limit and configuration."""
    rows: list[Sequence[Cell]] = [
        (
            line.run,
            line.model,
            line.configuration,
            line.limit,
            line.figure,
            line.examples,
            Word(line.verdict, _TONES[line.verdict]),
        )
        for line in lines(outcome)
    ]
    columns = ("run", "model", "configuration", "limit", "found", "examples", "verdict")
    return Table(f"Limits of {outcome.gates}", columns, rows, names=5, ranks=(0, 2, 0, 0, 0, 1, 0))


def why_notes(outcome: GateOutcome) -> tuple[Note, ...]:
    """Warnings of the runs, then why limits did not pass."""
    warnings = [Note("warning", text, "open") for text in warnings_of(outcome)]
    reasons = [
        Note(found.place, f"{found.verdict}: {found.explanation}", _TONES[found.verdict]) for found in why_not(outcome)
    ]
    return (*warnings, *reasons)
