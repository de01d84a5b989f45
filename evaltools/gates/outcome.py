"""The typed outcome of all gates, which every rendering shows."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, GateVerdict, worst_verdict


class GateOutcome(Struct, frozen=True):
    """What came of all gates of a file; ``verdict`` is the worst. ``evaltools`` is the version that judged.

    ``command`` is what judged: ``gate``, or ``baseline``, whose file ``gates`` is then.
    """

    evaltools: str
    gates: str
    verdict: GateVerdict
    reports: list[GateDecisions]
    command: str = "gate"

    @property
    def decisions(self) -> list[Decision]:
        """The decisions of all reports, in order."""
        return [decision for report in self.reports for decision in report.decisions]


def outcome_of(version: str, gates: str, reports: Sequence[GateDecisions], command: str = "gate") -> GateOutcome:
    """Put reports together; ``gates`` names the file, ``version`` is that of evaltools."""
    verdict = worst_verdict([decision for report in reports for decision in report.decisions])
    return GateOutcome(version, gates, verdict, list(reports), command)
