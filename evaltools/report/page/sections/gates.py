"""Limits and what came of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evaltools.gates.decide import GateVerdict
from evaltools.gates.outcome import GateOutcome
from evaltools.report.page.content.page import Saying
from evaltools.report.words.gates import counts, lines, warnings_of, why_not
from evaltools.result.section import Block, Lines, Section, Table, Tone

_TONES: Final[Mapping[GateVerdict, Tone]] = {
    "pass": "good",
    "fail": "bad",
    "not measured": "bad",
    "inconclusive": "open",
}


def saying(outcome: GateOutcome) -> Saying:
    """How many limits are kept, and why others are not."""
    if not outcome.decisions:
        return Saying(outcome.gates, "open", "no limit was held")
    reasons = tuple((found.verdict, f"{found.place}: {found.explanation}") for found in why_not(outcome))
    return Saying(outcome.gates, _TONES[outcome.verdict], counts(outcome), reasons[:5])


def gates(outcome: GateOutcome) -> Section:
    """Every limit with what was found, then why some did not pass."""
    rows = [
        (line.run, line.model, line.configuration, line.limit, line.figure, line.examples, line.verdict)
        for line in lines(outcome)
    ]
    columns = ("run", "model", "configuration", "limit", "found", "examples", "verdict")
    blocks: list[Block] = [Table(f"Limits of {outcome.gates}: {counts(outcome)}", columns, rows)]
    reasons = [f"{found.place}: {found.verdict}: {found.explanation}" for found in why_not(outcome)]
    said = [*(f"warning: {warning}" for warning in warnings_of(outcome)), *reasons]
    return Section("Limits", [*blocks, *([Lines(said)] if said else [])])
