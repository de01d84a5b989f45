"""``evaltools device run benchmark``: measured on every device, then printed and written as any benchmark."""

from __future__ import annotations

from evaltools.benchmark.conclude import conclude
from evaltools.cli.benchmark import contents_of, exit_code_of, written_whole
from evaltools.cli.shared.streams import say
from evaltools.cli.shared.terminal import make_console
from evaltools.device.benchmark import measure_on_devices, read_device_benchmark
from evaltools.device.flags import DeviceFlags
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN
from evaltools.report.files.output_file import planned_outputs, write_outputs
from evaltools.report.page.screens import print_rows
from evaltools.request import Request


def benchmark_on_devices(asked: Request, flags: DeviceFlags) -> int:
    """Benchmark on every device, print, write; returns the exit code."""
    console = make_console()
    request = read_device_benchmark(asked, flags)
    files = planned_outputs(asked.options, written_whole(), asked.files_read)
    facts, places, are_all = measure_on_devices(asked, flags, request, console)
    records = {name: place.records for name, place in places.items()}
    result = conclude(facts, records)
    is_written = True
    for serial, place in places.items():
        if place.printed.strip():
            heading = f"INFO: Device: {serial}\n" if len(places) > 1 else ""
            is_written = say(heading + place.printed.rstrip("\n")) and is_written
    print_rows(result, console, asked.options.is_on("quiet"))
    not_written = write_outputs(files, contents_of(result, records, asked.options, files))
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    if not_written or not is_written:
        return NOT_WRITTEN
    return exit_code_of(result, request) if are_all else NOT_MEASURED
