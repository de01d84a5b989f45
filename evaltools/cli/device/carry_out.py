"""What ``evaltools device run`` does on devices, then what every evaluation or benchmark prints and writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from evaltools.cli.benchmark import contents_of, exit_code_of, written_whole
from evaltools.cli.carry_out import Terminal, carry_out, has_native_lines, write_and_show
from evaltools.cli.shared.interrupts import interrupts_restored
from evaltools.cli.shared.outputs import planned_outputs, write_outputs, write_report
from evaltools.cli.shared.streams import say
from evaltools.cli.shared.terminal import make_console
from evaltools.device.benchmark import measure_on_devices, read_device_benchmark
from evaltools.device.evaluation import parts_on_devices
from evaltools.device.flags import DeviceFlags
from evaltools.device.native.command import refuse_options
from evaltools.device.native.inputs import prepare_native
from evaltools.device.native_evaluation import evaluate_native
from evaltools.device.native_program import require_binary
from evaltools.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, NOT_MEASURED, NOT_WRITTEN, OK
from evaltools.report.files.evaluation import planned_files, planned_report
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.screens import print_benchmark, print_configurations
from evaltools.request import Request
from evaltools.result.benchmark import BenchmarkResult
from evaltools.tasks.shared.declared import declared_task


def evaluate_on_devices(request: Request, flags: DeviceFlags) -> int:
    """Run the parts with evaltools there, merge them; returns the exit code."""
    console = make_console()
    observer = Terminal(console, request.options)
    with interrupts_restored(), parts_on_devices(request, flags, console, observer) as parts:
        code = carry_out(parts.merge_request, parts.shards).exit_code
    return NOT_MEASURED if code in (OK, LIMIT_BROKEN, EXAMPLES_FAILED) and not parts.are_all else code


def evaluate_natively_on_devices(request: Request, flags: DeviceFlags) -> int:
    """Run TensorFlow's binary there, read what it said, print, write; returns the exit code."""
    console, kind = make_console(), declared_task(request.task)
    binary = require_binary(flags, kind.command)
    refuse_options(request.options, flags.program)
    inputs = prepare_native(kind.read(request))
    files = planned_files(request)
    page = planned_report(request)
    with interrupts_restored():
        result, is_whole = evaluate_native(request, flags, inputs, binary, console)
        print_configurations(result.configurations, console)
        with_lines = has_native_lines(result, request.options)
        not_written = write_and_show(result, files, console, request.options, with_lines)
        not_written += write_report(page, Sources({inputs.request.model_file.stem: result}))
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    if not_written:
        return NOT_WRITTEN
    if not is_whole:
        return NOT_MEASURED
    evaluation = kind.evaluation
    return LIMIT_BROKEN if evaluation.breaks_limits(result) else evaluation.exit_code(result)


def benchmark_on_devices(asked: Request, flags: DeviceFlags) -> int:
    """Benchmark on every device, print, write; returns the exit code."""
    console = make_console()
    wanted = read_device_benchmark(asked, flags)
    files = planned_outputs(asked.options, written_whole(), asked.files_read)
    with interrupts_restored():
        found = measure_on_devices(wanted, console)
        if not _show_benchmark(found.result, found.printed, files, console, asked.options.is_on("quiet")):
            return NOT_WRITTEN
    if not found.are_all:
        return NOT_MEASURED
    return exit_code_of(found.result, wanted.request) if found.code is None else found.code


def _show_benchmark(
    result: BenchmarkResult, printed: Mapping[str, str], files: Mapping[str, Path], console: Console, is_quiet: bool
) -> bool:
    """Print what each device printed and the tables, write the files; whether all could be written."""
    is_written = True
    for serial, text in printed.items():
        if not text.strip():
            continue
        heading = f"INFO: Device: {serial}\n" if len(printed) > 1 else ""
        is_written = say(heading + text.rstrip("\n")) and is_written
    print_benchmark(result, console, is_quiet)
    not_written = write_outputs(files, contents_of(result, files))
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    return is_written and not not_written
