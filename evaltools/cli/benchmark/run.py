"""``evaltools benchmark`` behind its flags: measure, print, write."""

from __future__ import annotations

from contextlib import closing

from evaltools import exit_codes
from evaltools.benchmark.accuracy import accuracies_of
from evaltools.benchmark.request import BenchmarkRequest, read_request
from evaltools.benchmark.run import measure_benchmark
from evaltools.cli.benchmark.files import planned_files
from evaltools.cli.benchmark.lines import NativeLines
from evaltools.cli.shared.interrupts import interrupts_restored
from evaltools.cli.shared.terminal import make_console
from evaltools.report.tables.benchmark import print_benchmark
from evaltools.request import Request
from evaltools.result.benchmark import BenchmarkResult


def benchmark(asked: Request) -> int:
    """Measure, print, write; returns the exit code."""
    console = make_console()
    flags = asked.options
    request = read_request(asked)
    accuracies_of(flags, request)
    files = planned_files(asked, request)
    lines = NativeLines(flags, request, console)
    with interrupts_restored(), closing(lines):
        lines.start()
        result, outputs = measure_benchmark(asked, request, lines)
        lines.summary(result.rows)
        errors = files.write(result, outputs, lines)
        print_benchmark(result, console, is_quiet=flags.is_on("quiet"))
    for error in errors:
        console.print(f"evaltools: {error}", style="bold red")
    if result.stopped:
        console.print("interrupted; the figures are those of the rounds finished until then", style="bold red")
    if not lines.is_written:
        console.print("evaltools: stdout cannot be written", style="bold red")
    if errors or not lines.is_written:
        return exit_codes.NOT_WRITTEN
    return exit_code_of(result, request)


def exit_code_of(result: BenchmarkResult, request: BenchmarkRequest) -> int:
    """The exit code of a benchmark whose files were all written."""
    if result.stopped:
        return exit_codes.INTERRUPTED
    failed = [row for row in result.rows if row.status == "failed"]
    counting = [row for row in failed if row.runtime is not None or row.name not in request.may_be_missing]
    if len(failed) == len(result.rows) or any(row.figures is None for row in counting):
        return exit_codes.NOT_MEASURED
    if request.options.profile_runs and not any(row.profile for row in result.rows):
        return exit_codes.NOT_MEASURED
    return exit_codes.EXAMPLES_FAILED if counting else exit_codes.OK
