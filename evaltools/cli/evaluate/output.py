"""What every evaluating command does after its evaluation: it writes files and prints the native lines and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from evaltools.cli.shared.streams import say, stdout_is_terminal
from evaltools.errors import OutputError
from evaltools.native.lines.evaluation import native_lines
from evaltools.report.files.evaluation import rendered
from evaltools.report.files.output_file import write_file, write_measured
from evaltools.report.page.content.sources import Sources
from evaltools.report.tables.evaluation import print_result
from evaltools.request import Options
from evaltools.result.evaluation import EvaluationResult
from evaltools.task_kind import Detail


def detail_of(options: Options) -> Detail:
    """How much detail ``--quiet`` and ``--verbose`` ask for."""
    return "answer" if options.is_on("quiet") else "all" if options.is_on("verbose") else "figures"


def has_native_lines(result: EvaluationResult, options: Options, is_one_model: bool = True) -> bool:
    """Whether the native lines are printed on stdout.

    They are where a program reads stdout, and with ``--compat=native``. On a terminal they are only for a single model
    with a single test configuration, without ``--quiet``.
    """
    if not stdout_is_terminal() or options.text("compat") == "native":
        return True
    tests = [entry for entry in result.configurations if entry.role == "test"]
    return is_one_model and len(tests) == 1 and not options.is_on("quiet")


def write_and_show(
    result: EvaluationResult, files: dict[str, Path], console: Console, options: Options, with_lines: bool = True
) -> list[OutputError]:
    """Write the files, print the native lines and the tables; returns what could not be written."""
    contents = rendered(result, files, options.text("output_format"))
    not_written = write_measured(contents, files, console)
    if with_lines:
        not_written += print_to_stdout(native_lines(result))
    print_result(result, console, detail_of(options))
    return not_written


def write_report(path: Path | None, sources: Sources) -> list[OutputError]:
    """Write the page, if one is asked for; returns what could not be written."""
    if path is None:
        return []
    from evaltools.report.page.file import measured_page

    try:
        write_file(path, measured_page(sources, path))
    except OutputError as error:
        return [error]
    return []


def print_to_stdout(lines: Sequence[str]) -> list[OutputError]:
    """Print lines; returns what could not be written."""
    return [] if not lines or say("\n".join(lines)) else [OutputError("stdout cannot be written")]


def print_crashes(result: EvaluationResult, console: Console) -> None:
    """Say last how often processes crashed, also where fresh ones then gave all answers."""
    for entry in result.configurations:
        if entry.crashes:
            console.print(f"{entry.name}: {entry.crashes_of_runs}", style="bold red")


def print_early_end(result: EvaluationResult, total: int, limit: int | None, native: bool, console: Console) -> None:
    """Say why the evaluation ended before its last example, if it did; ``limit`` is that of failed examples."""
    if result.stopped is None:
        return
    reason: str = result.stopped
    if result.stopped == "too many failed examples":
        reason = f"more than --max_failed_examples={limit} examples failed"
        if native:
            reason = "an example failed, and the native tool stops there (--compat=native)"
    line = f"stopped after {result.examples_done} of {total} examples: {reason}"
    if result.examples_done == total:
        line = f"all {total} examples were run, what follows was not finished: {reason}"
    console.print(line, style="bold red")
