"""``evaltools device run benchmark`` with evaltools itself: the same benchmark on every device, one result."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from evaltools.cli import exit_codes
from evaltools.cli.benchmark_request import read_request
from evaltools.cli.benchmark_run import accuracies_of, with_accuracies
from evaltools.cli.device_jobs import EACH, complete_jobs, device_run_of, jobs_of, last_lines, tell_lost
from evaltools.cli.device_run_flags import DeviceCommand
from evaltools.cli.device_words import device_words, host_words
from evaltools.cli.devices_used import DevicesUsed
from evaltools.cli.evaluation_output import interrupts_restored, require_output_file
from evaltools.cli.flags import GivenFlags
from evaltools.cli.host_run import run_here
from evaltools.cli.output_file import write_file
from evaltools.cli.streams import say
from evaltools.cli.terminal import make_console
from evaltools.device.errors import CommandFailed, ProgramMissing
from evaltools.device.part import PartDone, PartWork
from evaltools.device.pool import Job
from evaltools.errors import OutputError, UsageError
from evaltools.report.benchmark_plot import plot_bytes, require_plot
from evaltools.report.benchmark_result import AccuracyGiven, BenchmarkResult, BenchmarkRow
from evaltools.report.benchmark_trace import trace_json
from evaltools.report.device_run import HOST, DeviceRun
from evaltools.report.environment import describe_environment
from evaltools.report.json_file import encode_json, read_json
from evaltools.report.table_benchmark import print_benchmark
from evaltools.report.table_device_run import print_device_run

_RESULT: Final = "result.json"
_OF_ROWS: Final = ("output_filepath", "result_file_path", "op_profiling_output_file", "profiling_output_csv_file")
_OF_ALL: Final = ("output_file_path", "trace", "plot")
_STEP: Final = " of up to "
_KIND: Final = "benchmark result"
_WITH_A_RESULT: Final = (exit_codes.OK, exit_codes.NOT_MEASURED, exit_codes.EXAMPLES_FAILED)


def run_on_devices(asked: DeviceCommand) -> int:
    """Benchmark on every device, print, write; returns the exit code."""
    flags, own = asked.flags, asked.own
    console = make_console()
    if own.parts:
        raise UsageError("--parts has no effect on a benchmark, which every device does as a whole; leave it out")
    request = read_request(flags, libraries_here=False)
    accuracies = accuracies_of(flags, request)
    files = planned_files(flags)
    words = device_words(flags.given, own.root)
    work = PartWork(
        index=0,
        count=1,
        examples=0,
        words=(asked.task, *words.words, f"--output_file_path={_RESULT}"),
        files=words.files,
        results=(_RESULT,),
    )
    with interrupts_restored(), tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        with DevicesUsed(own, console) as devices:
            here = _benchmark_here(asked, Path(folder), console) if own.include_host else None
            jobs = jobs_of(EACH, devices.serials, 1)

            def do(serial: str, _job: Job) -> PartDone:
                return _benchmark(work, Path(folder), devices, console, serial)

            outcome = devices.run(jobs, do, tell_lost(console, 1))
        complete = complete_jobs(jobs, outcome.done, outcome)
        results = {} if here is None else {HOST: read_json(Path(folder) / _RESULT, BenchmarkResult, _KIND)}
        results |= {
            job.serial: read_json(outcome.done[job].folder / _RESULT, BenchmarkResult, _KIND) for job in complete
        }
        printed = {} if here is None else {HOST: here}
        printed |= {job.serial: outcome.done[job].out for job in complete}
        parts = [outcome.with_losses(job, outcome.done[job].part) for job in complete]
        device_run = device_run_of("evaltools", EACH, devices.facts, parts, outcome.left_out)
        several = own.include_host or len(jobs) > 1
        result = joined(results, device_run, accuracies, asked.typed, several)
        if not show_benchmark(result, printed, files, console):
            return exit_codes.NOT_WRITTEN
        codes = {outcome.done[job].code for job in complete}
        return exit_codes.NOT_MEASURED if outcome.left_out else max(codes)


def planned_files(flags: GivenFlags) -> dict[str, Path]:
    """The files to write, by flag, checked before anything is measured; raises :class:`UsageError`."""
    for name in _OF_ROWS:
        if name in flags:
            raise UsageError(f"--{name} is not written for devices; --output_file_path=FILE.json has everything")
    files = {name: path for name in _OF_ALL if (path := flags.path(name)) is not None}
    read = [Path(text) for name in ("graph", "accuracy", "configs") for text in flags.texts(name)]
    for name, path in files.items():
        require_output_file(path, f"--{name}", read)
    if "plot" in files:
        require_plot(files["plot"])
    return files


def joined(
    results: Mapping[str, BenchmarkResult],
    device_run: DeviceRun,
    accuracies: Sequence[AccuracyGiven | None],
    command: Sequence[str],
    several: bool,
) -> BenchmarkResult:
    """The results of all places as one: their rows one after the other, with the place behind their names."""
    first = next(iter(results.values()))
    rows = {place: with_accuracies(each.rows, accuracies) for place, each in results.items()}
    return replace(
        first,
        environment=describe_environment(list(command), first.environment.started_at, first.environment.elapsed_s),
        rows=joined_rows(rows, several),
        warnings=list(dict.fromkeys(warning for result in results.values() for warning in result.warnings)),
        device_run=device_run,
    )


def joined_rows(rows: Mapping[str, Sequence[BenchmarkRow]], several: bool) -> list[BenchmarkRow]:
    """The rows of all places; where there were to be several, with the place behind their names."""
    return [
        replace(row, name=f"{row.name}@{place}" if several else row.name) for place, own in rows.items() for row in own
    ]


def _benchmark_here(asked: DeviceCommand, folder: Path, console: Console) -> str:
    """The same on this computer: what it printed; the result is in ``folder``."""
    console.print("on this computer first ...", style="dim")
    words = [*host_words(asked.flags.given), f"--output_file_path={folder / _RESULT}"]
    return run_here([asked.task, *words], (exit_codes.OK, exit_codes.NOT_MEASURED, exit_codes.EXAMPLES_FAILED))


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
    done = devices.device(serial).do(work, devices.python(serial, "benchmark"), into, _Steps(serial, console))
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
