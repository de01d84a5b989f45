"""Verdicts on limits as an endpoint badge: the JSON that a badge service reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evaltools.gates.decide import GateVerdict
from evaltools.gates.outcome import GateOutcome
from evaltools.report.words.gates import counts
from evaltools.result.json_file import encode_json

_COLOURS: Final[Mapping[GateVerdict, str]] = {
    "pass": "brightgreen",
    "not clean": "orange",
    "inconclusive": "yellow",
    "fail": "red",
    "not measured": "orange",
}


def badge_json(outcome: GateOutcome) -> bytes:
    """The numbers of verdicts; red where anything failed, else the colour of the worst."""
    failed = any(decision.verdict == "fail" for decision in outcome.decisions)
    colour = _COLOURS["fail" if failed else outcome.verdict]
    return encode_json({"schemaVersion": 1, "label": "evaltools", "message": counts(outcome), "color": colour})
