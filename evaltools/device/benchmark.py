"""A benchmark on devices, and on the host if asked for: their rows make one result."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from evaltools import exit_codes
from evaltools.benchmark.accuracy import accuracies_of, with_accuracies
from evaltools.benchmark.command import COMMAND
from evaltools.benchmark.request import BenchmarkRequest, read_request
from evaltools.benchmark.run import options_in_force
from evaltools.device.device import Device
from evaltools.device.devices import DevicesUsed, require_answer, run_on_each
from evaltools.device.flags import DeviceFlags
from evaltools.device.native_benchmark import BenchmarkPlace, NativeBenchmark
from evaltools.device.native_program import refuse_options, require_binary
from evaltools.device.python_program import python_on
from evaltools.device.request import carry_out_on_host, device_request, without_host_options
from evaltools.device.work import StderrLines, Work
from evaltools.engine.opening import describe_model
from evaltools.errors import UsageError
from evaltools.request import Request
from evaltools.result.benchmark import BENCHMARK_SCHEMA_VERSION, BenchmarkResult, BenchmarkRow, read_benchmark
from evaltools.result.device import HOST, DeviceWork
from evaltools.result.environment import describe_environment
from evaltools.result.task_part import HostNames
from evaltools.runs.stored import to_bytes

_RESULT: Final = "result.json"
_STEP: Final = b" of up to "
_WITH_A_RESULT: Final = (exit_codes.NOT_MEASURED, exit_codes.EXAMPLES_FAILED, exit_codes.OK)


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
) -> tuple[BenchmarkResult, Mapping[str, str], bool]:
    """Measure on every device, and on the host if that was asked for.

    Returns the result, what the program of each place printed, and whether every device did its work.
    """
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    accuracies = accuracies_of(asked.options, request)
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        folder = Path(temporary)
        program: _EvaltoolsBenchmark | NativeBenchmark
        if flags.program == "evaltools":
            program = _EvaltoolsBenchmark(asked, request, flags, folder, console)
        else:
            program = NativeBenchmark(asked.options, request, flags, folder, console)
        with DevicesUsed(flags, console) as devices:
            places = {HOST: _benchmark_on_host(asked, request, folder, console)} if flags.include_host else {}
            done, device_run = run_on_each(program.run, flags.program, devices, console)
        places |= done
        is_one_place = not flags.include_host and len(devices.serials) == 1
    rows = {name: with_accuracies(place.rows, accuracies) for name, place in places.items()}
    result = BenchmarkResult(
        schema_version=BENCHMARK_SCHEMA_VERSION,
        environment=describe_environment(
            list(asked.command), started_at, round(time.perf_counter() - clock, 3), asked.options.path("trace")
        ),
        options=options_in_force(asked.options, request),
        models=[describe_model(model) for model in request.models],
        rows=[
            row if is_one_place else replace(row, name=f"{row.name}@{place}")
            for place, own in rows.items()
            for row in own
        ],
        warnings=list(dict.fromkeys(warning for place in places.values() for warning in place.warnings)),
        device_run=device_run,
    )
    return result, {name: place.printed for name, place in places.items()}, len(done) == len(devices.serials)


class _EvaltoolsBenchmark:
    """A benchmark by evaltools itself; the results of devices are put into ``folder``."""

    def __init__(
        self, asked: Request, request: BenchmarkRequest, flags: DeviceFlags, folder: Path, console: Console
    ) -> None:
        sent = device_request(asked, flags.root, flags.libraries)
        self._work = Work(
            request=to_bytes(without_host_options(sent.request).stating(output_file_path=_RESULT)),
            files=sent.files,
            folders=sent.whole_folders,
            results=(_RESULT,),
        )
        self._names = sent.host_names()
        self._request = request
        self._folder = folder
        self._console = console

    def run(self, device: Device) -> tuple[DeviceWork, BenchmarkPlace]:
        """One device; raises :class:`CommandFailed` where it gives no result."""

        def on_line(line: bytes) -> None:
            """Show which measurement the device is doing."""
            if _STEP in line:
                self._console.print(f"{device.serial}: {line.decode('utf-8', 'replace')}", style="dim")

        into = Path(tempfile.mkdtemp(dir=self._folder))
        python = python_on(device, COMMAND)
        done = device.do(self._work, python, into, StderrLines(on_line))
        require_answer(done, _WITH_A_RESULT, _RESULT, "result")
        return done.work, _place(into, self._request, self._names, done.out)


def _place(folder: Path, request: BenchmarkRequest, names: HostNames, printed: str) -> BenchmarkPlace:
    """The result that evaltools wrote into ``folder``, with the names that files have on the host."""
    result = read_benchmark(folder / _RESULT)
    rows = [
        with_host_names(row, candidate.configuration.to_flags(), names)
        for row, candidate in zip(result.rows, request.candidates, strict=True)
    ]
    return BenchmarkPlace(rows, names.text(printed), result.warnings)


def _benchmark_on_host(asked: Request, request: BenchmarkRequest, folder: Path, console: Console) -> BenchmarkPlace:
    """The benchmark on the host, which writes its result into ``folder``."""
    console.print("on this computer first ...", style="dim")
    done = carry_out_on_host(without_host_options(asked).stating(output_file_path=folder / _RESULT), _WITH_A_RESULT)
    return _place(folder, request, HostNames({}), done.out)


def with_host_names(row: BenchmarkRow, flags: Sequence[str], names: HostNames) -> BenchmarkRow:
    """A row from a device, with the names that files have on the host.

    ``flags`` are the configuration's on the host.
    """
    return replace(row, flags=list(flags), delegates=names.delegates(row.delegates), reason=names.reason(row.reason))
