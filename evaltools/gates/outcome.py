"""The typed outcome of all gates, which every rendering shows."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, GateVerdict, worst_verdict
from evaltools.gates.ending import ending_of


class GateOutcome(Struct, frozen=True):
    """What came of all gates of a file; ``verdict`` is the worst. ``evaltools`` is the version that judged.

    ``command`` is what judged: ``gate``, or ``suite``. ``inconclusive_allowed``: what too few examples leave open is
    no error.
    """

    evaltools: str
    gates: str
    verdict: GateVerdict
    reports: list[GateDecisions]
    command: str = "gate"
    inconclusive_allowed: bool = False

    @property
    def exit_code(self) -> int:
        """That of the worst verdict."""
        return ending_of(self.verdict, self.inconclusive_allowed).exit_code

    @property
    def decisions(self) -> list[Decision]:
        """The decisions of all reports, in order."""
        return [decision for report in self.reports for decision in report.decisions]


def outcome_of(
    version: str,
    gates: str,
    reports: Sequence[GateDecisions],
    command: str = "gate",
    inconclusive_allowed: bool = False,
) -> GateOutcome:
    """Put reports together; ``gates`` names the file, ``version`` is that of evaltools."""
    verdict = worst_verdict([decision for report in reports for decision in report.decisions])
    return GateOutcome(version, gates, verdict, list(reports), command, inconclusive_allowed)
