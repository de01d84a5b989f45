"""``evaltools device run`` of an evaluation with TensorFlow's own binary: what it says, made a result of ours."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from rich.console import Console

from evaltools.cli.device.devices_used import DevicesUsed
from evaltools.cli.device.jobs import (
    EACH,
    complete_jobs,
    device_run_of,
    jobs_of,
    last_lines,
    parts_of,
    tell_lost,
    wait_for_others,
)
from evaltools.cli.device.run_flags import DeviceFlags
from evaltools.cli.evaluate.output import hand_out, interrupts_restored
from evaltools.cli.shared.terminal import make_console
from evaltools.device.adb.errors import NotAlike
from evaltools.device.files.store import remote_path, sha256_of
from evaltools.device.programs.native_program import (
    Kills,
    NativeProgram,
    StepDone,
    interleaved,
    output_file,
    read_steps,
    results_of,
)
from evaltools.device.programs.part import PartDone, PartWork, PictureFolder
from evaltools.device.programs.pool import Job, Pool, PoolOutcome
from evaltools.errors import UsageError
from evaltools.exit_codes import LIMIT_BROKEN, NOT_MEASURED, NOT_WRITTEN
from evaltools.native.logs.run import NativeRun, proof_lines
from evaltools.report.files.planned import planned_files
from evaltools.report.tables.evaluation import print_configurations
from evaltools.request import Request
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DevicePart
from evaltools.tasks.native.command import NativePaths, native_command, refuse_options
from evaltools.tasks.native.delegation import NativeDelegation, differences
from evaltools.tasks.native.evaluation import assemble_native
from evaltools.tasks.native.inputs import NativeInputs, prepare_native
from evaltools.tasks.native.outcome import NativeBinary, delegations, lacking, why_not_started
from evaltools.tasks.shared.kind import evaluation_kind

_PICTURES: Final = "pictures"


def run_on_devices(request: Request, own: DeviceFlags) -> int:
    """Run the binary for every configuration, read what it said, print, write; returns the exit code."""
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    console = make_console()
    kind = evaluation_kind(request.task)
    binary = require_binary(own, kind.command)
    refuse_options(request.options, own.program)
    inputs = prepare_native(kind.read(request))
    files = planned_files(request, [inputs.request.model_file])
    with interrupts_restored(), tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        with DevicesUsed(own, console) as devices:
            count = _part_count(own, inputs, len(devices.serials))
            plan = _Plan(binary, inputs, count, own.root, Path(temporary))
            jobs = jobs_of(own.split, devices.serials, count)
            outcome = _do(plan, jobs, devices, console)
        complete = complete_jobs(jobs, outcome.done, outcome)
        runs = [run for job in complete for run in outcome.done[job].runs]
        elapsed_s = round(time.perf_counter() - clock, 3)
        result = assemble_native(inputs, runs, NativeBinary(binary.name, sha256_of(binary)), started_at, elapsed_s)
        parts = [outcome.with_losses(job, outcome.done[job].part) for job in complete]
        device_run = device_run_of("native", own.split, devices.facts, parts, outcome.left_out)
        environment = replace(result.environment, command=list(request.command))
        result = replace(result, device_run=device_run, environment=environment)
        print_configurations(result.configurations, console)
        not_written = hand_out(result, files, console)
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    if not_written:
        return NOT_WRITTEN
    if len(complete) < len(jobs):
        return NOT_MEASURED
    return LIMIT_BROKEN if kind.breaks_limits(result) else kind.exit_code(result)


def require_binary(own: DeviceFlags, command: str) -> Path:
    """The binary that was given; raises :class:`UsageError` where there is none."""
    binary = own.native_binary
    if binary is None:
        raise UsageError(f"--device_program=native needs --native_binary=PATH, {command}'s program for the device")
    if not binary.is_file():
        raise UsageError(f"--native_binary={binary}: no such file; build it with bazel for the device's ABI")
    return binary


@dataclass(frozen=True)
class _Done:
    """A part with its runs."""

    part: DevicePart
    runs: tuple[NativeRun, ...]


@dataclass(frozen=True)
class _Plan:
    """What is run on every device."""

    binary: Path
    inputs: NativeInputs
    count: int
    root: str
    temporary: Path

    def part(self, job: Job) -> tuple[PartWork, NativeProgram, Sequence[int]]:
        """A part, its program, and which configuration each step runs."""
        own = self.inputs.part(job.index, self.count)
        folder = Path(tempfile.mkdtemp(dir=self.temporary))
        truth = _written(folder / self.inputs.ground_truth_name, own.ground_truth)
        labels = _written(folder / "labels.txt", self.inputs.label_text)
        model = self.inputs.request.model_file
        libraries = {str(path): path for entry in self.inputs.configurations for path in entry.files if path.is_file()}
        local = [path for path in (self.binary, model, truth, labels, *libraries.values()) if path is not None]
        files = {path: remote_path(self.root, path) for path in local}
        named = {name: files[path] for name, path in libraries.items()}
        order = interleaved(len(self.inputs.configurations), job.index)
        steps = []
        for number, which in enumerate(order):
            paths = NativePaths(
                binary=files[self.binary],
                model=files[model],
                output=output_file(number),
                images=_PICTURES,
                ground_truth=files[truth] if truth else "",
                labels=files[labels] if labels else "",
            )
            words = native_command(
                self.inputs.task, self.inputs.configurations[which], paths, self.inputs.num_runs, named
            )
            steps.append(tuple(words[1:]))
        work = PartWork(
            index=job.index,
            count=self.count,
            examples=len(own.pictures) or self.inputs.example_count,
            files=files,
            pictures={_PICTURES: PictureFolder(own.pictures[0].parent, own.pictures)} if own.pictures else {},
            results=results_of(len(steps)),
        )
        return work, NativeProgram(files[self.binary], tuple(steps)), order


def _written(path: Path, content: bytes | None) -> Path | None:
    if content is None:
        return None
    path.write_bytes(content)
    return path


def _part_count(own: DeviceFlags, inputs: NativeInputs, devices: int) -> int:
    if inputs.can_be_split:
        return parts_of(inputs.example_count, own.parts, 1 if own.split == EACH else devices)
    if own.parts > 1:
        raise UsageError(
            f"--parts={own.parts}: the native tool's figures of parts do not add up to those of the whole; "
            "leave the flag out, or take --device_program=evaltools"
        )
    return 1


class _Likeness:
    """Leaves out devices that run something else than the others of ``pool``, with which they share the parts."""

    def __init__(self, inputs: NativeInputs, stop: threading.Event) -> None:
        self.pool: Pool[_Done] | None = None
        self._inputs = inputs
        self._stop = stop
        self._lacking: set[str] = set()
        self._done: dict[str, dict[str, NativeDelegation]] = {}
        self._changed = threading.Condition()

    def require(self, serial: str, runs: Sequence[NativeRun]) -> None:
        """Raise :class:`NotAlike` where a device ran its part otherwise than the others did theirs.

        One that lacks a delegate leaves its part to devices that may have it, and waits until it is known whether
        those that are at work do. Where none has it, all go on.
        """
        with self._changed:
            lacks = lacking(self._inputs, runs)
            if lacks and self.pool is not None:
                self._lacking.add(serial)
                self._changed.notify_all()
                self._leave_to_others(self.pool, serial, lacks)
            own = delegations(self._inputs, runs)
            for other, earlier in self._done.items():
                changed = [] if other == serial else differences(earlier, own, other, serial)
                if changed:
                    raise NotAlike(
                        f"{serial} is not like {other}, so that their parts make no one result: {'; '.join(changed)}. "
                        "Use devices that are alike, or compare them with --split=each",
                        serial,
                    )
            self._done[serial] = own | self._done.get(serial, {})
            self._changed.notify_all()

    def _leave_to_others(self, pool: Pool[_Done], serial: str, lacks: str) -> None:
        """Return where no other device may have what this one lacks."""

        def having() -> set[str]:
            return (pool.others(serial) - self._lacking) & self._done.keys()

        others = wait_for_others(pool, serial, self._lacking, self._changed, lambda: bool(having()), self._stop)
        verb, named = ("does", having()) if having() else ("may", others)
        if named:
            raise NotAlike(f"{serial} cannot do its part as {' or '.join(sorted(named))} {verb}: {lacks}", serial)


def _do(plan: _Plan, jobs: Sequence[Job], devices: DevicesUsed, console: Console) -> PoolOutcome[_Done]:
    likeness, kills = _Likeness(plan.inputs, devices.stop), Kills()

    def do(serial: str, job: Job) -> _Done:
        work, program, order = plan.part(job)
        folder = Path(tempfile.mkdtemp(dir=plan.temporary))
        done = devices.device(serial).do(work, program, folder, lambda _out, _err: None)
        steps = read_steps(done, len(order))
        kills.require_none(serial, job, steps)
        runs = _runs(plan, done, list(zip(order, steps, strict=True)), devices.facts_of(serial), job.serial)
        if not job.serial:
            likeness.require(serial, runs)
        place = f"part {job.index + 1} of {plan.count}"
        console.print(f"{serial}: {place} done in {done.part.elapsed_s:.0f} s", style="dim")
        proof = tuple(dict.fromkeys(line for run in runs for line in run.delegate_lines))
        return _Done(replace(done.part, delegate_lines=proof), runs)

    likeness.pool = devices.pool(jobs, do, tell_lost(console, plan.count))
    return devices.run(likeness.pool)


def _runs(
    plan: _Plan, done: PartDone, steps: Sequence[tuple[int, StepDone]], facts: DeviceFacts, place: str
) -> tuple[NativeRun, ...]:
    """A part's runs, from steps with the numbers of their configurations.

    ``place`` is the device that is compared with others, empty where devices share the parts.
    """
    runs = []
    for which, step in steps:
        configuration = plan.inputs.configurations[which]
        printed = f"{step.out}\n{step.err}"
        runs.append(
            NativeRun(
                configuration=configuration,
                role="reference" if configuration is plan.inputs.request.reference else "test",
                log=printed,
                proto=step.output,
                delegate_lines=proof_lines(printed, step.logcat),
                exit_code=step.code,
                failure=why_not_started(step.code, last_lines(step.err), facts),
                part=done.part.index,
                parts=plan.count,
                place=place,
                serial="" if place else facts.serial,
            )
        )
    return tuple(runs)
