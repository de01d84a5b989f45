"""Verdicts on limits as Markdown, for the summary of a CI job."""

from __future__ import annotations

from typing import Final

from evaltools.gates.outcome import GateOutcome
from evaltools.report.words.gates import GateLine, WhyNot, counts, lines, why_not
from evaltools.report.words.markdown import escape, table

_HEADINGS: Final = ("run", "configuration", "limit", "found", "verdict")


def markdown_summary(outcome: GateOutcome) -> bytes:
    """A heading with the numbers of verdicts, a table, and below it why some did not pass."""
    found = list(lines(outcome))
    rows = table(_HEADINGS, [_verdict_row(line) for line in found])
    parts = [f"### evaltools {outcome.command}: {counts(outcome)}", rows, "\n".join(map(_reason, why_not(outcome)))]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return text.encode()


def _verdict_row(line: GateLine) -> list[str]:
    verdict = line.verdict if _passed(line) else f"**{line.verdict}**"
    return [*map(escape, (line.run, line.configuration, line.limit, line.figure)), verdict]


def _reason(found: WhyNot) -> str:
    """The verdict stands first, so that no name begins a line, where it could begin a list or a heading."""
    return f"* **{found.verdict}**: {escape(found.place)}: {escape(found.explanation)}"


def _passed(line: GateLine) -> bool:
    return line.verdict == "pass"
