"""``evaltools locate``: which operator makes the difference between a delegate and the CPU, and why."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaltools.exit_codes import INTERRUPTED, NOT_MEASURED, NOT_WRITTEN, OK, USAGE, in_words
from evaltools.locate.command import COMMAND, request_of_flags
from evaltools.request import Options, Request
from evaltools.request.flags import parse_flags

if TYPE_CHECKING:
    from rich.console import Console

    from evaltools.locate.request import LocateRequest
    from evaltools.result.result import Result

DESCRIPTION: Final = """\
Which operator makes the difference between a delegate and the CPU: every operator by itself on the CPU's tensors, the
whole model, and what confirms or clears a suspect. What small differences add up to names no suspect.
The model is given as the first word or as --model_file. stdout: the answer. stderr: progress, the operators."""

_EXIT_CODES: Final = {
    OK: "the search came to its end, whatever it found",
    USAGE: "",
    NOT_MEASURED: "the delegate did not run, or the reference cannot run the model",
    NOT_WRITTEN: "",
    INTERRUPTED: "",
}


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    flags = parse_flags("locate MODEL.tflite", DESCRIPTION, in_words(_EXIT_CODES), COMMAND.groups, arguments)
    request = request_of_flags(flags, ("evaltools", "locate", *arguments))
    from evaltools.runtime.process.server import start_server

    start_server()
    return locate_and_print(request)


def locate_and_print(asked: Request) -> int:
    """Search, print the answer to stdout and the table to stderr, write the files; returns the exit code."""
    from evaltools.cli.shared.streams import complain, say
    from evaltools.cli.shared.terminal import make_console, text_for_stdout
    from evaltools.report.content import Sources
    from evaltools.report.files.output_file import planned_outputs, write_outputs
    from evaltools.report.page.file import page_file
    from evaltools.result.json_file import encode_json

    files = planned_outputs(asked.options, ("output_file_path", "report"), asked.files_read, "the findings are")
    console = make_console()
    result = search(asked, asked.options, console)
    if not asked.options.is_on("quiet"):
        print_operators(result, console)
    is_printed = say(text_for_stdout(partial(print_answer, result)))
    sources = Sources(results={Path(result.models[0].file).stem: result})
    contents = {
        "output_file_path": lambda: encode_json(result),
        "report": lambda: page_file(sources, files["report"]),
    }
    not_written = write_outputs(files, contents)
    for error in not_written:
        complain(f"evaltools: {error}")
    return exit_code_of(result) if is_printed and not not_written else NOT_WRITTEN


def search(asked: Request, options: Options, console: Console) -> Result:
    """Search for the operator, with progress as ``--progress`` and ``--quiet`` of these options ask for."""
    from evaltools.cli.shared.progress import show_progress
    from evaltools.cli.shared.streams import complain
    from evaltools.engine.ledger import Tally
    from evaltools.locate.request import read_request
    from evaltools.locate.run import locate

    request = read_request(asked)
    if request.tested.native_binary and not options.is_on("quiet"):
        complain(_starts(request))
    style = "none" if options.is_on("quiet") else options.text("progress")
    with show_progress("operators", request.expected_parts, console, style) as update:
        return locate(request, lambda done, _total: update(Tally(done)))


def _starts(request: LocateRequest) -> str:
    """How often the program will be started, and what bounds it."""
    least, most = request.expected_starts
    program, limit = Path(request.tested.native_binary).name, request.options.real("max_secs")
    ends = f"--max_secs={limit:g} ends it before" if limit else "--max_secs=N ends it after N seconds"
    return (
        f"{program} is started {least} to {most} times for {request.expected_parts} parts (--num_inputs, --num_runs, "
        f"--part_secs), and more to confirm a suspect; {ends}"
    )


def print_operators(result: Result, console: Console) -> None:
    """The operators that stand out, and the inputs; what two models need warnings for first."""
    from evaltools.locate.words import is_by_name
    from evaltools.report.page.rendering.terminal import show_block
    from evaltools.report.screen.first import at
    from evaltools.result.section import Lines, Note, Table

    tables = [block for block in at(result.blocks, "glance") if isinstance(block, Table)]
    if not tables:
        return
    if is_by_name(result):
        show_block(Lines([Note("warning", text, "open") for text in result.warnings]), console)
    for block in [*tables, *at(result.blocks, "task")[1:]]:
        show_block(block, console)


def print_answer(result: Result, console: Console) -> None:
    """What was found, how sure that is, and what to do next."""
    from evaltools.report.page.rendering.terminal import show_block
    from evaltools.report.screen.first import at

    show_block(at(result.blocks, "task")[0], console)


def exit_code_of(result: Result) -> int:
    """Whether there is an answer, or else figures of a delegate that ran."""
    configuration, *operators = result.rows
    looked_at = bool(result.stopped) or any(row.status == "measured" for row in operators)
    ran = configuration.status == "measured" and looked_at
    verdict = configuration.verdict
    return OK if ran or (verdict is not None and verdict.kind != "not decided") else NOT_MEASURED
