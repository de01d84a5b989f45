"""Known ways to be wrong, held against what a culprit gave."""

from __future__ import annotations

from evaltools.locate.parts.case import Case
from evaltools.result.locate import Cause


def find_causes(case: Case) -> tuple[Cause, ...]:  # noqa: ARG001
    """None yet."""
    return ()
