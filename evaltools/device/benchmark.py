"""A benchmark on devices, and on the host if asked for: what each measured makes one result.

It is done by evaltools itself there, or by TensorFlow's binary or app, whose logs are made rows of ours.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.adb.store import stored_folder
from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.accuracy import accuracies_of
from evaltools.benchmark.command import COMMAND
from evaltools.benchmark.conclude import Asked
from evaltools.benchmark.request import BenchmarkRequest, read_request
from evaltools.benchmark.run import Begun
from evaltools.device.app import install_app, run_app
from evaltools.device.device import Device, devices_used, run_on_each
from evaltools.device.flags import DeviceFlags
from evaltools.device.native_program import (
    ProgramRun,
    native_runtime,
    refuse_options,
    require_binary,
    run_binary,
    signal_of,
)
from evaltools.device.python_program import (
    SentFiles,
    carry_out_on,
    device_request,
)
from evaltools.errors import UsageError
from evaltools.native.flags import configuration_flags
from evaltools.native.logs.benchmark import measured_of_logs
from evaltools.native.logs.log_lines import plain_lines
from evaltools.request import Options, Request
from evaltools.result.device import HOST, DeviceWork
from evaltools.result.facts import RuntimeUsed
from evaltools.result.host_names import HostNames
from evaltools.result.json_file import json_in, read_content
from evaltools.result.rounds import Measured, Records
from evaltools.runs.places import run_here, without_host_options

_RECORDS: Final = "records.json"
_STEP: Final = b" of up to "


class BenchmarkPlace(Struct, frozen=True):
    """What a benchmark gave at one place, a device or the host.

    ``printed`` is what its program printed.
    """

    records: Records
    printed: str


Measure = Callable[[Device], tuple[DeviceWork, BenchmarkPlace]]
"""What a device does for a benchmark."""


def read_device_benchmark(asked: Request, flags: DeviceFlags) -> BenchmarkRequest:
    """What is to be measured on devices, as far as the host can check it; raises :class:`UsageError` and its kinds."""
    if flags.program != "evaltools":
        refuse_options(asked.options, flags.program)
    if flags.program == "app" and flags.taskset:
        raise UsageError("--taskset has no effect on a benchmark by --device_program=app; leave it out")
    if flags.program == "native":
        require_binary(flags, asked.task)
    request = read_request(asked, libraries_on_host=False)
    accuracies_of(asked.options, request)
    return request


def measure_on_devices(
    asked: Request, flags: DeviceFlags, request: BenchmarkRequest, console: Console
) -> tuple[Asked, Mapping[str, BenchmarkPlace], bool]:
    """Measure on every device, and on the host if that was asked for.

    Returns what was asked for, what each place gave, and whether every device did its work.
    """
    accuracies, begun = accuracies_of(asked.options, request), Begun()
    is_ours = flags.program == "evaltools"
    measure = _by_evaltools(asked, request, flags, console) if is_ours else _by_native_program(asked, request, flags)
    with devices_used(flags, console) as devices:
        places = {HOST: _on_host(asked, request, console)} if flags.include_host else {}
        done, device_run = run_on_each(measure, flags.program, devices, console)
        is_one_place = not flags.include_host and len(devices.by_serial) == 1
    facts = replace(begun.asked(asked, request, accuracies), device_run=device_run)
    named = {"" if is_one_place else name: place for name, place in {**places, **done}.items()}
    return facts, named, len(done) == len(devices.by_serial)


def _by_evaltools(asked: Request, request: BenchmarkRequest, flags: DeviceFlags, console: Console) -> Measure:
    there, sent = device_request(asked, flags.root, flags.libraries)
    there = without_host_options(there).stating(output_file_path=_RECORDS, output_format=benchmark_flags.RECORDS)
    names = sent.host_names()

    def measure(device: Device) -> tuple[DeviceWork, BenchmarkPlace]:
        def on_line(line: bytes) -> None:
            """Show which measurement the device is doing."""
            if _STEP in line:
                console.print(f"{device.serial}: {line.decode('utf-8', 'replace')}", style="dim")

        with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
            work, answer = carry_out_on(device, COMMAND, there, sent, _RECORDS, Path(folder), on_line)
            return work, _read_place(Path(folder), request, names, answer.text)

    return measure


def _on_host(asked: Request, request: BenchmarkRequest, console: Console) -> BenchmarkPlace:
    console.print("on this computer first ...", style="dim")
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        folder = Path(temporary)
        stated = {"output_file_path": folder / _RECORDS, "output_format": benchmark_flags.RECORDS}
        done = run_here(without_host_options(asked).stating(**stated))
        return _read_place(folder, request, HostNames({}), done.out)


def _read_place(folder: Path, request: BenchmarkRequest, names: HostNames, printed: str) -> BenchmarkPlace:
    """What evaltools measured and wrote into ``folder``, with the flags and the names that files have on the host."""
    file = folder / _RECORDS
    (records,) = json_in(read_content(file), file, dict[str, Records], "file with records of a benchmark").values()
    measured = []
    for each, candidate in zip(records.measured, request.candidates, strict=True):
        row, flags = each.row, candidate.configuration.to_flags()
        row = replace(row, flags=flags, delegates=names.delegates(row.delegates), reason=names.text(row.reason))
        measured.append(replace(each, row=row))
    return BenchmarkPlace(replace(records, measured=measured), names.text(printed))


def _by_native_program(asked: Request, request: BenchmarkRequest, flags: DeviceFlags) -> Measure:
    """A benchmark by a binary or by the app, as the flags say.

    Every device starts the program for each candidate in turns: all in order, then in reverse order, as often as there
    are rounds. So warming up and drift cancel out.
    """
    binary = flags.native_binary if flags.program == "native" else None
    runtime = RuntimeUsed("app", flags.app_package, "", "default") if binary is None else native_runtime(binary)
    sent, there = SentFiles(flags.root), [*range(len(request.candidates))]
    order = [which for number in range(request.options.rounds) for which in there[:: -1 if number % 2 else 1]]
    arguments = _arguments(asked.options, request, sent, flags)
    steps = [arguments[which] for which in order]

    def run(device: Device) -> tuple[DeviceWork, Sequence[ProgramRun]]:
        if binary is not None:
            return run_binary(device, binary, steps, sent.files)
        if flags.app_apk is not None:
            install_app(device, flags.app_apk)
        app, timeout_s = f"{flags.app_package}/{flags.app_activity}", flags.silence_s / (len(steps) + 1)
        return run_app(device, sent.files, app, steps, timeout_s)

    def measured(runs: Sequence[ProgramRun], number: int) -> Measured:
        """What was measured of a candidate, from all starts."""
        own = [run for which, run in zip(order, runs, strict=True) if which == number]
        candidate = request.candidates[number]
        return measured_of_logs(
            candidate.model_number,
            candidate.configuration,
            candidate.model.node_count,
            runtime,
            [f"{run.printed}\n{beside(run.printed, run.logcat)}" for run in own],
            [run.failure or _death(run) for run in own],
            request.options.allow_fallback,
        )

    def measure(device: Device) -> tuple[DeviceWork, BenchmarkPlace]:
        work, runs = run(device)
        records = Records([measured(runs, number) for number in there], list(request.warnings))
        # Older releases print everything to stderr.
        printed = "\n".join(run.out if run.out.strip() or run.failure else run.err for run in runs)
        return work, BenchmarkPlace(records, printed)

    return measure


def _death(run: ProgramRun) -> str:
    """By which signal a program died; empty where it did not."""
    signal = signal_of(run.code)
    return f"the native tool failed with the signal {signal}{f': {run.crash}' if run.crash else ''}" if signal else ""


def _arguments(
    options: Options, request: BenchmarkRequest, sent: SentFiles, flags: DeviceFlags
) -> list[tuple[str, ...]]:
    """The program's arguments for each candidate, with the paths that files have on devices.

    An NPU's dispatch library is looked for in the folder of ``--device_libraries``.
    """
    native = [each for each in benchmark_flags.PARAMETERS if each.log and each.is_sent and not each.repeatable]
    stated = [
        each.format(each.rewrite(options.stated[each.name], partial(sent.take, each)))  # type: ignore[arg-type]
        for each in native
        if each.name in options
    ]
    own = {} if flags.libraries is None else {str(flags.libraries): stored_folder(flags.root, flags.libraries)[0]}
    arguments = []
    for candidate in request.candidates:
        configuration = candidate.configuration
        device_paths = {str(path): sent.take_file(path) for path in configuration.files if path.is_file()}
        threads, *delegates = configuration_flags(configuration, {**device_paths, **own}, with_npu=True)
        if configuration.delegates.value("use_npu") and not configuration.delegates.value("dispatch_library_path"):
            delegates += [f"--dispatch_library_path={folder}" for folder in own.values()]
        threads = threads.replace("--num_interpreter_threads", "--num_threads")
        graph = f"--graph={sent.take_file(candidate.model.path)}"
        arguments.append((graph, threads, *stated, *delegates))
    return arguments


def beside(printed: str, logcat: str) -> str:
    r"""The lines of Android's log that the program did not print too. Native tools write most lines to both.

    >>> start = "11-22 13:10:02.123  1234  1250 "
    >>> beside("INFO: count=50 curr=3\n", f"{start}I tflite  : count=50 curr=3\n{start}E cl      : no such kernel")
    '11-22 13:10:02.123  1234  1250 E cl      : no such kernel'
    """
    known = {line.text for line in plain_lines(printed)}
    return "\n".join(line for line in logcat.splitlines() if not {each.text for each in plain_lines(line)} <= known)
