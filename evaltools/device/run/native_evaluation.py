"""An evaluation on devices with TensorFlow's own binary: what it says, made a result of ours."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.device.adb.process import last_lines
from evaltools.device.files.store import remote_path, sha256_of
from evaltools.device.native.command import NativePaths, native_command
from evaltools.device.native.delegation import NativeDelegation, differences
from evaltools.device.native.evaluation import assemble_native
from evaltools.device.native.inputs import NativeInputs
from evaltools.device.native.outcome import NativeBinary, delegations, unavailable, why_not_started
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
from evaltools.device.programs.pool import Job
from evaltools.device.run.devices import DevicesUsed
from evaltools.device.run.flags import DeviceFlags
from evaltools.device.run.runner import SPLIT_EACH, AlikeCheck, DeviceProgram, parts_of, run_on_devices
from evaltools.errors import UsageError
from evaltools.native.logs.run import NativeRun, proof_lines
from evaltools.request import Request
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DevicePart
from evaltools.result.evaluation import EvaluationResult

_PICTURES: Final = "pictures"


def evaluate_native(
    request: Request, flags: DeviceFlags, inputs: NativeInputs, binary: Path, console: Console
) -> tuple[EvaluationResult, bool]:
    """Run the binary for every configuration; the result, and whether all parts are in it."""
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        with DevicesUsed(flags, console) as devices:
            count = _part_count(flags, inputs, len(devices.serials))
            program = _NativeEvaluation(binary, inputs, count, flags.root, Path(temporary), console)
            found = run_on_devices(program, "native", flags.split, count, devices, console)
        runs = [run for done in found.done.values() for run in done.runs]
        elapsed_s = round(time.perf_counter() - clock, 3)
        result = assemble_native(inputs, runs, NativeBinary(binary.name, sha256_of(binary)), started_at, elapsed_s)
    environment = replace(result.environment, command=list(request.command))
    return replace(result, device_run=found.device_run, environment=environment), found.are_all


def require_binary(flags: DeviceFlags, command: str) -> Path:
    """The binary that was given; raises :class:`UsageError` where there is none."""
    binary = flags.native_binary
    if binary is None:
        raise UsageError(f"--device_program=native needs --native_binary=PATH, {command}'s program for the device")
    if not binary.is_file():
        raise UsageError(f"--native_binary={binary}: no such file; build it with bazel for the device's ABI")
    return binary


class _NativePartDone(Struct, frozen=True):
    """A part with its runs."""

    part: DevicePart
    runs: tuple[NativeRun, ...]


def _written(path: Path, content: bytes | None) -> Path | None:
    if content is None:
        return None
    path.write_bytes(content)
    return path


def _part_count(flags: DeviceFlags, inputs: NativeInputs, devices: int) -> int:
    if inputs.can_be_split:
        return parts_of(inputs.example_count, flags.parts, 1 if flags.split == SPLIT_EACH else devices)
    if flags.parts > 1:
        raise UsageError(
            f"--parts={flags.parts}: the native tool's figures of parts do not add up to those of the whole; "
            "leave the flag out, or take --device_program=evaltools"
        )
    return 1


class _Ran(Struct, frozen=True):
    """What delegates took on a device, and why configurations could not run there, by their names."""

    took: dict[str, NativeDelegation]
    unavailable: dict[str, str]


class _NativeEvaluation(DeviceProgram[_NativePartDone, _Ran]):
    """An evaluation by a ``binary``; what delegates took must be alike on devices that share the parts."""

    def __init__(
        self, binary: Path, inputs: NativeInputs, count: int, root: str, temporary: Path, console: Console
    ) -> None:
        self._binary = binary
        self._inputs = inputs
        self._count = count
        self._root = root
        self._temporary = temporary
        self._console = console
        self._kills = Kills()
        self._ran: dict[str, _Ran] = {}

    def run(self, devices: DevicesUsed, serial: str, job: Job, alike: AlikeCheck[_Ran]) -> _NativePartDone:
        """The runs of all configurations on a part."""
        work, program, order = self._part(job)
        folder = Path(tempfile.mkdtemp(dir=self._temporary))
        done = devices.device(serial).do(work, program, folder, lambda _out, _err: None)
        steps = read_steps(done, len(order))
        self._kills.require_none(serial, job, steps)
        runs = self._runs(done, list(zip(order, steps, strict=True)), devices.facts_of(serial), job.serial)
        if not job.serial:
            own = _Ran(delegations(self._inputs, runs), unavailable(self._inputs, runs))
            alike.admit(job, serial, own, partial(self._keep, serial, own))
        name = f"part {job.index + 1} of {self._count}"
        self._console.print(f"{serial}: {name} done in {done.part.elapsed_s:.0f} s", style="dim")
        proof = tuple(dict.fromkeys(line for run in runs for line in run.delegate_lines))
        return _NativePartDone(replace(done.part, delegate_lines=proof), runs)

    def _part(self, job: Job) -> tuple[PartWork, NativeProgram, Sequence[int]]:
        """A part, its program, and which configuration each step runs."""
        own = self._inputs.part(job.index, self._count)
        folder = Path(tempfile.mkdtemp(dir=self._temporary))
        truth = _written(folder / self._inputs.ground_truth_name, own.ground_truth)
        labels = _written(folder / "labels.txt", self._inputs.label_text)
        model = self._inputs.request.model_file
        libraries = {str(path): path for entry in self._inputs.configurations for path in entry.files if path.is_file()}
        local = [path for path in (self._binary, model, truth, labels, *libraries.values()) if path is not None]
        files = {path: remote_path(self._root, path) for path in local}
        named = {name: files[path] for name, path in libraries.items()}
        order = interleaved(len(self._inputs.configurations), job.index)
        steps = []
        for number, which in enumerate(order):
            paths = NativePaths(
                binary=files[self._binary],
                model=files[model],
                output=output_file(number),
                images=_PICTURES,
                ground_truth=files[truth] if truth else "",
                labels=files[labels] if labels else "",
            )
            words = native_command(
                self._inputs.task, self._inputs.configurations[which], paths, self._inputs.num_runs, named
            )
            steps.append(tuple(words[1:]))
        work = PartWork(
            index=job.index,
            count=self._count,
            examples=len(own.pictures) or self._inputs.example_count,
            files=files,
            pictures={_PICTURES: PictureFolder(own.pictures[0].parent, own.pictures)} if own.pictures else {},
            results=results_of(len(steps)),
        )
        return work, NativeProgram(files[self._binary], tuple(steps)), order

    def _runs(
        self, done: PartDone, steps: Sequence[tuple[int, StepDone]], facts: DeviceFacts, place: str
    ) -> tuple[NativeRun, ...]:
        """A part's runs, from steps with the numbers of their configurations.

        ``place`` is the device that is compared with others, empty where devices share the parts.
        """
        runs = []
        for which, step in steps:
            configuration = self._inputs.configurations[which]
            printed = f"{step.out}\n{step.err}"
            runs.append(
                NativeRun(
                    configuration=configuration,
                    role="reference" if configuration is self._inputs.request.reference else "test",
                    log=printed,
                    proto=step.output,
                    delegate_lines=proof_lines(printed, step.logcat),
                    exit_code=step.code,
                    failure=why_not_started(step.code, last_lines(step.err), facts),
                    part=done.part.index,
                    parts=self._count,
                    place=place,
                    serial="" if place else facts.serial,
                )
            )
        return tuple(runs)

    def _keep(self, serial: str, own: _Ran) -> _Ran:
        earlier = self._ran.get(serial, _Ran({}, {}))
        self._ran[serial] = _Ran(own.took | earlier.took, own.unavailable | earlier.unavailable)
        return self._ran[serial]

    def differences(self, other: str, earlier: _Ran, serial: str, own: _Ran) -> list[str]:
        """Parts of one device need not be alike: the result warns of those."""
        if other == serial:
            return []
        found = differences(earlier.took, own.took, other, serial)
        for place, one, another in ((other, earlier, own), (serial, own, earlier)):
            found += [
                f"configuration {name} cannot run on {place}: {reason}"
                for name, reason in one.unavailable.items()
                if name not in another.unavailable
            ]
        return found
