"""Decisions on limits in words, as every rendering shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from evaltools.gates.decide import GATE_VERDICTS, Decision, GateVerdict, worst_verdict
from evaltools.gates.hold import GateReport
from evaltools.report.tables.cells import one_line

_ANY: Final = "*"


@dataclass(frozen=True)
class GateOutcome:
    """What came of all gates of a file; ``verdict`` is the worst. ``evaltools`` is the version that judged."""

    evaltools: str
    gates: str
    verdict: GateVerdict
    reports: list[GateReport]

    @property
    def decisions(self) -> list[Decision]:
        """Those of all reports, in order."""
        return [decision for report in self.reports for decision in report.decisions]


def outcome_of(version: str, gates: str, reports: Sequence[GateReport]) -> GateOutcome:
    """Put reports together; ``gates`` names the file, ``version`` is that of evaltools."""
    verdict = worst_verdict([decision for report in reports for decision in report.decisions])
    return GateOutcome(version, gates, verdict, list(reports))


@dataclass(frozen=True)
class GateLine:
    """A decision as texts of one line each, free of characters that command a terminal or that XML cannot hold."""

    run: str
    model: str
    configuration: str
    limit: str
    found: str
    verdict: GateVerdict
    explanation: str
    cannot_exist: bool


def lines(outcome: GateOutcome) -> Iterator[GateLine]:
    """Every decision, in order."""
    for report in outcome.reports:
        for decision in report.decisions:
            yield GateLine(
                run=_text(report.run) or _ANY,
                model=_text(report.model) or _ANY,
                configuration=_text(decision.configuration) or _ANY,
                limit=_text(decision.limit),
                found=_text(decision.found),
                verdict=decision.verdict,
                explanation=_explanation(decision),
                cannot_exist=decision.cannot_exist,
            )


def _explanation(decision: Decision) -> str:
    """Why it did not pass, with the next step where there is one."""
    found = f"found {_text(decision.found)}" if decision.found else ""
    return "; ".join(part for part in (found, _text(decision.reason)) if part)


def _text(text: str) -> str:
    return one_line(" ".join(text.split()))


def counts(outcome: GateOutcome) -> str:
    """How many limits came out how.

    >>> kept, left = Decision("x", "top1 >= 0.7", "pass", ""), Decision("y", "top1 >= 0.7", "not measured", "")
    >>> counts(outcome_of("1", "gates.toml", [GateReport("run", "m.tflite", (kept, left))]))
    '2 limits held against configurations: 1 not measured, 1 pass'
    """
    verdicts = [decision.verdict for decision in outcome.decisions]
    parts = [f"{verdicts.count(verdict)} {verdict}" for verdict in reversed(GATE_VERDICTS) if verdict in verdicts]
    return f"{len(verdicts)} limit{'' if len(verdicts) == 1 else 's'} held against configurations: {', '.join(parts)}"
