"""A suite as files for others: a table in CSV, JUnit XML for CI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, GateVerdict
from evaltools.gates.outcome import outcome_of
from evaltools.gates.suite_result import SuiteEntry, SuiteResult, SuiteRow
from evaltools.report.files.gates import junit_xml
from evaltools.report.page.rendering.csv_text import csv_of
from evaltools.report.page.sections.rows import tone_of_kind
from evaltools.result.section import Cell, Number, Table, Tone

_NESTED: Final = ("flags", "delegates", "not_decided", "p50_interval", "speed_interval")
"""Fields of a row that are no single value."""
_VERDICTS: Final[Mapping[Tone, GateVerdict]] = {"bad": "fail", "open": "inconclusive", "missing": "not measured"}


def csv_of_suite(result: SuiteResult) -> bytes:
    """A row for each configuration of each entry; an entry without a result has one with its reason."""
    names = ["model", "job", *(name for name in SuiteRow.__struct_fields__ if name not in _NESTED)]
    found: list[dict[str, Any]] = []
    for entry in result.entries:
        which = {"model": entry.model, "job": entry.job}
        found += [{**msgspec.to_builtins(row), **which} for row in entry.rows]
        if not entry.rows:
            found.append({"configuration": "*", "status": "not measured", "reason": entry.reason, **which})
    return csv_of(Table("", names, [[_cell(row.get(name)) for name in names] for row in found]))


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


def _decision(row: SuiteRow) -> Decision:
    limit = "measured" if row.verdict is None else "as the reference"
    obstacle = (
        row.fallback or row.not_clean or (row.reason if row.status == "not measured" or row.failed_examples else "")
    )
    verdict = "pass" if row.verdict is None else _VERDICTS.get(tone_of_kind(row.verdict), "pass")
    if obstacle or row.status == "not measured":
        verdict = "not measured"
    text = obstacle or ((row.verdict or "") if verdict != "pass" else "")
    return Decision(row.configuration, limit, verdict, reason=text)
