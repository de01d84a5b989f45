"""``evaltools baseline`` behind its flags."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from evaltools import exit_codes
from evaltools.cli.judge.verdict_files import EXIT_CODE_OF, planned_files, write_verdicts
from evaltools.cli.shared.streams import complain
from evaltools.cli.shared.terminal import make_console
from evaltools.errors import DataError, OutputError, UsageError
from evaltools.gates.baseline import Baseline, make_baseline, read_baseline
from evaltools.gates.baseline_diff import BaselineComparison, FigureChange, compare_with_baseline
from evaltools.gates.baseline_limits import hold_limits
from evaltools.gates.check import GateDecisions, seconds_of
from evaltools.gates.criteria import Criterion, parse_criterion
from evaltools.gates.outcome import outcome_of
from evaltools.report.files.output_file import require_writable, write_file
from evaltools.report.page.content.sources import Sources
from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.gates import print_gates
from evaltools.report.words.baseline import baseline_change_in_words, baseline_decisions, figure_name
from evaltools.request.flags import GivenFlags
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.result_file import read_result
from evaltools.task_kind import OWN, kind_of, tree_kinds
from evaltools.tasks.shared.request import read_margin
from evaltools.text import printable

_FOLDER: Final = Path("baselines")
_NAME: Final = re.compile(r"\w[\w.-]*")
_TESTED: Final = ("top1", "top5", "ap", "ap50", "ap75")
"""Figures whose statistics are printed; a regression of the others is named as well."""


def act(action: str, result_file: str, flags: GivenFlags) -> int:
    """Save, compare or update a baseline; returns the exit code."""
    margin = read_margin(flags.options())
    result = read_result(Path(result_file))
    baseline_file = _baseline_file(flags, result)
    files = planned_files(flags, [Path(result_file), baseline_file])
    without_effect = [*files, *(["limit"] if flags.texts("limit") else [])]
    if action == "save" and without_effect:
        raise UsageError(f"--{without_effect[0]} has no effect: evaltools baseline save judges nothing; use diff")
    limits = _limits(flags.texts("limit"), result)
    now = make_baseline(result)
    if action == "save":
        return _save(now, baseline_file)
    _require_there(baseline_file)
    before = read_baseline(baseline_file)
    if before.task != now.task or before.subject not in ("", now.subject):
        raise DataError(
            f"{baseline_file} is about {before.about}, {result_file} about {now.about}; "
            "give the two that belong together"
        )
    compared = compare_with_baseline(before, now, margin)
    console = make_console(sys.stdout)
    print_comparison(compared, before, console)
    report = GateDecisions(
        Path(result_file).stem,
        now.model,
        baseline_decisions(compared),
        result.environment.elapsed_s,
        seconds_of(result),
    )
    if limits:
        of_limits = replace(report, decisions=hold_limits(limits, before, now, result))
        print_gates(outcome_of(version("evaltools"), str(baseline_file), [of_limits], "baseline"), console)
        report = replace(report, decisions=(*report.decisions, *of_limits.decisions))
    outcome = outcome_of(version("evaltools"), str(baseline_file), [report], "baseline")
    not_written = write_verdicts(outcome, files, Sources({Path(result_file).stem: result}, baselines=[before]))
    for error in not_written:
        complain(f"evaltools: {error}")
    if action == "update":
        return _write(now, baseline_file, "updated") or (exit_codes.NOT_WRITTEN if not_written else exit_codes.OK)
    if not_written:
        return exit_codes.NOT_WRITTEN
    return EXIT_CODE_OF[outcome.verdict] if report.decisions else exit_codes.OK


def _baseline_file(flags: GivenFlags, result: EvaluationResult) -> Path:
    """The file that ``--baseline_file`` or ``--name`` names, else the default one for the task and its data."""
    stated = flags.path("baseline_file")
    if "name" not in flags:
        return stated or _FOLDER / f"{default_name(result)}.json"
    name = flags.text("name")
    if stated is not None:
        raise UsageError(f"--name={name} and --baseline_file={stated} both say which file; leave one of the two out")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--name={name}: use letters, digits, '_', '-' and '.', such as --name=phone for {_FOLDER}/phone.json; "
            "a file elsewhere is --baseline_file"
        )
    return _FOLDER / f"{name}.json"


def _require_there(path: Path) -> None:
    """Raise :class:`DataError`, naming the other baselines, where the baseline does not exist."""
    others = sorted(other.stem for other in _FOLDER.glob("*.json")) if path.parent == _FOLDER else []
    if others and not path.exists():
        raise DataError(
            f"there is no {path}; there are {', '.join(map(printable, others))}. Give --name=NAME of one, or make it: "
            "evaltools baseline save"
        )


def _limits(texts: Sequence[str], result: EvaluationResult) -> list[Criterion]:
    """Parse ``--limit``; raises :class:`UsageError` for a limit on a figure that the result's task never has."""
    is_own = result.task == OWN or result.task not in tree_kinds()
    own = {metric.name for metric in kind_of(result.task).metrics}
    own |= {name for entry in result.configurations for name in entry.figures}
    of_others = {metric.name for name in tree_kinds() for metric in kind_of(name).metrics} - own
    found = [parse_criterion(text, is_own, against_baseline=True) for text in texts]
    for criterion in found:
        if criterion.figure in of_others:
            raise UsageError(
                f"--limit={criterion.text}: a result of {result.task} has no {criterion.figure} "
                f"({criterion.metric.meaning}); leave it out"
            )
    return found


