"""Rows as files for others: a table in CSV, JUnit XML for CI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, GateVerdict
from evaltools.gates.outcome import outcome_of
from evaltools.report.files.gates import junit_xml
from evaltools.report.page.rendering.csv_text import csv_of
from evaltools.report.page.sections.rows import tone_of_kind
from evaltools.result.result import Result, Row
from evaltools.result.section import Cell, Number, Table, Tone

_VERDICTS: Final[Mapping[Tone, GateVerdict]] = {"bad": "fail", "open": "inconclusive", "missing": "not measured"}


def csv_of_rows(result: Result) -> bytes:
    """A line for each row, with every figure and count by its name."""
    models = result.model_names
    found = [
        {"configuration": row.name, "model": models[row.model], "job": row.job, **_values(row)} for row in result.rows
    ]
    names = list(dict.fromkeys(name for values in found for name in values))
    return csv_of(Table("", names, [[_cell(values.get(name)) for name in names] for values in found]))


def _values(row: Row) -> dict[str, Any]:
    """A row by the names of its columns."""
    return {
        "role": row.role,
        "status": row.status,
        "reason": row.reason,
        "verdict": "" if row.verdict is None else row.verdict.kind,
        "fallback": row.fallback,
        "not_clean": row.not_clean,
        "runtime": "" if row.runtime is None else f"{row.runtime.package} {row.runtime.version}",
        **row.counts,
        **{name: figure.value for name, figure in row.figures.items()},
    }


def _cell(value: Any) -> Cell:
    return Number(str(value), value) if isinstance(value, int | float) else "" if value is None else str(value)


def junit_of_rows(result: Result) -> bytes:
    """A test case for each row but references that were measured, in a suite for each model and job."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in result.rows:
        found.setdefault((result.model_names[row.model], row.job or result.command), []).append(row)
    reports = [
        GateDecisions(
            f"{model}, {job}",
            model,
            tuple(_decision(row) for row in rows if row.role == "test" or row.status == "not measured"),
            elapsed_s=rows[0].value("elapsed_s") or 0.0,
        )
        for (model, job), rows in found.items()
    ]
    return junit_xml(outcome_of(result.environment.evaltools, "", reports, result.command))


def _decision(row: Row) -> Decision:
    limit = "measured" if row.verdict is None else "as the reference"
    failed = row.texts.get("first_failure", "") if row.failed_examples else ""
    obstacle = row.fallback or row.not_clean or (row.reason if row.status == "not measured" else failed)
    verdict = "pass" if row.verdict is None else _VERDICTS.get(tone_of_kind(row.verdict.kind), "pass")
    if obstacle or row.status == "not measured":
        verdict = "not measured"
    text = obstacle or (row.verdict.kind if row.verdict is not None and verdict != "pass" else "")
    return Decision(row.name, limit, verdict, reason=text)
