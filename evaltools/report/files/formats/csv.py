"""A table for spreadsheets: a row per configuration, figures as the JSON result has them."""

from __future__ import annotations

import csv
import io
from typing import Final

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.metrics import METRICS

PER_CONFIGURATION: Final = False
_FACTS: Final = ("configuration", "role", "status", "verdict", "reason")


def render(result: EvaluationResult, _configuration: ConfigurationResult | None) -> bytes:
    """UTF-8; a figure that a configuration does not have is empty."""
    rows = [_row(result, entry) for entry in result.configurations]
    columns = dict.fromkeys([*_FACTS, *(name for row in rows for name in row)])
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode(errors="replace")


def _row(result: EvaluationResult, entry: ConfigurationResult) -> dict[str, object]:
    """Facts, the task's figures, then those that every task has."""
    row: dict[str, object] = {
        "configuration": entry.name,
        "role": entry.role,
        "status": entry.status,
        "verdict": entry.verdict.kind if entry.verdict is not None else "",
        "reason": entry.reason or "",
    }
    if entry.status == "measured":
        common = {metric.name: metric.read(result, entry) for metric in METRICS}
        row.update({name: value for name, value in common.items() if isinstance(value, float)})
        row.update(entry.figures)
    return row
