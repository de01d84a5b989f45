"""``evaltools suite`` behind its flags: run, print, write."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from evaltools import exit_codes
from evaltools.cli.shared.interrupts import interrupts_restored
from evaltools.cli.shared.progress import Update, show_progress
from evaltools.cli.shared.streams import complain, say
from evaltools.cli.shared.terminal import make_console, text_for_stdout
from evaltools.engine import Tally
from evaltools.errors import OutputError, UsageError
from evaltools.gates.suite import SuiteResult
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.tables.suite import print_suite
from evaltools.request import Request
from evaltools.result.json_file import encode_json
from evaltools.suite.run import run_suite

_WORST_FIRST: Final = (exit_codes.USAGE, exit_codes.NOT_MEASURED, exit_codes.EXAMPLES_FAILED, exit_codes.LIMIT_BROKEN)


def suite(request: Request) -> int:
    """Run, print, write; returns the exit code."""
    console = make_console()
    files = _planned_files(request)
    with interrupts_restored():
        result = _run(request, console)
    is_printed = say(text_for_stdout(partial(print_suite, result)))
    not_written = _write(result, files)
    for error in not_written:
        complain(f"evaltools: {error}")
    if result.stopped:
        goes_on = request.options.path("run_dir")
        complain(f"evaltools: {result.stopped}" + (f"; evaltools resume {goes_on} goes on" if goes_on else ""))
        return exit_codes.INTERRUPTED
    return exit_codes.NOT_WRITTEN if not_written or not is_printed else exit_code_of(result)


def exit_code_of(result: SuiteResult) -> int:
    """The worst of the entries' codes; of one without a result, that it was not measured."""
    codes = {exit_codes.NOT_MEASURED if entry.state == "failed" else entry.exit_code for entry in result.entries}
    return next((code for code in _WORST_FIRST if code in codes), exit_codes.OK)


def _planned_files(request: Request) -> dict[str, Path]:
    """The files to write, checked before anything is run."""
    output = request.options.path("output_file_path")
    if output is None:
        return {}
    if output.suffix.lower() != ".json":
        raise UsageError(f"--output_file_path={output}: the result is JSON; give a name that ends in .json")
    require_output_file(output, "--output_file_path", request.files_read)
    return {"output_file_path": output}


def _write(result: SuiteResult, files: dict[str, Path]) -> list[OutputError]:
    not_written = []
    for path in files.values():
        try:
            write_file(path, encode_json(result))
        except OutputError as error:
            not_written.append(error)
    return not_written


def _run(request: Request, console: Console) -> SuiteResult:
    """Run with progress, which counts entries."""
    with ExitStack() as shown:
        update: Update | None = None

        def tell(done: int, total: int) -> None:
            nonlocal update
            if update is None:
                update = shown.enter_context(show_progress("runs", total, console, request.options.text("progress")))
            update(Tally(done))

        return run_suite(request, tell)
