"""``evaltools device run benchmark`` with evaltools itself: the same benchmark on every device, one result."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from rich.console import Console

from evaltools import exit_codes
from evaltools.cli.benchmark.command import KIND
from evaltools.cli.benchmark.files import written_whole
from evaltools.cli.benchmark.request import read_request
from evaltools.cli.benchmark.run import accuracies_of, options_in_force, with_accuracies
from evaltools.cli.device.devices_used import DevicesUsed
from evaltools.cli.device.host_run import run_here
from evaltools.cli.device.jobs import EACH, complete_jobs, device_run_of, jobs_of, last_lines, tell_lost
from evaltools.cli.device.request import device_request, told
from evaltools.cli.device.run_flags import DeviceFlags
from evaltools.cli.evaluate.output import interrupts_restored
from evaltools.cli.runs.handed_over import to_bytes
from evaltools.cli.shared.streams import say
from evaltools.cli.shared.terminal import make_console
from evaltools.device.adb.errors import CommandFailed, ProgramMissing
from evaltools.device.programs.part import PartDone, PartWork
from evaltools.device.programs.pool import Job
from evaltools.engine.describe import describe_model
from evaltools.errors import OutputError, UsageError
from evaltools.report.files.benchmark.plot import plot_bytes, require_plot
from evaltools.report.files.benchmark.trace import trace_json
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.tables.benchmark import print_benchmark
from evaltools.report.tables.device_run import print_device_run
from evaltools.request import Request
from evaltools.result.benchmark import BENCHMARK_SCHEMA_VERSION, BenchmarkResult, BenchmarkRow
from evaltools.result.device_run import HOST
from evaltools.result.environment import describe_environment
from evaltools.result.json_file import encode_json, read_json
from evaltools.tasks.shared.names_here import NamesHere

_RESULT: Final = "result.json"
_STEP: Final = " of up to "
_KIND: Final = "benchmark result"
_WITH_A_RESULT: Final = (exit_codes.NOT_MEASURED, exit_codes.EXAMPLES_FAILED, exit_codes.OK)
"""The gravest first."""


@dataclass(frozen=True)
class _Place:
    """What a device gave, or this computer: its result, what it printed to stdout, and its exit code."""

    result: BenchmarkResult
    printed: str
    code: int


def run_on_devices(asked: Request, own: DeviceFlags) -> int:
    """Benchmark on every device, print, write; returns the exit code."""
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    flags = asked.options
    console = make_console()
    if own.parts:
        raise UsageError("--parts has no effect on a benchmark, which every device does as a whole; leave it out")
    request = read_request(asked, libraries_here=False)
    accuracies = accuracies_of(flags, request)
    files = planned_files(asked)
    there = device_request(asked, own.root)
    work = PartWork(
        index=0,
        count=1,
        examples=0,
        request=to_bytes(told(there.request).stating(output_file_path=_RESULT)),
        files=there.files,
        folders=there.folders,
        results=(_RESULT,),
    )
    with interrupts_restored(), tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        with DevicesUsed(own, console) as devices:
            places = {HOST: _benchmark_here(asked, Path(folder), console)} if own.include_host else {}
            jobs = jobs_of(EACH, devices.serials, 1)

            def do(serial: str, _job: Job) -> PartDone:
                return _benchmark(work, Path(folder), devices, console, serial)

            outcome = devices.run(devices.pool(jobs, do, tell_lost(console, 1)))
        complete = complete_jobs(jobs, outcome.done, outcome)
        names_here = NamesHere({there: str(here) for here, there in there.files.items()})
        for job in complete:
            done = outcome.done[job]
            places[job.serial] = _Place(_read(done.folder), names_here.text(done.out), done.code)
        rows = {
            place: with_accuracies(
                [
                    named_here(row, candidate.configuration.to_flags(), names_here)
                    for row, candidate in zip(entry.result.rows, request.candidates, strict=True)
                ],
                accuracies,
            )
            for place, entry in places.items()
        }
        warnings = [warning for entry in places.values() for warning in entry.result.warnings]
        parts = [outcome.with_losses(job, outcome.done[job].part) for job in complete]
        facts = map(devices.facts_of, devices.serials)
        result = BenchmarkResult(
            schema_version=BENCHMARK_SCHEMA_VERSION,
            environment=describe_environment(list(asked.command), started_at, round(time.perf_counter() - clock, 3)),
            options=options_in_force(flags, request),
            models=[describe_model(model) for model in request.models],
            rows=joined_rows(rows, own.include_host or len(jobs) > 1),
            warnings=list(dict.fromkeys(warnings)),
            device_run=device_run_of("evaltools", EACH, facts, parts, outcome.left_out),
        )
        if not show_benchmark(result, {place: entry.printed for place, entry in places.items()}, files, console):
            return exit_codes.NOT_WRITTEN
    if len(complete) < len(jobs):
        return exit_codes.NOT_MEASURED
    return gravest([entry.code for entry in places.values()])


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


def _read(folder: Path) -> BenchmarkResult:
    return read_json(folder / _RESULT, BenchmarkResult, _KIND)


def _benchmark_here(asked: Request, folder: Path, console: Console) -> _Place:
    """The same on this computer; its file is in ``folder``."""
    console.print("on this computer first ...", style="dim")
    done = run_here(told(asked).stating(output_file_path=folder / _RESULT), _WITH_A_RESULT)
    return _Place(_read(folder), done.out, done.code)


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
        "plot": lambda: plot_bytes(result, files["plot"]),
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


def _benchmark(work: PartWork, folder: Path, devices: DevicesUsed, console: Console, serial: str) -> PartDone:
    """One device; raises :class:`CommandFailed` where it gives no result."""
    into = Path(tempfile.mkdtemp(dir=folder))
    done = devices.device(serial).do(work, devices.python(serial, KIND), into, _Steps(serial, console))
    if done.code == exit_codes.USAGE:
        raise ProgramMissing(f"{serial}: evaltools refused the command there: {last_lines(done.err)}", serial)
    if done.code not in _WITH_A_RESULT or not (into / _RESULT).is_file():
        raise CommandFailed(
            f"{serial}: evaltools ended there with exit code {done.code} and no result; it printed last: "
            f"{last_lines(done.err)}",
            serial,
        )
    return done


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
