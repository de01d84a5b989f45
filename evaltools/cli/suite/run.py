"""``evaltools suite`` behind its flags: run, print, write."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from rich.console import Console

from evaltools import exit_codes
from evaltools.cli.shared.progress import Update, show_progress
from evaltools.cli.shared.streams import complain, say
from evaltools.cli.shared.terminal import make_console, text_for_stdout
from evaltools.engine.ledger import Tally
from evaltools.report.content import Sources
from evaltools.report.files.output_file import planned_outputs, write_outputs
from evaltools.report.files.rows import csv_of_rows, junit_of_rows
from evaltools.report.page.file import page_file
from evaltools.report.page.screens import print_result
from evaltools.request import Request
from evaltools.result.json_file import encode_json
from evaltools.result.result import ALL, Result
from evaltools.suite.run import run_suite


def suite(request: Request) -> int:
    """Run, print, write; returns the exit code."""
    console = make_console()
    files = planned_outputs(request.options, ("output_file_path", "csv", "junit", "report"), request.files_read)
    result = _run(request, console)
    is_printed = say(text_for_stdout(partial(print_result, result)))
    contents = {
        "output_file_path": lambda: encode_json(result),
        "csv": lambda: csv_of_rows(result),
        "junit": lambda: junit_of_rows(result),
        "report": lambda: page_file(Sources(results={result.command: result}), files["report"]),
    }
    not_written = write_outputs(files, contents)
    for error in not_written:
        complain(f"evaltools: {error}")
    for row in result.rows:
        if row.not_clean:
            complain(f"{result.model_names[row.model]}, {row.name}: {row.not_clean}")
    if result.stopped:
        goes_on = request.options.path("run_dir")
        complain(f"evaltools: {result.stopped}" + (f"; evaltools resume {goes_on} goes on" if goes_on else ""))
    is_written = not not_written and is_printed
    return exit_codes.worst_of([exit_code_of(result), exit_codes.OK if is_written else exit_codes.NOT_WRITTEN])


def exit_code_of(result: Result) -> int:
    """That it was interrupted, else the worst of the jobs' codes; of one without a result, that it was not measured."""
    if result.stopped:
        return exit_codes.INTERRUPTED
    return exit_codes.worst_of(
        {exit_codes.NOT_MEASURED if row.name == ALL else row.counts["exit_code"] for row in result.rows}
    )


def _run(request: Request, console: Console) -> Result:
    """Run with progress, which counts entries."""
    with ExitStack() as shown:
        update: Update | None = None

        def on_step(done: int, total: int) -> None:
            nonlocal update
            if update is None:
                update = shown.enter_context(show_progress("runs", total, console, request.options.text("progress")))
            update(Tally(done))

        return run_suite(request, on_step)
