"""``evaltools baseline`` behind its flags."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from evaltools import exit_codes
from evaltools.cli.shared.streams import complain
from evaltools.cli.shared.terminal import make_console
from evaltools.errors import DataError, OutputError, UsageError
from evaltools.gates.baseline import Baseline, baseline_json, make_baseline, read_baseline
from evaltools.gates.baseline_diff import BaselineComparison, FigureChange, compare_with_baseline
from evaltools.report.files.output_file import require_writable, write_file
from evaltools.report.tables.cells import one_line
from evaltools.report.words.verdicts import baseline_change_in_words
from evaltools.result.json_file import read_result

_TESTED: Final = ("top1", "top5", "ap", "ap50", "ap75")
"""Figures whose statistics are printed; a regression of the others is named as well."""


def act(action: str, result_file: str, baseline_file: Path, margin: float) -> int:
    """Save, compare, or both; returns the exit code."""
    now = make_baseline(read_result(Path(result_file)))
    if action == "save":
        return _save(now, baseline_file)
    before = read_baseline(baseline_file)
    is_same_task = before.task == now.task and before.subject in ("", now.subject)
    if not is_same_task or before.model != now.model:
        raise DataError(
            f"{baseline_file} is about {before.about}, {result_file} about {now.about}; "
            "give the two that belong together"
        )
    compared = compare_with_baseline(before, now, margin)
    _print(compared, before, make_console(sys.stdout))
    if action == "update":
        return _write(now, baseline_file, "updated")
    if compared.missing:
        return exit_codes.NOT_MEASURED
    return exit_codes.LIMIT_BROKEN if compared.regressions else exit_codes.OK


def _save(now: Baseline, path: Path) -> int:
    if path.exists():
        raise UsageError(f"--baseline_file={path} exists; evaltools baseline update replaces it, or give another name")
    require_writable(path, "--baseline_file")
    return _write(now, path, "saved")


def _write(now: Baseline, path: Path, done: str) -> int:
    try:
        write_file(path, baseline_json(now))
    except OutputError as error:
        complain(f"evaltools: {error}")
        return exit_codes.NOT_WRITTEN
    names = ", ".join(one_line(entry.name) for entry in now.configurations)
    complain(f"{path} {done}: {one_line(now.about)}, {now.example_count} examples, {names}")
    if any("top1" in entry.figures for entry in now.configurations) and not any(e.ranks for e in now.configurations):
        complain("made without examples, so later changes cannot be tested; add --record_examples=true to the run")
    return exit_codes.OK


def _print(compared: BaselineComparison, before: Baseline, console: Console) -> None:
    console.print(f"baseline: {one_line(before.about)}, {before.example_count} examples, evaltools "
                  f"{before.evaltools}, {before.started_at}")  # fmt: skip
    for line in compared.setup:
        console.print(f"set up in another way: {one_line(line)}")
    console.print(_table([change for change in compared.changes if change.before != change.now]))
    same = sum(change.before == change.now for change in compared.changes)
    console.print(f"{same} of {len(compared.changes)} figures are the same number as before")
    if compared.new:
        console.print(f"new, so not compared: {', '.join(map(one_line, compared.new))}")
    for change in compared.changes:
        if change.verdict is not None and change.figure in _TESTED:
            console.print(f"{one_line(change.configuration)}: {change.figure} {baseline_change_in_words(change)}")
    for name in compared.missing:
        console.print(f"NOT MEASURED now: {one_line(name)}")
    for change in compared.regressions:
        console.print(
            f"WORSE: {one_line(change.configuration)}: {_name(change)} {change.before:.6g} -> {change.now:.6g}"
        )


def _table(changes: list[FigureChange]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("configuration", "figure", "before", "now", "change"):
        table.add_column(heading, justify="left" if heading in ("configuration", "figure") else "right")
    for change in changes:
        difference = "" if change.now is None else f"{change.now - change.before:+.4g}"
        values = (f"{change.before:.6g}", _number(change.now), difference)
        table.add_row(one_line(change.configuration), _name(change), *values)
    return table


def _number(value: float | None) -> str:
    return "no number" if value is None else f"{value:.6g}"


def _name(change: FigureChange) -> str:
    return f"{change.figure}[{one_line(change.output)}]" if change.output else change.figure
