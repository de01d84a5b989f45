"""What becomes of a verdict: exit code, element of JUnit, outcome of a test, line on GitHub; one table for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from evaltools import exit_codes
from evaltools.gates.decide import GateVerdict


class Ending(Struct, frozen=True):
    """What becomes of a verdict everywhere; ``junit`` and ``github`` are None where nothing is to be said.

    An element ``failure`` or ``error``, an exit code other than 0 and a test that failed go together.
    """

    exit_code: int
    junit: Literal["failure", "error", "skipped"] | None
    test: Literal["pass", "fail", "skip"]
    github: Literal["error", "warning", "notice"] | None


_ENDINGS: Final[Mapping[GateVerdict, Ending]] = {
    "skipped": Ending(exit_codes.OK, "skipped", "skip", "notice"),
    "pass": Ending(exit_codes.OK, None, "pass", None),
    "inconclusive": Ending(exit_codes.INCONCLUSIVE, "failure", "fail", "error"),
    "fail": Ending(exit_codes.LIMIT_BROKEN, "failure", "fail", "error"),
    "not measured": Ending(exit_codes.NOT_MEASURED, "error", "fail", "error"),
}
_ALLOWED_INCONCLUSIVE: Final = Ending(exit_codes.OK, "skipped", "skip", "warning")


def ending_of(verdict: GateVerdict, is_inconclusive_allowed: bool) -> Ending:
    """The row of the table; what cannot exist here is ``skipped`` where a gate has ``allow_missing``, else an error.

    >>> ending_of("inconclusive", is_inconclusive_allowed=True).exit_code, ending_of("not measured", True).exit_code
    (0, 3)
    """
    is_allowed = verdict == "inconclusive" and is_inconclusive_allowed
    return _ALLOWED_INCONCLUSIVE if is_allowed else _ENDINGS[verdict]
