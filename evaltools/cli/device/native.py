"""``evaltools device run TASK`` with TensorFlow's binary on devices."""

from __future__ import annotations

from evaltools.cli.carry_out import has_native_lines, write_and_show
from evaltools.cli.shared.terminal import make_console
from evaltools.device.flags import DeviceFlags
from evaltools.device.native_evaluation import evaluate_native
from evaltools.device.native_inputs import prepare_native
from evaltools.device.native_program import refuse_options, require_binary
from evaltools.exit_codes import LIMIT_BROKEN, NOT_MEASURED, NOT_WRITTEN
from evaltools.known_tasks import task_command
from evaltools.report.content import Sources
from evaltools.report.files.evaluation import planned_files, planned_report
from evaltools.report.files.output_file import write_report
from evaltools.report.page.screens import print_configurations
from evaltools.request import Request
from evaltools.result.result import exit_code_of
from evaltools.signals import interrupts_restored
from evaltools.tasks.framework import read


def evaluate_natively_on_devices(request: Request, flags: DeviceFlags) -> int:
    """Run TensorFlow's binary there, read what it said, print, write; returns the exit code."""
    console, task = make_console(), task_command(request.task)
    binary = require_binary(flags, task.words)
    refuse_options(request.options, flags.program)
    inputs = prepare_native(read(task, request))
    files = planned_files(request)
    page = planned_report(request)
    with interrupts_restored():
        result, is_whole = evaluate_native(request, flags, inputs, binary, console)
        print_configurations(result.rows, console)
        with_lines = has_native_lines(result, request.options)
        not_written = write_and_show(result, files, console, request.options, with_lines)
        not_written += write_report(page, Sources({inputs.request.model_file.stem: result}))
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    if not_written:
        return NOT_WRITTEN
    if not is_whole:
        return NOT_MEASURED
    return LIMIT_BROKEN if result.limits_broken else exit_code_of(result)
