"""``evaltools device run benchmark`` with TensorFlow's binary or app: their logs made a result of ours."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from rich.console import Console

from evaltools import exit_codes
from evaltools.benchmark.options import Candidate
from evaltools.cli.benchmark import flags as benchmark_flags
from evaltools.cli.benchmark.request import BenchmarkRequest, read_request
from evaltools.cli.benchmark.run import accuracies_of, exit_code_of, options_in_force, with_accuracies
from evaltools.cli.device.benchmark import joined_rows, planned_files, show_benchmark
from evaltools.cli.device.devices_used import DevicesUsed
from evaltools.cli.device.jobs import EACH, complete_jobs, device_run_of, jobs_of, last_lines, tell_lost
from evaltools.cli.device.native_evaluation import require_binary
from evaltools.cli.device.request import SentFiles
from evaltools.cli.device.run_flags import DeviceFlags
from evaltools.cli.evaluate.output import interrupts_restored
from evaltools.cli.shared.terminal import make_console
from evaltools.device.files.store import remote_path, sha256_of
from evaltools.device.programs.app import AppRun, BenchmarkApp, install_app, run_app
from evaltools.device.programs.native_program import Kills, NativeProgram, StepDone, interleaved, read_steps, results_of
from evaltools.device.programs.part import PartDone, PartWork
from evaltools.device.programs.part import SentFiles as PartFiles
from evaltools.device.programs.pool import Job
from evaltools.engine.describe import describe_model
from evaltools.errors import UsageError
from evaltools.native.logs.benchmark_rows import row_of_log, with_logged_ratios
from evaltools.native.logs.delegates import delegate_lines
from evaltools.native.logs.log_lines import plain_lines
from evaltools.report.tables.cells import one_line
from evaltools.request import Options, Request
from evaltools.result.benchmark import BENCHMARK_SCHEMA_VERSION, BenchmarkResult, BenchmarkRow
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DevicePart
from evaltools.result.environment import describe_environment
from evaltools.result.evaluation import RuntimeUsed
from evaltools.tasks.native.command import configuration_flags, refuse_options
from evaltools.tasks.native.outcome import NativeBinary, signal_of, why_not_started


@dataclass(frozen=True)
class _Start:
    """What one start of the program gave.

    ``printed`` is what the program said, ``text`` that with what Android's log has beside it; both are the log where
    the program is an app. ``failure`` says why it did not come to its end, where that is known.
    """

    printed: str
    text: str
    failure: str


@dataclass(frozen=True)
class _Done:
    """What all starts on a device gave."""

    starts: tuple[_Start, ...]
    part: DevicePart


@dataclass(frozen=True)
class _Plan:
    """What is run on every device: ``arguments`` of each candidate, started ``rounds`` times."""

    request: BenchmarkRequest
    candidates: tuple[Candidate, ...]
    arguments: tuple[tuple[str, ...], ...]
    sent: SentFiles
    rounds: int

    @property
    def order(self) -> list[int]:
        """Which candidate each start runs: forth and back in turns."""
        return [which for number in range(self.rounds) for which in interleaved(len(self.candidates), number)]

    @property
    def steps(self) -> tuple[tuple[str, ...], ...]:
        """The arguments of each start."""
        return tuple(self.arguments[which] for which in self.order)

    def work(self, more: Sequence[Path] = (), results: tuple[str, ...] = ()) -> PartWork:
        """The files that all starts need."""
        files = self.sent.files | {path: remote_path(self.sent.root, path) for path in more}
        return PartWork(index=0, count=1, examples=0, files=files, results=results)


def run_on_devices(asked: Request, own: DeviceFlags) -> int:
    """Benchmark on every device, print, write; returns the exit code."""
    started, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    console = make_console()
    flags = asked.options
    refuse_options(flags, own.program)
    is_app = own.program == "app"
    for name, stated in (("parts", own.parts), ("taskset", own.taskset if is_app else "")):
        if stated:
            raise UsageError(f"--{name} has no effect on a benchmark by --device_program={own.program}; leave it out")
    binary = None if is_app else require_binary(own, asked.task)
    request = read_request(asked, libraries_here=False)
    accuracies = accuracies_of(flags, request)
    files = planned_files(asked)
    plan = _plan(flags, request, own.root)
    with interrupts_restored(), tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        with DevicesUsed(own, console) as devices:
            jobs, kills = jobs_of(EACH, devices.serials, 1), Kills()

            def do(serial: str, job: Job) -> _Done:
                if binary is None:
                    found = _run_app(plan, own, devices, serial, console)
                else:
                    done = _run_native(plan, binary, Path(temporary), devices, serial)
                    steps = read_steps(done, len(plan.steps))
                    kills.require_none(serial, job, steps)
                    facts = devices.facts_of(serial)
                    found = _Done(tuple(_start_of(step, facts) for step in steps), done.part)
                lines = tuple(dict.fromkeys(line for start in found.starts for line in delegate_lines(start.text)))
                return replace(found, part=replace(found.part, delegate_lines=lines))

            outcome = devices.run(devices.pool(jobs, do, tell_lost(console, 1)))
        complete = complete_jobs(jobs, outcome.done, outcome)
        runtime = _runtime(binary, own.app_package)
        rows = {
            job.serial: with_accuracies(with_logged_ratios(_rows(plan, outcome.done[job].starts, runtime)), accuracies)
            for job in complete
        }
        parts = [outcome.with_losses(job, outcome.done[job].part) for job in complete]
        result = BenchmarkResult(
            schema_version=BENCHMARK_SCHEMA_VERSION,
            environment=describe_environment(list(asked.command), started, round(time.perf_counter() - clock, 3)),
            options=options_in_force(flags, request),
            models=[describe_model(model) for model in request.models],
            rows=joined_rows(rows, len(jobs) > 1),
            warnings=list(request.warnings),
            device_run=device_run_of("app" if is_app else "native", EACH, devices.facts, parts, outcome.left_out),
        )
        printed = {job.serial: "\n".join(start.printed for start in outcome.done[job].starts) for job in complete}
        if not show_benchmark(result, printed, files, console):
            return exit_codes.NOT_WRITTEN
        return exit_codes.NOT_MEASURED if len(complete) < len(jobs) else exit_code_of(result, request)


def _plan(options: Options, request: BenchmarkRequest, root: str) -> _Plan:
    sent = SentFiles(root)
    stated = _native_words(options, sent)
    arguments = []
    for candidate in request.candidates:
        configuration = candidate.configuration
        here = {str(path): sent.take_file(path) for path in configuration.files if path.is_file()}
        threads, *delegates = configuration_flags(configuration, here)
        threads = threads.replace("--num_interpreter_threads", "--num_threads")
        graph = f"--graph={sent.take_file(candidate.model.path)}"
        arguments.append((graph, threads, *stated, *delegates))
    return _Plan(request, tuple(request.candidates), tuple(arguments), sent, request.options.rounds)


def _native_words(options: Options, sent: SentFiles) -> list[str]:
    """The flags of the benchmark that the native tool has, with the paths that files have on devices."""
    native = [each for each in benchmark_flags.PARAMETERS if each.log and each.is_sent and not each.repeatable]
    return [
        each.format(each.rewrite(options.stated[each.name], partial(sent.take, each)))  # type: ignore[arg-type]
        for each in native
        if each.name in options
    ]


def _run_native(plan: _Plan, binary: Path, temporary: Path, devices: DevicesUsed, serial: str) -> PartDone:
    work = plan.work([binary], results_of(len(plan.steps)))
    program = NativeProgram(work.files[binary], plan.steps)
    folder = Path(tempfile.mkdtemp(dir=temporary))
    return devices.device(serial).do(work, program, folder, lambda _out, _err: None)


def _start_of(step: StepDone, facts: DeviceFacts) -> _Start:
    not_started = why_not_started(step.code, last_lines(step.err), facts)
    signal = signal_of(step.code)
    died = f"the native tool failed with the signal {signal}" if signal else ""
    said = f"{step.out}\n{step.err}"
    # Older releases print everything to stderr.
    printed = step.out if step.out.strip() or not_started else step.err
    return _Start(printed, f"{said}\n{beside(said, step.logcat)}", not_started or died)


def beside(printed: str, logcat: str) -> str:
    r"""The lines of Android's log that a program has not printed as well, as native tools do with nearly all of theirs.

    >>> beside("INFO: count=50 curr=3\n", "I/tflite  ( 12): count=50 curr=3\nE/cl  ( 12): no such kernel")
    'E/cl  ( 12): no such kernel'
    """
    known = {line.text for line in plain_lines(printed)}
    return "\n".join(line for line in logcat.splitlines() if not {each.text for each in plain_lines(line)} <= known)


def _run_app(plan: _Plan, own: DeviceFlags, devices: DevicesUsed, serial: str, console: Console) -> _Done:
    device = devices.device(serial)
    app = BenchmarkApp(own.app_package, own.app_activity)
    if own.app_apk is not None:
        install_app(device.store, own.app_apk)

    def start(arguments: Sequence[str]) -> AppRun:
        return run_app(
            device.store.adb,
            serial,
            arguments,
            own.part_timeout_s,
            app,
            own.app_traces,
            patience_s=own.patience_s,
            stop=devices.stop,
        )

    def act(_sent: PartFiles) -> list[AppRun]:
        """One that was killed is started once more; killed again, it is the configuration's own doing."""
        device.store.let_all_read(plan.sent.files.values())
        runs = []
        for arguments in plan.steps:
            run = start(arguments)
            if run.was_killed:
                console.print(f"{serial}: the app was killed, and is started once more: {one_line(run.failure)}")
                run = start(arguments)
            runs.append(run)
        return runs

    runs, part = device.measured(plan.work(), act)
    for left in dict.fromkeys(run.left for run in runs if run.left):
        console.print(f"evaltools: {one_line(left)}")
    return _Done(tuple(_Start(run.log, run.log, run.failure) for run in runs), part)


def _rows(plan: _Plan, starts: Sequence[_Start], runtime: RuntimeUsed) -> list[BenchmarkRow]:
    rows = []
    for number, candidate in enumerate(plan.candidates):
        own = [start for which, start in zip(plan.order, starts, strict=True) if which == number]
        configuration = candidate.configuration
        settings = configuration.delegates
        rows.append(
            row_of_log(
                candidate.model_number,
                configuration.name,
                configuration.to_flags(),
                configuration.num_threads,
                [start.text for start in own],
                {delegate.name: settings.effective_options(delegate) for delegate in settings.requested},
                candidate.model.node_count,
                plan.request.options.allow_fallback,
                replace(runtime, kernels=configuration.kernel_set),
                [start.failure for start in own],
            )
        )
    return rows


def _runtime(binary: Path | None, package: str) -> RuntimeUsed:
    if binary is None:
        return RuntimeUsed("app", package, "", "default")
    return NativeBinary(binary.name, sha256_of(binary)).as_runtime("default")
