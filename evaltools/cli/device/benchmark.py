"""``evaltools device run benchmark``: the same benchmark on every device, whatever runs there, and one result."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from rich.console import Console

from evaltools import exit_codes
from evaltools.cli.benchmark.command import KIND
from evaltools.cli.benchmark.files import written_whole
from evaltools.cli.benchmark.request import BenchmarkRequest, read_request
from evaltools.cli.benchmark.run import accuracies_of, exit_code_of, options_in_force, with_accuracies
from evaltools.cli.device.native_benchmark import BenchmarkDone, BenchmarkPlace, NativeBenchmark
from evaltools.cli.evaluate.output import interrupts_restored
from evaltools.cli.shared.streams import say
from evaltools.cli.shared.terminal import make_console
from evaltools.device.adb.errors import CommandFailed, ProgramMissing
from evaltools.device.programs.part import PartWork
from evaltools.device.programs.pool import Job
from evaltools.device.run.devices import DevicesUsed
from evaltools.device.run.flags import DeviceFlags
from evaltools.device.run.host import run_here
from evaltools.device.run.jobs import SPLIT_EACH, last_lines
from evaltools.device.run.native_evaluation import require_binary
from evaltools.device.run.request import device_request, without_host_options
from evaltools.device.run.runner import AlikeCheck, DeviceProgram, run_on_devices
from evaltools.engine.describe import describe_model
from evaltools.errors import OutputError, UsageError
from evaltools.report.files.benchmark_trace import trace_json
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.files.plots.benchmark import plot_benchmark
from evaltools.report.files.plots.drawing import require_plot
from evaltools.report.tables.benchmark import print_benchmark
from evaltools.report.tables.device_run import print_device_run
from evaltools.request import Request
from evaltools.result.benchmark import BENCHMARK_SCHEMA_VERSION, BenchmarkResult, BenchmarkRow
from evaltools.result.device_run import HOST
from evaltools.result.environment import describe_environment
from evaltools.result.json_file import encode_json, read_json
from evaltools.runs.stored import to_bytes
from evaltools.tasks.native.command import refuse_options
from evaltools.tasks.shared.names_here import NamesHere

_RESULT: Final = "result.json"
_STEP: Final = " of up to "
_KIND: Final = "benchmark result"
_WITH_A_RESULT: Final = (exit_codes.NOT_MEASURED, exit_codes.EXAMPLES_FAILED, exit_codes.OK)
"""The gravest first."""


def benchmark_on_devices(asked: Request, own: DeviceFlags) -> int:
    """Benchmark on every device, print, write; returns the exit code."""
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    console, flags = make_console(), asked.options
    _require_sense(asked, own)
    binary = require_binary(own, asked.task) if own.program == "native" else None
    request = read_request(asked, libraries_here=False)
    accuracies = accuracies_of(flags, request)
    files = planned_files(asked)
    with interrupts_restored(), tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        folder = Path(temporary)
        program: DeviceProgram[BenchmarkDone, None]
        if own.program == "evaltools":
            program = EvaltoolsBenchmark(asked, request, own.root, folder, console)
        else:
            program = NativeBenchmark(flags, request, own, binary, folder, console)
        with DevicesUsed(own, console) as devices:
            here = {HOST: _benchmark_here(asked, request, folder, console)} if own.include_host else {}
            found = run_on_devices(program, own.program, SPLIT_EACH, 1, devices, console)
        places = here | {job.serial: done.place for job, done in found.done.items()}
        rows = {name: with_accuracies(place.rows, accuracies) for name, place in places.items()}
        warnings = [warning for place in places.values() for warning in place.warnings]
        result = BenchmarkResult(
            schema_version=BENCHMARK_SCHEMA_VERSION,
            environment=describe_environment(list(asked.command), started_at, round(time.perf_counter() - clock, 3)),
            options=options_in_force(flags, request),
            models=[describe_model(model) for model in request.models],
            rows=joined_rows(rows, own.include_host or len(devices.serials) > 1),
            warnings=list(dict.fromkeys(warnings)),
            device_run=found.device_run,
        )
        if not show_benchmark(result, {name: place.printed for name, place in places.items()}, files, console):
            return exit_codes.NOT_WRITTEN
    if not found.are_all:
        return exit_codes.NOT_MEASURED
    codes = [place.code for place in places.values() if place.code is not None]
    return gravest(codes) if codes else exit_code_of(result, request)


def _require_sense(asked: Request, own: DeviceFlags) -> None:
    """Raise :class:`UsageError` for flags that have no effect together."""
    if own.program != "evaltools":
        refuse_options(asked.options, own.program)
    if own.parts:
        raise UsageError("--parts has no effect on a benchmark, which every device does as a whole; leave it out")
    if own.program == "app" and own.taskset:
        raise UsageError("--taskset has no effect on a benchmark by --device_program=app; leave it out")


class EvaltoolsBenchmark(DeviceProgram[BenchmarkDone, None]):
    """A benchmark by evaltools itself; what comes of it is put into ``folder``."""

    def __init__(self, asked: Request, request: BenchmarkRequest, root: str, folder: Path, console: Console) -> None:
        there = device_request(asked, root)
        self._work = PartWork(
            index=0,
            count=1,
            examples=0,
            request=to_bytes(without_host_options(there.request).stating(output_file_path=_RESULT)),
            files=there.files,
            folders=there.folders,
            results=(_RESULT,),
        )
        self._names = NamesHere({there: str(here) for here, there in there.files.items()})
        self._request = request
        self._folder = folder
        self._console = console

    def run(self, devices: DevicesUsed, serial: str, _job: Job, _alike: AlikeCheck[None]) -> BenchmarkDone:
        """One device; raises :class:`CommandFailed` where it gives no result."""
        into = Path(tempfile.mkdtemp(dir=self._folder))
        python = devices.python(serial, KIND)
        done = devices.device(serial).do(self._work, python, into, _Steps(serial, self._console))
        if done.code == exit_codes.USAGE:
            raise ProgramMissing(f"{serial}: evaltools refused the command there: {last_lines(done.err)}", serial)
        if done.code not in _WITH_A_RESULT or not (into / _RESULT).is_file():
            raise CommandFailed(
                f"{serial}: evaltools ended there with exit code {done.code} and no result; it printed last: "
                f"{last_lines(done.err)}",
                serial,
            )
        return BenchmarkDone(done.part, _place(into, self._request, self._names, done.out, done.code))


def _place(folder: Path, request: BenchmarkRequest, names: NamesHere, printed: str, code: int) -> BenchmarkPlace:
    """What evaltools gave, with the names that files have here."""
    result = read_json(folder / _RESULT, BenchmarkResult, _KIND)
    rows = [
        named_here(row, candidate.configuration.to_flags(), names)
        for row, candidate in zip(result.rows, request.candidates, strict=True)
    ]
    return BenchmarkPlace(rows, names.text(printed), result.warnings, code)


def _benchmark_here(asked: Request, request: BenchmarkRequest, folder: Path, console: Console) -> BenchmarkPlace:
    """The same on this computer; its file is in ``folder``."""
    console.print("on this computer first ...", style="dim")
    done = run_here(without_host_options(asked).stating(output_file_path=folder / _RESULT), _WITH_A_RESULT)
    return _place(folder, request, NamesHere({}), done.out, done.code)


def gravest(codes: Sequence[int]) -> int:
    """Of exit codes with a result: a configuration that was not measured is graver than runs that failed.

    >>> gravest([0, 4, 3]), gravest([0, 4])
    (3, 4)
    """
    return min(codes, key=_WITH_A_RESULT.index)


def planned_files(asked: Request) -> dict[str, Path]:
    """The files to write, by flag, checked before anything is measured; raises :class:`UsageError`."""
    flags = asked.options
    files = {name: path for name in written_whole() if (path := flags.path(name)) is not None}
    read = asked.files_read
    for name, path in files.items():
        require_output_file(path, f"--{name}", read)
    if "plot" in files:
        require_plot(files["plot"])
    return files


def named_here(row: BenchmarkRow, flags: Sequence[str], names: NamesHere) -> BenchmarkRow:
    """A row of a configuration with these ``flags``, and with the names that files have here."""
    return replace(
        row,
        flags=list(flags),
        delegates=names.delegates(row.delegates),
        reason=names.reason(row.reason),
    )


def joined_rows(rows: Mapping[str, Sequence[BenchmarkRow]], several: bool) -> list[BenchmarkRow]:
    """The rows of all places; where there were to be several, with the place behind their names."""
    return [
        replace(row, name=f"{row.name}@{place}" if several else row.name) for place, own in rows.items() for row in own
    ]


def show_benchmark(
    result: BenchmarkResult, printed: Mapping[str, str], files: Mapping[str, Path], console: Console
) -> bool:
    """Print what each device printed and the tables, write the files; whether all could be written."""
    is_written = True
    for serial, text in printed.items():
        heading = f"INFO: Device: {serial}\n" if len(printed) > 1 else ""
        is_written = say(heading + text.rstrip("\n")) and is_written
    makers: dict[str, Callable[[], bytes]] = {
        "output_file_path": lambda: encode_json(result),
        "trace": lambda: trace_json(result),
        "plot": lambda: plot_benchmark(result, files["plot"]),
    }
    for name, path in files.items():
        try:
            write_file(path, makers[name]())
        except OutputError as error:
            console.print(f"evaltools: {error}", style="bold red")
            is_written = False
    print_benchmark(result, console)
    if result.device_run is not None:
        print_device_run(result.device_run, console)
    return is_written


class _Steps:
    """Shows which measurement a device is at."""

    def __init__(self, serial: str, console: Console) -> None:
        self._serial = serial
        self._console = console
        self._rest = b""

    def __call__(self, _out: bytes, err: bytes) -> None:
        *lines, self._rest = (self._rest + err).split(b"\n")
        for line in lines:
            if _STEP.encode() in line:
                self._console.print(f"{self._serial}: {line.decode('utf-8', 'replace')}", style="dim")
