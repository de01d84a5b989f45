"""``evaltools locate`` behind its flags: search, print, write."""

from __future__ import annotations

from collections.abc import Iterable
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
from evaltools.locate.kind import searches_after
from evaltools.locate.request import read_request
from evaltools.locate.run import expected_parts, locate
from evaltools.report.files.evaluation import file_per_configuration, require_report
from evaltools.report.files.output_file import require_output_file, write_file, write_measured
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.file import measured_page
from evaltools.report.tables.locate import print_answer, print_operators
from evaltools.request import Request
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.result.locate import LocateResult
from evaltools.text import printable


def locate_and_print(asked: Request) -> int:
    """Search, print the answer to stdout and the table to stderr, write the file; returns the exit code."""
    output, is_quiet = _output(asked), asked.options.is_on("quiet")
    page = asked.options.path("report")
    if page is not None:
        require_report(page, list(asked.files_read))
    console = make_console()
    with interrupts_restored():
        result = _searched(asked, console, _style(asked))
    if not is_quiet:
        print_operators(result, console)
    written = say(text_for_stdout(partial(print_answer, result)))
    if output is not None:
        write_file(output, encode_json(result))
    if page is not None:
        write_file(page, measured_page(Sources(searches={Path(result.model.file).stem: result}), page))
    return exit_code_of(result) if written else NOT_WRITTEN


def _style(request: Request) -> str:
    return "none" if request.options.is_on("quiet") else request.options.text("progress")


def locate_after(
    request: Request, result: EvaluationResult, files: Iterable[Path], console: Console
) -> tuple[list[LocateResult], list[OutputError]]:
    """Search for each configuration that differs, and show what is found; returns that, and what could not be written.

    Where ``files`` has a JSON file, the findings are written beside it.
    """
    searches = searches_after(request, result)
    json_files = [path for path in files if path.suffix.lower() == ".json"]
    beside = file_per_configuration(json_files[0].with_suffix(".locate.json"), list(searches)) if json_files else {}
    found = {}
    for name, search in searches.items():
        found[name] = _searched(search, console, _style(request))
        console.print(f"\n{printable(name)}:")
        if not request.options.is_on("quiet"):
            print_operators(found[name], console)
        print_answer(found[name], console)
    not_written = write_measured({name: encode_json(found[name]) for name in beside}, beside, console)
    return list(found.values()), not_written


def _searched(asked: Request, console: Console, style: str) -> LocateResult:
    request = read_request(asked)
    with show_progress("operators", expected_parts(request), console, style) as update:
        return locate(request, lambda done, _total: update(Tally(done)))


def exit_code_of(result: LocateResult) -> int:
    """Whether there is an answer, or else figures of a delegate that ran."""
    looked_at = bool(result.stopped) or any(operator.accumulated or operator.local for operator in result.operators)
    ran = result.configuration.status == "measured" and looked_at
    return OK if ran or result.verdict.kind != "not decided" else NOT_MEASURED


def _output(asked: Request) -> Path | None:
    output = asked.options.path("output_file_path")
    if output is None:
        return None
    if output.suffix.lower() != ".json":
        raise UsageError(f"--output_file_path={output}: the findings are JSON; give a name that ends in .json")
    require_output_file(output, "--output_file_path", asked.files_read)
    return output
