"""Limits and what came of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from evaltools.gates.decide import GateVerdict
from evaltools.gates.outcome import GateOutcome
from evaltools.report.content import First
from evaltools.report.words.facts import counted
from evaltools.report.words.gates import counts, lines, warnings_of, why_not
from evaltools.result.section import Block, Cell, Lines, Note, Sentence, Table, Tone, Word

_TONES: Final[Mapping[GateVerdict, Tone]] = {
    "skipped": "missing",
    "pass": "good",
    "fail": "bad",
    "not measured": "missing",
    "inconclusive": "open",
}


def limits(name: str, outcome: GateOutcome) -> First:
    """How many limits are kept, every limit with what was found, and why some did not pass."""
    blocks: list[Block] = [Sentence(_answer(outcome))]
    blocks += [limits_table(outcome)] if outcome.decisions else []
    notes = why_notes(outcome)
    return First("limits", (*blocks, *([Lines(notes)] if notes else [])), steps=tuple(_steps(outcome)), source=name)


def _answer(outcome: GateOutcome) -> str:
    """How many limits are kept, and what the others are."""
    verdicts = [decision.verdict for decision in outcome.decisions]
    if not verdicts:
        return "No limit was checked."
    kept = verdicts.count("pass")
    if kept == len(verdicts):
        return f"All {kept} limits are kept." if kept > 1 else "The limit is kept."
    if len(verdicts) == 1:
        return f"The limit is {'broken' if verdicts[0] == 'fail' else verdicts[0]}."
    verb = "is" if kept < 2 else "are"
    answer = f"{kept or 'none'} of {counted(len(verdicts), 'limit')} {verb} kept: {counts(outcome)}."
    if "fail" not in verdicts:
        return f"No limit is broken, {'but' if kept else 'and'} {answer}"
    return answer[0].upper() + answer[1:]


def _steps(outcome: GateOutcome) -> Iterator[str]:
    """What shows why limits are broken, and what decides those that are open."""
    verdicts = {decision.verdict for decision in outcome.decisions}
    if "fail" in verdicts:
        yield "evaltools report RESULT.json --output=FILE.html shows which examples changed"
    if "inconclusive" in verdicts:
        yield "measure on more examples: the remark on each inconclusive limit says how many"


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
    table = Table(f"Limits of {outcome.gates}", columns, rows, names=5, ranks=(0, 2, 0, 0, 0, 1, 0))
    is_named = all(line.run != "*" and line.model != "*" for line in lines(outcome))
    return table.with_facts({"run": "run {}", "model": "{}"}) if is_named else table


def why_notes(outcome: GateOutcome) -> tuple[Note, ...]:
    """Warnings of the runs, then why limits did not pass."""
    warnings = [Note("warning", text, "open") for text in warnings_of(outcome)]
    reasons = [
        Note(found.place, f"{found.verdict}: {found.explanation}", _TONES[found.verdict]) for found in why_not(outcome)
    ]
    return (*warnings, *reasons)
