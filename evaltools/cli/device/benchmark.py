"""``evaltools device run benchmark``: measured on every device, then printed and written as any benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from evaltools.cli.benchmark import contents_of, exit_code_of, written_whole
from evaltools.cli.shared.streams import say
from evaltools.cli.shared.terminal import make_console
from evaltools.device.benchmark import measure_on_devices, read_device_benchmark
from evaltools.device.flags import DeviceFlags
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN
from evaltools.report.files.output_file import planned_outputs, write_outputs
from evaltools.report.page.screens import print_benchmark
from evaltools.request import Request
from evaltools.result.benchmark import BenchmarkResult


def benchmark_on_devices(asked: Request, flags: DeviceFlags) -> int:
    """Benchmark on every device, print, write; returns the exit code."""
    console = make_console()
    request = read_device_benchmark(asked, flags)
    files = planned_outputs(asked.options, written_whole(), asked.files_read)
    result, printed, are_all = measure_on_devices(asked, flags, request, console)
    if not _show_benchmark(result, printed, files, console, asked.options.is_on("quiet")):
        return NOT_WRITTEN
    return exit_code_of(result, request) if are_all else NOT_MEASURED


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
