"""``evaltools locate`` behind its flags: search, print, write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from evaltools.cli.shared.interrupts import interrupts_restored
from evaltools.cli.shared.progress import show_progress
from evaltools.cli.shared.streams import say
from evaltools.cli.shared.terminal import make_console, text_for_stdout
from evaltools.engine.ledger import Tally
from evaltools.errors import OutputError, UsageError
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN, OK
from evaltools.locate.after import searches_after
from evaltools.locate.request import LocateRequest, read_request, request_of_flags
from evaltools.locate.run import expected_parts, locate
from evaltools.report.files.evaluation import file_per_configuration
from evaltools.report.files.output_file import require_output_file, write_file, write_measured
from evaltools.report.files.planned import require_report
from evaltools.report.page.file import page_file
from evaltools.report.page.make import Sources
from evaltools.report.tables.locate import print_answer, print_operators
from evaltools.request import Request
from evaltools.request.flags import GivenFlags
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.result.locate import LocateResult
from evaltools.text import printable


def locate_and_print(flags: GivenFlags, command: Sequence[str]) -> int:
    """Search, print the answer to stdout and the table to stderr, write the file; returns the exit code."""
    asked = request_of_flags(flags, command)
    output = _output(flags, asked.files_read)
    page = flags.path("report")
    if page is not None:
        require_report(page, list(asked.files_read), [] if output is None else [output])
    request = read_request(asked)
    console = make_console()
    with interrupts_restored():
        result = _searched(request, console, "none" if flags.is_on("quiet") else flags.text("progress"))
    if output is not None:
        write_file(output, encode_json(result))
    if page is not None:
        name = Path(result.model.file).stem
        write_file(page, page_file(Sources(searches={name: result}), page))
    if not flags.is_on("quiet"):
        print_operators(result, console)
    written = say(text_for_stdout(partial(print_answer, result)))
    return exit_code_of(result) if written else NOT_WRITTEN


def locate_after(
    request: Request, result: EvaluationResult, files: Iterable[Path], console: Console
) -> tuple[list[LocateResult], list[OutputError]]:
    """Search for each configuration that differs, and show what is found; returns that, and what could not be written.

    Where ``files`` has a JSON file, the findings are written beside it.
    """
    searches = searches_after(request, result)
    json_files = [path for path in files if path.suffix.lower() == ".json"]
    beside = file_per_configuration(json_files[0].with_suffix(".locate.json"), list(searches)) if json_files else {}
    found, quiet = {}, request.options.is_on("quiet")
    for name, search in searches.items():
        found[name] = _searched(read_request(search), console, "none" if quiet else request.options.text("progress"))
        console.print(f"\n{printable(name)}:")
        if not quiet:
            print_operators(found[name], console)
        print_answer(found[name], console)
    not_written = write_measured({name: encode_json(found[name]) for name in beside}, beside, console)
    return list(found.values()), not_written


def _searched(request: LocateRequest, console: Console, style: str) -> LocateResult:
    with show_progress("operators", expected_parts(request), console, style) as update:
        return locate(request, lambda done, _total: update(Tally(done)))


def exit_code_of(result: LocateResult) -> int:
    """Whether there is an answer, or else figures of a delegate that ran."""
    looked_at = bool(result.stopped) or any(operator.accumulated or operator.local for operator in result.operators)
    ran = result.configuration.status == "measured" and looked_at
    return OK if ran or result.verdict.kind != "not decided" else NOT_MEASURED


def _output(flags: GivenFlags, read: Sequence[Path]) -> Path | None:
    output = flags.path("output_file_path")
    if output is None:
        return None
    if output.suffix.lower() != ".json":
        raise UsageError(f"--output_file_path={output}: the findings are JSON; give a name that ends in .json")
    require_output_file(output, "--output_file_path", list(read))
    return output