def default_name(result: EvaluationResult) -> str:
    """The name of a baseline by task and data, so that it stays the same for a renamed model.

    Where the data are no folder, the model's name stands for them.
    """
    images = getattr(getattr(result.part, "data", None), "images", "")
    data = Path(images).resolve().name if images else Path(result.model.file).stem
    name = f"{kind_of(result.task).evidence.subject(result)}-{data}"
    return re.sub(r"[^\w.-]", "_", name)


def _save(now: Baseline, path: Path) -> int:
    if path.exists():
        raise UsageError(f"{path} exists; evaltools baseline update replaces it, or give another with --name=NAME")
    if path.parent == _FOLDER:
        _make_folder()
    require_writable(path, "--baseline_file")
    return _write(now, path, "saved")


def _make_folder() -> None:
    try:
        _FOLDER.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {_FOLDER} cannot be made: {error.strerror}; give --baseline_file=FILE") from error


def _write(now: Baseline, path: Path, done: str) -> int:
    try:
        write_file(path, encode_json(now))
    except OutputError as error:
        complain(f"evaltools: {error}")
        return exit_codes.NOT_WRITTEN
    names = ", ".join(printable(entry.name) for entry in now.configurations)
    complain(f"{path} {done}: {printable(now.about)}, {now.example_count} examples, {names}")
    if any("top1" in entry.figures for entry in now.configurations) and not any(e.ranks for e in now.configurations):
        complain("made without examples, so later changes cannot be tested; add --record_examples=true to the run")
    return exit_codes.OK


def print_comparison(compared: BaselineComparison, before: Baseline, console: Console) -> None:
    """Print what was set up in another way, which figures changed, and which of them are worse."""
    console.print(f"baseline: {printable(before.about)}, {before.example_count} examples, evaltools "
                  f"{before.evaltools}, {before.started_at}")  # fmt: skip
    for line in compared.setup:
        console.print(f"set up in another way: {printable(line)}")
    if differing := [change for change in compared.changes if change.before != change.now]:
        _print_differing(differing, console)
    same = sum(change.before == change.now for change in compared.changes)
    console.print(f"{same} of {len(compared.changes)} figures are the same number as before")
    if compared.new:
        console.print(f"new, so not compared: {', '.join(map(printable, compared.new))}")
    for change in compared.changes:
        if change.verdict is not None and change.figure in _TESTED:
            console.print(f"{printable(change.configuration)}: {change.figure} {baseline_change_in_words(change)}")
    for name in compared.missing:
        console.print(f"NOT MEASURED now: {printable(name)}")
    for change in compared.regressions:
        numbers = f"{_number(change.before)} -> {_number(change.now)}"
        console.print(f"WORSE: {printable(change.configuration)}: {figure_name(change)} {numbers}")


def _print_differing(changes: Sequence[FigureChange], console: Console) -> None:
    names = [
        Column[FigureChange]("configuration", lambda change: printable(change.configuration)),
        Column("figure", figure_name),
    ]
    columns = [
        Column[FigureChange]("change", _difference),
        Column("now", lambda change: _number(change.now)),
        Column("before", lambda change: _number(change.before)),
    ]
    print_columns(names, ranked(columns), changes, console)


def _difference(change: FigureChange) -> str:
    if change.now is None:
        return ""
    difference = change.now - change.before
    return f"{difference:+.0f}" if 1e4 <= abs(difference) < 1e15 else f"{difference:+.4g}"


def _number(value: float | None) -> str:
    """A number with six digits, with more where there are more before the point."""
    return "no number" if value is None else f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"
