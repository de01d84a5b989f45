"""A benchmark on devices, and on the host if asked for: what each measured makes one result."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.benchmark.accuracy import accuracies_of
from evaltools.benchmark.command import COMMAND
from evaltools.benchmark.conclude import Asked
from evaltools.benchmark.flags import RECORDS
from evaltools.benchmark.request import BenchmarkRequest, read_request
from evaltools.benchmark.run import Begun
from evaltools.device.device import Device
from evaltools.device.devices import devices_used, run_on_each
from evaltools.device.flags import DeviceFlags
from evaltools.device.native_benchmark import BenchmarkPlace, NativeBenchmark
from evaltools.device.native_program import refuse_options, require_binary
from evaltools.device.python_program import carry_out_on
from evaltools.device.request import carry_out_on_host, device_request, without_host_options
from evaltools.errors import UsageError
from evaltools.request import Request
from evaltools.result.device import HOST, DeviceWork
from evaltools.result.host_names import HostNames
from evaltools.result.json_file import json_in, read_content
from evaltools.result.result import Row
from evaltools.result.rounds import Records

_RECORDS: Final = "records.json"
_STEP: Final = b" of up to "


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
    run = (
        _ours(asked, request, flags, console)
        if is_ours
        else NativeBenchmark(asked.options, request, flags, console).run
    )
    with devices_used(flags, console) as devices:
        places = {HOST: _benchmark_on_host(asked, request, console)} if flags.include_host else {}
        done, device_run = run_on_each(run, flags.program, devices, console)
        is_one_place = not flags.include_host and len(devices.by_serial) == 1
    facts = replace(begun.asked(asked, request, accuracies), device_run=device_run)
    named = {"" if is_one_place else name: place for name, place in {**places, **done}.items()}
    return facts, named, len(done) == len(devices.by_serial)


def _ours(
    asked: Request, request: BenchmarkRequest, flags: DeviceFlags, console: Console
) -> Callable[[Device], tuple[DeviceWork, BenchmarkPlace]]:
    """What a device does for a benchmark by evaltools itself."""
    there, sent = device_request(asked, flags.root, flags.libraries)
    there = without_host_options(there).stating(output_file_path=_RECORDS, output_format=RECORDS)
    names = sent.host_names()

    def run(device: Device) -> tuple[DeviceWork, BenchmarkPlace]:
        def on_line(line: bytes) -> None:
            """Show which measurement the device is doing."""
            if _STEP in line:
                console.print(f"{device.serial}: {line.decode('utf-8', 'replace')}", style="dim")

        with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
            folder = Path(temporary)
            done = carry_out_on(device, COMMAND, there, sent, _RECORDS, folder, on_line)
            return done.work, _place(folder, request, names, done.out)

    return run


def _place(folder: Path, request: BenchmarkRequest, names: HostNames, printed: str) -> BenchmarkPlace:
    """What evaltools measured and wrote into ``folder``, with the names that files have on the host."""
    file = folder / _RECORDS
    (records,) = json_in(read_content(file), file, dict[str, Records], "file with records of a benchmark").values()
    measured = [
        replace(each, row=with_host_names(each.row, candidate.configuration.to_flags(), names))
        for each, candidate in zip(records.measured, request.candidates, strict=True)
    ]
    return BenchmarkPlace(replace(records, measured=measured), names.text(printed))


def _benchmark_on_host(asked: Request, request: BenchmarkRequest, console: Console) -> BenchmarkPlace:
    """The benchmark on the host."""
    console.print("on this computer first ...", style="dim")
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        folder = Path(temporary)
        stated = without_host_options(asked).stating(output_file_path=folder / _RECORDS, output_format=RECORDS)
        done = carry_out_on_host(stated)
        return _place(folder, request, HostNames({}), done.out)


def with_host_names(row: Row, flags: Sequence[str], names: HostNames) -> Row:
    """A row from a device, with the names that files have on the host.

    ``flags`` are the configuration's on the host.
    """
    return replace(row, flags=list(flags), delegates=names.delegates(row.delegates), reason=names.text(row.reason))
