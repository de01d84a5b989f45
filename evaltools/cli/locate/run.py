"""``evaltools locate`` behind its flags: search, print, write."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from evaltools.cli.shared.progress import show_progress
from evaltools.cli.shared.streams import say
from evaltools.cli.shared.terminal import make_console, text_for_stdout
from evaltools.engine.ledger import Tally
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN, OK
from evaltools.locate.request import read_request, request_of_flags
from evaltools.locate.run import expected_parts, locate
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.tables.locate import print_answer, print_operators
from evaltools.request.flags import GivenFlags
from evaltools.result.json_file import encode_json
from evaltools.result.locate import LocateResult


def locate_and_print(flags: GivenFlags, command: Sequence[str]) -> int:
    """Search, print the answer to stdout and the table to stderr, write the file; returns the exit code."""
    asked = request_of_flags(flags, command)
    output = _output(flags, asked.files_read)
    request = read_request(asked)
    console = make_console()
    style = "none" if flags.is_on("quiet") else flags.text("progress")
    with show_progress("operators", expected_parts(request), console, style) as update:
        result = locate(request, lambda done, _total: update(Tally(done)))
    if output is not None:
        write_file(output, encode_json(result))
    if not flags.is_on("quiet"):
        print_operators(result, console)
    written = say(text_for_stdout(partial(print_answer, result)))
    return exit_code_of(result) if written else NOT_WRITTEN


def exit_code_of(result: LocateResult) -> int:
    """Whether there is an answer, or else figures of a delegate that ran."""
    ran = result.configuration.status == "measured" and any(operator.accumulated for operator in result.operators)
    return OK if ran or result.verdict.kind != "not decided" else NOT_MEASURED


def _output(flags: GivenFlags, read: Sequence[Path]) -> Path | None:
    output = flags.path("output_file_path")
    if output is None:
        return None
    if output.suffix.lower() != ".json":
        raise UsageError(f"--output_file_path={output}: the findings are JSON; give a name that ends in .json")
    require_output_file(output, "--output_file_path", list(read))
    return output
