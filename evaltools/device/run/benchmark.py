"""A benchmark on devices: whatever runs there, and this computer beside them, make one result."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from rich.console import Console

from evaltools import exit_codes
from evaltools.benchmark.accuracy import accuracies_of, with_accuracies
from evaltools.benchmark.kind import KIND
from evaltools.benchmark.measure import options_in_force
from evaltools.benchmark.request import BenchmarkRequest, read_request
from evaltools.device.adb.errors import CommandFailed, ProgramMissing
from evaltools.device.programs.part import PartWork
from evaltools.device.programs.pool import Job
from evaltools.device.run.devices import DevicesUsed
from evaltools.device.run.flags import DeviceFlags
from evaltools.device.run.host import run_here
from evaltools.device.run.jobs import SPLIT_EACH, last_lines
from evaltools.device.run.native_benchmark import BenchmarkDone, BenchmarkPlace, NativeBenchmark
from evaltools.device.run.native_evaluation import require_binary
from evaltools.device.run.request import device_request, without_host_options
from evaltools.device.run.runner import AlikeCheck, DeviceProgram, run_on_devices
from evaltools.engine.describe import describe_model
from evaltools.errors import UsageError
from evaltools.request import Request
from evaltools.result.benchmark import BENCHMARK_SCHEMA_VERSION, AccuracyGiven, BenchmarkResult, BenchmarkRow
from evaltools.result.device_run import HOST
from evaltools.result.environment import describe_environment
from evaltools.result.json_file import read_json
from evaltools.runs.stored import to_bytes
from evaltools.tasks.native.command import refuse_options
from evaltools.tasks.shared.names_here import NamesHere

_RESULT: Final = "result.json"
_STEP: Final = " of up to "
_KIND: Final = "benchmark result"
_WITH_A_RESULT: Final = (exit_codes.NOT_MEASURED, exit_codes.EXAMPLES_FAILED, exit_codes.OK)
"""The gravest first."""


@dataclass(frozen=True)
class DeviceBenchmark:
    """What is to be measured on devices, checked; make it with :func:`read_device_benchmark`."""

    asked: Request
    own: DeviceFlags
    request: BenchmarkRequest
    accuracies: Sequence[AccuracyGiven | None]
    binary: Path | None


@dataclass(frozen=True)
class MeasuredOnDevices:
    """The result, and what the program of each place printed.

    ``code`` is the gravest exit code of places that have one. ``are_all``: every device did its part.
    """

    result: BenchmarkResult
    printed: Mapping[str, str]
    code: int | None
    are_all: bool


def read_device_benchmark(asked: Request, own: DeviceFlags) -> DeviceBenchmark:
    """Check everything that can be checked here; raises :class:`UsageError` and its kinds."""
    _require_sense(asked, own)
    binary = require_binary(own, asked.task) if own.program == "native" else None
    request = read_request(asked, libraries_here=False)
    return DeviceBenchmark(asked, own, request, accuracies_of(asked.options, request), binary)


def _require_sense(asked: Request, own: DeviceFlags) -> None:
    """Raise :class:`UsageError` for flags that have no effect together."""
    if own.program != "evaltools":
        refuse_options(asked.options, own.program)
    if own.parts:
        raise UsageError("--parts has no effect on a benchmark, which every device does as a whole; leave it out")
    if own.program == "app" and own.taskset:
        raise UsageError("--taskset has no effect on a benchmark by --device_program=app; leave it out")


def measure_on_devices(wanted: DeviceBenchmark, console: Console) -> MeasuredOnDevices:
    """Measure on every device, and here where that was asked for."""
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    asked, own, request = wanted.asked, wanted.own, wanted.request
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        folder = Path(temporary)
        program: DeviceProgram[BenchmarkDone, None]
        if own.program == "evaltools":
            program = EvaltoolsBenchmark(asked, request, own.root, folder, console)
        else:
            program = NativeBenchmark(asked.options, request, own, wanted.binary, folder, console)
        with DevicesUsed(own, console) as devices:
            here = {HOST: _benchmark_here(asked, request, folder, console)} if own.include_host else {}
            found = run_on_devices(program, own.program, SPLIT_EACH, 1, devices, console)
    places = here | {job.serial: done.place for job, done in found.done.items()}
    rows = {name: with_accuracies(place.rows, wanted.accuracies) for name, place in places.items()}
    warnings = [warning for place in places.values() for warning in place.warnings]
    result = BenchmarkResult(
        schema_version=BENCHMARK_SCHEMA_VERSION,
        environment=describe_environment(list(asked.command), started_at, round(time.perf_counter() - clock, 3)),
        options=options_in_force(asked.options, request),
        models=[describe_model(model) for model in request.models],
        rows=joined_rows(rows, own.include_host or len(devices.serials) > 1),
        warnings=list(dict.fromkeys(warnings)),
        device_run=found.device_run,
    )
    codes = [place.code for place in places.values() if place.code is not None]
    printed = {name: place.printed for name, place in places.items()}
    return MeasuredOnDevices(result, printed, gravest(codes) if codes else None, found.are_all)


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
        self._names = there.names_here()
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
    return _place(folder, request, NamesHere(), done.out, done.code)


def gravest(codes: Sequence[int]) -> int:
    """Of exit codes with a result: a configuration that was not measured is graver than runs that failed.

    >>> gravest([0, 4, 3]), gravest([0, 4])
    (3, 4)
    """
    return min(codes, key=_WITH_A_RESULT.index)


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
