"""Reads what ``evaltools locate`` wrote, without evaltools: rows as plain dictionaries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    """The answer, the rows of all operators, of those suspected, of outputs, and what is known of the configuration."""
    result = json.loads(path.read_text())
    configuration, *operators = result["rows"]
    verdict, parts = configuration["verdicts"][0], configuration.get("rows", [])
    places = {row["name"]: row["counts"]["index"] for row in operators}
    return {
        "kind": verdict["kind"],
        "text": verdict["texts"][0],
        "at_fault": [places[name] for name in verdict["output"].split(", ") if name],
        "operators": list(map(flat, operators)),
        "suspects": [suspect(row) for row in operators if "verdicts" in row],
        "outputs": [flat(row) for row in parts if row["role"] == "output"],
        **{row["role"]: flat(row) for row in parts if row["role"] in ("bundle", "in_float")},
        "stopped": result["stopped"],
        "given": result["given"]["inputs"],
        "warnings": [note["text"] for note in result["notes"] if note["of"] == "warning"],
        "tried_in_float": sorted(
            (flat(row) for row in operators if "in_float_gain_db" in row.get("figures", {})), key=loss
        ),
        "keep_in_float": [flat(row)["index"] for row in sorted(operators, key=rank) if rank(row)],
        **flat(configuration),
    }


def flat(row: dict[str, Any]) -> dict[str, Any]:
    figures = {name: figure["value"] for name, figure in row.get("figures", {}).items()}
    return {"name": row["name"], **row.get("texts", {}), **row.get("counts", {}), **figures}


def suspect(row: dict[str, Any]) -> dict[str, Any]:
    """With the evidence, the causes, and other settings."""
    parts: dict[str, list[Any]] = {"evidence": [], "cause": [], "setting": []}
    for part in row.get("rows", []):
        parts[part["role"]].append(flat(part))
    return {**flat(row), **parts, "sure": row["verdicts"][0]["kind"]}


def loss(operator: dict[str, Any]) -> float:
    return -float(operator["in_float_gain_db"])


def rank(row: dict[str, Any]) -> int:
    found: int = row.get("counts", {}).get("keep_in_float", 0)
    return found
