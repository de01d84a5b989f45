"""A suite as files for others: a table in CSV, JUnit XML for CI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, GateVerdict
from evaltools.gates.outcome import outcome_of
from evaltools.gates.suite_result import SuiteEntry, SuiteResult
from evaltools.report.files.gates import junit_xml
from evaltools.report.page.rendering.csv_text import csv_of
from evaltools.report.page.sections.rows import tone_of_kind
from evaltools.result.result import Row
from evaltools.result.section import Cell, Number, Table, Tone

_FIELDS: Final = ("model", "job", "configuration", "role", "status", "reason", "verdict", "fallback", "not_clean")
_VERDICTS: Final[Mapping[Tone, GateVerdict]] = {"bad": "fail", "open": "inconclusive", "missing": "not measured"}


def csv_of_suite(result: SuiteResult) -> bytes:
    """A row for each configuration of each entry; an entry without a result has one with its reason."""
    found: list[dict[str, Any]] = []
    for entry in result.entries:
        which = {"model": entry.model, "job": entry.job}
        found += [{**which, **values_of(row)} for row in entry.rows]
        if not entry.rows:
            found.append({"configuration": "*", "status": "not measured", "reason": entry.reason, **which})
    names = list(dict.fromkeys([*_FIELDS, *(name for values in found for name in values)]))
    return csv_of(Table("", names, [[_cell(values.get(name)) for name in names] for values in found]))


def values_of(row: Row) -> dict[str, Any]:
    """A row by the names of its columns."""
    figures = {name: figure.value for name, figure in row.figures.items()}
    runtime = "" if row.runtime is None else f"{row.runtime.package} {row.runtime.version}"
    return {
        "configuration": row.name,
        "role": row.role,
        "status": row.status,
        "reason": row.reason,
        "verdict": "" if row.verdict is None else row.verdict.kind,
        "fallback": row.fallback,
        "not_clean": row.not_clean,
        "runtime": runtime,
        **row.counts,
        **figures,
    }


def _cell(value: Any) -> Cell:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Number(str(value), value) if is_number else "" if value is None else str(value)


def junit_of_suite(result: SuiteResult) -> bytes:
    """A test case for each configuration."""
    reports = [
        GateDecisions(f"{entry.model}, {entry.job}", entry.model, _decisions(entry), elapsed_s=entry.elapsed_s)
        for entry in result.entries
    ]
    return junit_xml(outcome_of(result.environment.evaltools, "", reports, "suite"))


def _decisions(entry: SuiteEntry) -> tuple[Decision, ...]:
    if not entry.rows:
        return (Decision("*", "measured", "not measured", reason=entry.reason),)
    return tuple(_decision(row) for row in entry.rows if row.role == "test" or row.status == "not measured")


def _decision(row: Row) -> Decision:
    limit = "measured" if row.verdict is None else "as the reference"
    failed = row.texts.get("first_failure", "") if row.counts.get("failed") else ""
    obstacle = row.fallback or row.not_clean or (row.reason if row.status == "not measured" else failed)
    verdict = "pass" if row.verdict is None else _VERDICTS.get(tone_of_kind(row.verdict.kind), "pass")
    if obstacle or row.status == "not measured":
        verdict = "not measured"
    text = obstacle or (row.verdict.kind if row.verdict is not None and verdict != "pass" else "")
    return Decision(row.name, limit, verdict, reason=text)
