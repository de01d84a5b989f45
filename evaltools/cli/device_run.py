"""``evaltools device run TASK``, carried out: with evaltools itself on devices, or with TensorFlow's binary or app."""

from __future__ import annotations

from pathlib import Path

from evaltools.cli.evaluated import Terminal, evaluate_and_print
from evaltools.cli.shared.terminal import make_console
from evaltools.device.flags import DeviceFlags, read_device_flags
from evaltools.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, NOT_MEASURED, NOT_WRITTEN, OK
from evaltools.request import Request
from evaltools.runs.stored import seen_from
from evaltools.signals import interrupts_restored


def carry_out_on_devices(request: Request) -> int:
    """Run the task of a request on its devices, print, write; returns the exit code."""
    from evaltools.benchmark.command import COMMAND

    request = seen_from(request, Path.cwd())
    assert request.devices is not None
    flags = read_device_flags(request.devices)
    if request.task == COMMAND.name:
        return benchmark_on_devices(request, flags)
    return evaluate_on_devices(request, flags)


def evaluate_on_devices(request: Request, flags: DeviceFlags) -> int:
    """Run evaltools there, make a result of the records."""
    from evaltools.device.evaluation import records_of_devices

    console = make_console()
    observer = Terminal(console, request.options)
    with interrupts_restored(), records_of_devices(request, flags, console, observer) as found:
        merge_request, records, are_all = found
        code = evaluate_and_print(merge_request, records).exit_code
    return NOT_MEASURED if code in (OK, LIMIT_BROKEN, EXAMPLES_FAILED) and not are_all else code


def benchmark_on_devices(asked: Request, flags: DeviceFlags) -> int:
    """Measure on every device, print and write as any benchmark."""
    from evaltools.benchmark.conclude import conclude
    from evaltools.cli.benchmark import contents_of, exit_code_of, written_whole
    from evaltools.cli.shared.streams import say
    from evaltools.device.benchmark import measure_on_devices, read_device_benchmark
    from evaltools.report.files.output_file import planned_outputs, write_outputs
    from evaltools.report.page.screens import print_result

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
    print_result(result, console, "answer" if asked.options.is_on("quiet") else "figures")
    not_written = write_outputs(files, contents_of(result, records, asked.options, files))
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    if not_written or not is_written:
        return NOT_WRITTEN
    return exit_code_of(result, request) if are_all else NOT_MEASURED
