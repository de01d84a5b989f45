"""Limits as the flags of an inference diff state them, and what came of limits as ``evaltools gate`` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from evaltools.gates.check import GateDecisions
from evaltools.gates.criteria import Criterion, parse_limit
from evaltools.gates.outcome import outcome_of
from evaltools.result.facts import Environment
from evaltools.result.result import Result
from evaltools.result.verdict import GATE_VERDICTS
from evaltools.tasks.inference_diff import options

LIMITS: Final = {each.name: each for each in options.LIMITS}


def limit_of(name: str, text: str) -> Criterion:
    return parse_limit(LIMITS[name], text)


def outcome(gates: str, *reports: GateDecisions, is_inconclusive_allowed: bool = False) -> Result:
    environment = Environment("1.2", "3", "p", "m", "c", 2, {}, "2026-11-25T19:32:30+00:00", 1.0, ["evaltools", "gate"])
    return outcome_of(gates, reports, environment, is_inconclusive_allowed)


def limits_in(file: Path) -> list[dict[str, Any]]:
    """Every limit in a file of verdicts with its verdict, and where it belongs."""
    return [
        {
            "run": row["job"],
            "model": Path(found["models"][row.get("model", 0)]["file"]).name,
            "configuration": row["name"],
            "limit": limit["name"],
            "verdict": limit["verdicts"][0]["kind"],
            "reason": limit.get("reason", ""),
            "examples": limit.get("counts", {}).get("examples", 0),
            "examples_needed": limit["verdicts"][0]["examples_needed"],
        }
        for found in [json.loads(file.read_text())]
        for row in found["rows"]
        for limit in row["rows"]
    ]


def worst_in(file: Path) -> str:
    """The worst verdict in a file of verdicts."""
    return str(max((each["verdict"] for each in limits_in(file)), key=GATE_VERDICTS.index))
