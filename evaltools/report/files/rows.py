"""Rows as files for others: a table in CSV, JUnit XML for CI."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

from evaltools.result.obstacles import why_not_measured
from evaltools.result.result import Result, Row, standing_alone
from evaltools.result.row_word import word_of
from evaltools.result.section import Cell, Number, Table, Tone, text_of
from evaltools.result.verdict import GateVerdict, ending_of
from evaltools.text import printable

_FORMULA: Final = re.compile(r"[=@]|[+-](?![\d.]+%?$)(?!$)")
"""How a text begins that a spreadsheet computes; a number is none, nor is a dash alone."""

_COUNTED: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}
_VERDICTS: Final[Mapping[Tone, GateVerdict]] = {
    "bad": "fail", "": "fail", "open": "inconclusive", "missing": "not measured"
}  # fmt: skip


def csv_of(table: Table) -> bytes:
    r"""UTF-8, with the headings as its first line; what has no number is empty.

    Names come from elsewhere: control characters are shown as Python writes them, and what a spreadsheet would take for
    a formula has an apostrophe before it.

    >>> csv_of(Table("", ("name", "top1"), [("a", Number("50 %", 0.5)), ("b", Number("no number", None))]))
    b'name,top1\na,0.5\nb,\n'
    >>> csv_of(Table("", ("name",), [("=1+1",), ("-cmd",), ("-1.5",), ("a\tb",)]))
    b"name\n'=1+1\n'-cmd\n-1.5\na\\tb\n"
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if table.columns:
        writer.writerow(map(_in_csv, table.columns))
    writer.writerows([_in_csv(cell) for cell in row] for row in table.rows)
    return text.getvalue().encode(errors="replace")


def _in_csv(cell: Cell) -> str | float | None:
    if isinstance(cell, Number):
        return cell.value
    text = printable(text_of(cell))
    return f"'{text}" if _FORMULA.match(text) else text


def csv_of_rows(result: Result) -> bytes:
    """A line for each row, with every figure and count by its name."""
    models = result.model_names
    found = [
        {"configuration": row.name, "model": models[row.model], "job": row.job, **_values(result, row)}
        for row in result.rows
    ]
    names = list(dict.fromkeys(name for values in found for name in values))
    return csv_of(Table("", names, [[_cell(values.get(name)) for name in names] for values in found]))


def _values(result: Result, row: Row) -> dict[str, Any]:
    """A row by the names of its columns."""
    return {
        "role": row.role,
        "status": row.status,
        "reason": row.reason,
        "verdict": word_of(result, row),
        "fallback": row.fallback,
        "not_clean": row.not_clean,
        "runtime": "" if row.runtime is None else f"{row.runtime.package} {row.runtime.version}",
        **row.counts,
        **{name: figure.value for name, figure in row.figures.items()},
    }


def _cell(value: Any) -> Cell:
    return Number(str(value), value) if isinstance(value, int | float) else "" if value is None else str(value)


class _Case(NamedTuple):
    """A test case about a configuration, whose own time is ``own_s``, 0 where nobody knows it."""

    configuration: str
    what: str
    verdict: str
    why: str
    own_s: float = 0.0
    found: str = ""


def junit_of_rows(result: Result, is_inconclusive_allowed: bool = False) -> bytes:
    """A test suite per model and job, with a test case for each row but references that were measured.

    Of a gate: a suite per run, a case per limit and configuration. Each that is no pass says why in its message;
    :func:`~evaltools.result.verdict.ending_of` says which element that is. The time of a suite is that of its run,
    which configurations share by what each took itself, and the cases of one evenly.
    """
    suites: dict[str, list[Row]] = {}
    for row in standing_alone(result) if result.is_of_examples else result.rows:
        own = row.job or result.command
        name = printable(own if row.rows else f"{result.model_names[row.model]}, {own}")
        suites.setdefault(name, []).append(row)
    root = ElementTree.Element("testsuites", {"name": f"evaltools {result.command}"})
    every: list[ElementTree.Element] = []
    total = 0.0
    for name, rows in suites.items():
        seconds = max(row.value("elapsed_s") or 0.0 for row in rows)
        cases = [case for row in rows for case in _cases(row, rows)]
        suite = ElementTree.SubElement(root, "testsuite", {"name": name})
        properties = ElementTree.SubElement(suite, "properties")
        for model in dict.fromkeys(result.models[row.model].file for row in rows):
            ElementTree.SubElement(properties, "property", name="model", value=printable(Path(model).name))
        for text in result.warnings:
            if text.startswith(f"{name}: "):
                ElementTree.SubElement(properties, "property", name="warning", value=text.removeprefix(f"{name}: "))
        found = [_element(name, case, seconds * _share(case, cases), is_inconclusive_allowed) for case in cases]
        suite.extend(found)
        suite.attrib |= _numbers(found, seconds)
        every += found
        total += seconds
    root.attrib |= _numbers(every, total)
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)) + b"\n"


def _cases(row: Row, rows: Sequence[Row]) -> Iterator[_Case]:
    """Those of its limits, or the one of a row without, among all ``rows`` of its model and job."""
    for limit in row.rows:
        of = f"of {limit.counts['examples']} examples" if limit.counts else ""
        found = " ".join(filter(None, (*limit.figures, limit.texts.get("found", ""), of)))
        for each in limit.verdicts:
            yield _Case(row.name, limit.name, each.kind, each.why, row.value("inference_s") or 0.0, found)
    if row.rows or (row.role != "test" and row.status == "measured"):
        return
    obstacle = why_not_measured(row, rows)
    verdict: GateVerdict = "pass" if row.verdict is None else _VERDICTS.get(row.verdict.tone, "pass")
    if row.verdict is not None and row.verdict.is_open:
        verdict = "inconclusive"
    if obstacle:
        verdict = "not measured"
    why = obstacle or (row.verdict.kind if row.verdict is not None and verdict != "pass" else "")
    yield _Case(row.name, "measured" if row.verdict is None else "as the reference", verdict, why)


def _share(case: _Case, cases: Sequence[_Case]) -> float:
    """The share, 0..1, of its run's time that a configuration took; equal shares where the times are not known."""
    own_s = {each.configuration: each.own_s for each in cases}
    count = sum(each.configuration == case.configuration for each in cases)
    return case.own_s / sum(own_s.values()) / count if sum(own_s.values()) else 1 / len(cases)


def _element(suite: str, case: _Case, seconds: float, is_inconclusive_allowed: bool) -> ElementTree.Element:
    name = printable(f"{case.configuration}: {case.what}")
    found = ElementTree.Element("testcase", classname=suite, name=name, time=f"{seconds:.3f}")
    kind = ending_of(case.verdict, is_inconclusive_allowed).junit
    if kind is not None:
        reason = ElementTree.SubElement(found, kind, message=printable(f"{case.verdict}: {case.why}"))
        if kind != "skipped":
            reason.set("type", case.verdict)
    if case.found:
        ElementTree.SubElement(found, "system-out").text = case.found
    return found


def _numbers(cases: Sequence[ElementTree.Element], seconds: float) -> dict[str, str]:
    counted = {name: str(sum(case.find(kind) is not None for case in cases)) for name, kind in _COUNTED.items()}
    return {"tests": str(len(cases)), **counted, "time": f"{seconds:.3f}"}
