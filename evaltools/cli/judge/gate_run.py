"""``evaltools gate`` behind its flags: read or run, judge, write, print."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from evaltools import exit_codes
from evaltools.cli.judge.verdict_files import EXIT_CODE_OF, planned_files, write_verdicts
from evaltools.cli.shared.streams import say
from evaltools.cli.shared.terminal import make_console, text_for_stdout
from evaltools.commands.gates import read_run
from evaltools.errors import OutputError, UsageError
from evaltools.gates.check import hold_gates, report_unjudged
from evaltools.gates.decide import worst_verdict
from evaltools.gates.gate_file import GateFile, RunSource, read_gate_file
from evaltools.gates.outcome import outcome_of
from evaltools.report.page.content.sources import Sources
from evaltools.report.tables.gates import print_gates
from evaltools.request.flags import GivenFlags
from evaltools.result.evaluation import EvaluationResult
from evaltools.result_file import read_result
from evaltools.runs.gate_runs import Run, result_of
from evaltools.task_kind import tree_kinds

_DEFAULTS: Final = ("gates.toml", "pyproject.toml")


def gate(flags: GivenFlags, results: Sequence[str]) -> int:
    """Check results, or the runs of the gate file where no results are given, against its gates.

    Returns the exit code.
    """
    is_inconclusive_allowed = flags.is_on("allow_inconclusive")
    file = read_gate_file(_gate_file(flags))
    sources = _named(results, file) if results else _runs(file)
    runs = [read_run(source, file.path.parent) for source in sources]
    _require_possible(file, runs)
    files = planned_files(flags, [file.path, *(path for run in runs for path in run.files_read)])
    console = make_console()
    seconds: dict[str, float] = {}
    found = _results(runs, console, seconds)
    held = hold_gates(file.gates, found) + report_unjudged(file.gates, found)
    timed = [replace(report, elapsed_s=seconds.get(report.run, report.elapsed_s)) for report in held]
    outcome = outcome_of(version("evaltools"), str(file.path), timed)
    is_printed = say(text_for_stdout(partial(print_gates, outcome)))
    not_written = write_verdicts(outcome, files, Sources(found))
    if not is_printed:
        not_written.append(OutputError("stdout cannot be written"))
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    if not_written:
        return exit_codes.NOT_WRITTEN
    counting = [each for each in outcome.decisions if each.verdict != "inconclusive" or not is_inconclusive_allowed]
    return EXIT_CODE_OF[worst_verdict(counting)] if counting else exit_codes.OK


def _gate_file(flags: GivenFlags) -> Path:
    given = flags.path("gates")
    if given is not None:
        return given
    for name in _DEFAULTS:
        if os.path.exists(name):
            return Path(name)
    raise UsageError(
        f"there is neither {' nor '.join(_DEFAULTS)} in this folder; write one as docs/gates.md shows, or give "
        "--gates=FILE"
    )


def _runs(file: GateFile) -> tuple[RunSource, ...]:
    if not file.runs:
        raise UsageError(
            f"there is no result to judge: {file.path} has no [runs.NAME]; add some, or give the result files: "
            "evaltools gate RESULT.json"
        )
    return file.runs


def _named(results: Sequence[str], file: GateFile) -> list[RunSource]:
    """The given results by the name of the run that they belong to, or by their file's name where there is none."""
    runs = {os.path.realpath(run.result): run.name for run in file.runs if run.result is not None}
    files: dict[str, str] = {}
    for word in results:
        name = runs.get(os.path.realpath(word), Path(word).stem) if word else ""
        if not name or "\0" in word:
            raise UsageError(f"{word!r} is no name of a result file; give evaltools gate RESULT.json")
        if name in files:
            raise UsageError(
                f"{files[name]} and {word} are both taken for the run {name!r}; name one of them in {file.path}: "
                f"[runs.NAME] with result = {word!r}"
            )
        files[name] = word
    return [RunSource(name, result=Path(word)) for name, word in files.items()]


def _require_possible(file: GateFile, runs: Sequence[Run]) -> None:
    """Raise :class:`UsageError`, before anything is run, for limits on figures that the task of a run never has."""
    of_tasks = {name: {metric.name for metric in kind.metrics} for name, kind in tree_kinds().items()}
    for run in runs:
        task = "" if run.request is None else run.request.task
        of_others = set().union(*of_tasks.values()) - of_tasks.get(task, set())
        about = [gate for gate in file.gates if not gate.model and gate.is_about(run.source.name, task, task, "")]
        for criterion in (criterion for gate in about for criterion in gate.criteria if task in of_tasks):
            if criterion.figure in of_others:
                raise UsageError(
                    f"{file.path}: {criterion.text!r} is held against run {run.source.name}, which is of {task} and "
                    f"has no {criterion.figure} ({criterion.metric.meaning}); say which task or run it is about"
                )


def _results(runs: Sequence[Run], console: Console, seconds: dict[str, float]) -> dict[str, EvaluationResult]:
    """The result of every run. Files are read first, so that a damaged one is reported before hours of runs.

    ``seconds`` is filled with the time that each command took.
    """
    found = {run.source.name: read_result(run.source.result) for run in runs if run.source.result is not None}
    with tempfile.TemporaryDirectory(prefix="evaltools-gate-") as scratch:
        for number, run in enumerate(runs):
            if run.source.result is None:
                console.print(f"run {run.source.name}: evaltools {shlex.join(run.source.command)}")
                start = time.perf_counter()
                found[run.source.name] = result_of(run, Path(scratch, f"{number}.json"))
                seconds[run.source.name] = round(time.perf_counter() - start, 3)
    return {run.source.name: found[run.source.name] for run in runs}
