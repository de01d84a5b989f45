"""An evaluation on devices with TensorFlow's own binary: what it says, made a result of ours."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.device.device import Device
from evaltools.device.devices import DevicesUsed
from evaltools.device.flags import DeviceFlags
from evaltools.device.native_flags import configuration_flags, task_flags
from evaltools.device.native_inputs import NativeInputs
from evaltools.device.native_outcome import NativeRun, WhatRan, native_runtime, why_not_started
from evaltools.device.native_program import NativeRuns, StepDone, interleaved, output_file
from evaltools.device.native_result import assemble_native
from evaltools.device.part import PartWork, SentFolder
from evaltools.device.pool import SPLIT_EACH, Alike, Job, parts_of, run_on_devices
from evaltools.device.process import last_lines
from evaltools.device.store import remote_path
from evaltools.errors import UsageError
from evaltools.native.logs.delegates import delegate_lines
from evaltools.request import Request
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DevicePart
from evaltools.result.evaluation import EvaluationResult

_PICTURES: Final = "pictures"


def evaluate_native(
    request: Request, flags: DeviceFlags, inputs: NativeInputs[Any], binary: Path, console: Console
) -> tuple[EvaluationResult, bool]:
    """Run the binary for every configuration; the result, and whether all parts are in it."""
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        with DevicesUsed(flags, console) as devices:
            count = _part_count(flags, inputs, len(devices.serials))
            program = _NativeEvaluation(binary, inputs, count, flags.root, Path(temporary), console)
            found = run_on_devices(program.run, "native", flags.split, count, devices, console)
        runs = [run for done in found.done.values() for run in done]
        elapsed_s = round(time.perf_counter() - clock, 3)
        result = assemble_native(inputs, runs, native_runtime(binary), started_at, elapsed_s)
    environment = replace(result.environment, command=list(request.command))
    return replace(result, device_run=found.device_run, environment=environment), found.are_all


def _part_count(flags: DeviceFlags, inputs: NativeInputs[Any], devices: int) -> int:
    if inputs.can_be_split:
        return parts_of(inputs.example_count, flags.parts, 1 if flags.split == SPLIT_EACH else devices)
    if flags.parts > 1:
        raise UsageError(
            f"--parts={flags.parts}: the native tool's figures of parts do not add up to those of the whole; "
            "leave the flag out, or take --device_program=evaltools"
        )
    return 1


class _NativeEvaluation:
    """An evaluation by a ``binary``; what delegates took must be alike on devices that share the parts."""

    def __init__(
        self, binary: Path, inputs: NativeInputs[Any], count: int, root: str, folder: Path, console: Console
    ) -> None:
        self._runs = NativeRuns(binary, root, folder)
        self._inputs = inputs
        self._count = count
        self._root = root
        self._folder = folder
        self._console = console
        self._alike = Alike(WhatRan.differences)

    def run(self, device: Device, job: Job) -> tuple[DevicePart, list[NativeRun]]:
        """The runs of all configurations on a part."""
        order = interleaved(len(self._inputs.configurations), job.index)
        work, steps = self._part(job, order)
        part, found = self._runs.run(device, job, work, steps)
        runs = [self._run_of(which, step, job, device.facts) for which, step in zip(order, found, strict=True)]
        if not job.serial:
            ran = WhatRan.of(self._inputs, device.serial, runs)
            self._alike.require(job, device.serial, ran)
        self._console.print(
            f"{device.serial}: part {job.index + 1} of {self._count} done in {part.elapsed_s:.0f} s", style="dim"
        )
        proof = tuple(dict.fromkeys(line for run in runs for line in run.delegate_lines))
        return replace(part, delegate_lines=proof), runs

    def _part(self, job: Job, order: Sequence[int]) -> tuple[PartWork, list[list[str]]]:
        """A part, and the arguments of each of its steps, which run the configurations in this order."""
        inputs = self._inputs
        pictures = inputs.pictures[job.index :: self._count]
        truth = inputs.ground_truth(job.index, self._count)
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        files: dict[Path, str] = {}

        def sent(path: Path, content: bytes | None = None) -> str:
            """The path on the device of a file, which is written first where its content is given."""
            if content is not None:
                path.write_bytes(content)
            files[path] = remote_path(self._root, path)
            return files[path]

        model = sent(inputs.request.model_file)
        truth_file = "" if truth is None else sent(folder / inputs.ground_truth_name, truth)
        labels = "" if inputs.label_text is None else sent(folder / "labels.txt", inputs.label_text)
        named = {str(path): sent(path) for each in inputs.configurations for path in each.files if path.is_file()}
        folders = {_PICTURES: SentFolder(pictures[0].parent, pictures)} if pictures else {}
        steps = []
        for number, which in enumerate(order):
            configuration = inputs.configurations[which]
            words = [f"--model_file={model}", f"--output_file_path={output_file(number)}"]
            words += task_flags(inputs.task, _PICTURES, labels, truth_file, inputs.num_runs)
            steps.append(words + configuration_flags(configuration, named))
        work = PartWork(
            index=job.index,
            count=self._count,
            examples=len(pictures) or inputs.example_count,
            files=files,
            folders=folders,
        )
        return work, steps

    def _run_of(self, which: int, step: StepDone, job: Job, facts: DeviceFacts) -> NativeRun:
        """A step of a part as a run of the configuration of this number."""
        configuration = self._inputs.configurations[which]
        printed = f"{step.out}\n{step.err}"
        return NativeRun(
            configuration=configuration,
            role="reference" if configuration is self._inputs.request.reference else "test",
            log=printed,
            proto=step.output,
            delegate_lines=delegate_lines(f"{printed}\n{step.logcat}"),
            exit_code=step.code,
            crash=step.crash,
            failure=why_not_started(step.code, last_lines(step.err), facts),
            part=job.index,
            parts=self._count,
            place=job.serial,
            serial="" if job.serial else facts.serial,
        )
