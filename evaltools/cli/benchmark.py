"""``evaltools benchmark``: how fast a model is with each configuration, and what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaltools import exit_codes
from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.command import GROUPS, request_of_flags
from evaltools.cli.shared.decided import decided_beside
from evaltools.cli.shared.streams import complain
from evaltools.request import Options, Request
from evaltools.request.flags import parse_flags

if TYPE_CHECKING:
    from evaltools.benchmark.request import BenchmarkRequest
    from evaltools.result.result import Result
    from evaltools.result.rounds import Records

EXIT_CODES: Final = exit_codes.in_words(
    {
        exit_codes.OK: "",
        exit_codes.USAGE: "",
        exit_codes.NOT_MEASURED: "a configuration could not be measured: it never ended a run, its delegate took "
        "nothing; or no operators could be profiled",
        exit_codes.EXAMPLES_FAILED: "runs of a configuration failed, or its process crashed or hung after one "
        "had ended",
        exit_codes.NOT_WRITTEN: "",
        exit_codes.INTERRUPTED: "interrupted; finished rounds are in the files",
    }
)
DESCRIPTION: Final = """\
How fast a model is: load, first run, warm-up, steady state, memory, operators; any number of configurations in turns,
each in processes of its own.
stdout: the lines of benchmark_model, of a single configuration. stderr: what ran, a table sorted by latency, what was
not quiet."""


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    benchmark_flags.refuse_native_flags(arguments)
    flags = parse_flags("benchmark MODEL.tflite", DESCRIPTION, EXIT_CODES, GROUPS, arguments)
    with decided_beside(flags, request_of_flags(flags, ["evaltools", "benchmark", *arguments])) as decided:
        request, missing = decided()
    return benchmark(request, missing)


def benchmark(asked: Request, missing: str = "") -> int:
    """Measure, print, write; returns the exit code. ``missing`` is a line about what was tried and cannot run here."""
    from evaltools.benchmark.accuracy import accuracies_of
    from evaltools.benchmark.conclude import conclude
    from evaltools.benchmark.request import read_request
    from evaltools.benchmark.run import measure_benchmark
    from evaltools.cli.benchmark_native import NativeFiles, NativeLines
    from evaltools.cli.shared.terminal import make_console
    from evaltools.report.files.output_file import planned_outputs, write_outputs
    from evaltools.report.page.screens import print_result
    from evaltools.signals import interrupts_restored

    console, flags = make_console(), asked.options
    request = read_request(asked)
    accuracies_of(flags, request)
    files = planned_outputs(flags, written_whole(), asked.files_read)
    native_files = NativeFiles.planned(asked, request, files)
    lines = NativeLines(flags, request, console)
    if missing:
        complain(missing)
    with interrupts_restored(), closing(lines):
        lines.start()
        facts, found = measure_benchmark(asked, request, lines)
        places = {"": found.records}
        lines.summary(found.records.measured)
        result = conclude(facts, places)
        not_written = native_files.write(found, facts.models, lines)
        contents = {**contents_of(result, places, flags, files), "native_lines": lambda: lines.content}
        not_written += write_outputs(files, contents)
        print_result(result, console, "answer" if flags.is_on("quiet") else "figures")
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    if result.stopped:
        console.print("interrupted; the figures are those of the rounds finished until then", style="bold red")
    if not lines.is_written:
        console.print("evaltools: stdout cannot be written", style="bold red")
    is_written = not not_written and lines.is_written
    return exit_codes.worst_of([exit_code_of(result, request), exit_codes.OK if is_written else exit_codes.NOT_WRITTEN])


def written_whole() -> list[str]:
    """The flags of files that hold all rows together."""
    return [parameter.name for parameter in benchmark_flags.BEYOND if parameter.role == "output_file"]


def contents_of(
    result: Result, places: Mapping[str, Records], flags: Options, files: Mapping[str, Path]
) -> dict[str, Callable[[], bytes]]:
    """What makes the content of each file about a whole result, by flag; ``places`` are what it was concluded from."""
    from evaltools.benchmark.trace import trace_json
    from evaltools.report.content import Sources
    from evaltools.report.files.plot import plot_results
    from evaltools.report.page.file import page_file
    from evaltools.result.json_file import encode_json

    measured = [each for records in places.values() for each in records.measured]
    is_raw = flags.text("output_format") == benchmark_flags.RECORDS
    return {
        "output_file_path": lambda: encode_json(places if is_raw else result),
        "trace": lambda: trace_json(result, measured),
        "plot": lambda: plot_results({result.command: result}, files["plot"]),
        "report": lambda: page_file(Sources(results={result.command: result}), files["report"]),
    }


def exit_code_of(result: Result, request: BenchmarkRequest) -> int:
    """The exit code of a benchmark whose files were all written; on several devices rows are named ``NAME@SERIAL``.

    As of every evaluation: a configuration that never ended a run was not measured, others have runs that failed.
    """
    if result.stopped:
        return exit_codes.INTERRUPTED
    failed = [row for row in result.rows if row.status != "measured"]
    counting = [
        row for row in failed if row.runtime is not None or row.name.partition("@")[0] not in request.may_be_missing
    ]
    nothing_ran = len(failed) == len(result.rows) and not counting
    if nothing_ran or not all(row.figures for row in counting):
        return exit_codes.NOT_MEASURED
    if request.options.profile_runs and not any(row.rows for row in result.rows):
        return exit_codes.NOT_MEASURED
    return exit_codes.EXAMPLES_FAILED if counting else exit_codes.OK
