"""``evaltools device run benchmark``: the same benchmark on every device, whatever runs there, and one result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from evaltools import exit_codes
from evaltools.cli.benchmark.files import written_whole
from evaltools.cli.benchmark.run import exit_code_of
from evaltools.cli.shared.interrupts import interrupts_restored
from evaltools.cli.shared.streams import say
from evaltools.cli.shared.terminal import make_console
from evaltools.device.run.benchmark import measure_on_devices, read_device_benchmark
from evaltools.device.run.flags import DeviceFlags
from evaltools.errors import OutputError
from evaltools.report.files.benchmark_trace import trace_json
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.files.plot import plot_benchmark, require_plot
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.file import measured_page, require_page_file
from evaltools.report.tables.benchmark import print_benchmark
from evaltools.report.tables.device import print_device_run
from evaltools.request import Request
from evaltools.result.benchmark import BenchmarkResult
from evaltools.result.json_file import encode_json


def benchmark_on_devices(asked: Request, flags: DeviceFlags) -> int:
    """Benchmark on every device, print, write; returns the exit code."""
    console = make_console()
    wanted = read_device_benchmark(asked, flags)
    files = planned_files(asked)
    with interrupts_restored():
        found = measure_on_devices(wanted, console)
        if not show_benchmark(found.result, found.printed, files, console, asked.options.is_on("quiet")):
            return exit_codes.NOT_WRITTEN
    if not found.are_all:
        return exit_codes.NOT_MEASURED
    return exit_code_of(found.result, wanted.request) if found.code is None else found.code


def planned_files(asked: Request) -> dict[str, Path]:
    """The files to write, by flag, checked before anything is measured; raises :class:`UsageError`."""
    flags = asked.options
    files = {name: path for name in written_whole() if (path := flags.path(name)) is not None}
    read = asked.files_read
    for name, path in files.items():
        require_output_file(path, f"--{name}", read)
    if "plot" in files:
        require_plot(files["plot"])
    if "report" in files:
        require_page_file(files["report"], "--report")
    return files


def show_benchmark(
    result: BenchmarkResult, printed: Mapping[str, str], files: Mapping[str, Path], console: Console, is_quiet: bool
) -> bool:
    """Print what each device printed and the tables, write the files; whether all could be written."""
    is_written = True
    for serial, text in printed.items():
        if not text.strip():
            continue
        heading = f"INFO: Device: {serial}\n" if len(printed) > 1 else ""
        is_written = say(heading + text.rstrip("\n")) and is_written
    makers: dict[str, Callable[[], bytes]] = {
        "output_file_path": lambda: encode_json(result),
        "trace": lambda: trace_json(result),
        "plot": lambda: plot_benchmark(result, files["plot"]),
        "report": lambda: measured_page(Sources(benchmarks={"benchmark": result}), files["report"]),
    }
    print_benchmark(result, console, is_quiet)
    if result.device_run is not None:
        print_device_run(result.device_run, console)
    for name, path in files.items():
        try:
            write_file(path, makers[name]())
        except OutputError as error:
            console.print(f"evaltools: {error}", style="bold red")
            is_written = False
    return is_written
