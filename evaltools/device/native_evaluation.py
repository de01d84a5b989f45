"""An evaluation on devices with TensorFlow's own binary: what it says, made a result of ours."""

from __future__ import annotations

import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.configuration import Configuration
from evaltools.device.device import Device
from evaltools.device.devices import devices_used, run_on_each
from evaltools.device.evaluation import require_one_file
from evaltools.device.flags import DeviceFlags
from evaltools.device.native_inputs import NativeInputs
from evaltools.device.native_outcome import NativeRun, native_runtime
from evaltools.device.native_program import (
    ProgramRun,
    configuration_flags,
    output_file,
    run_binary,
    task_flags,
    unpack_script,
)
from evaltools.device.native_result import assemble_native
from evaltools.device.store import remote_path
from evaltools.known_tasks import task_command
from evaltools.request import Request
from evaltools.result.device import DeviceWork
from evaltools.result.places import on_devices
from evaltools.result.result import Result

_PICTURES: Final = "pictures"


def evaluate_native(
    request: Request, flags: DeviceFlags, inputs: NativeInputs[Any], binary: Path, console: Console
) -> tuple[Result, bool]:
    """Run the binary for every configuration on every device; the result, and whether all devices are in it."""
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        with devices_used(flags, console) as devices:
            is_one = len(devices.by_serial) == 1
            if not is_one:
                require_one_file(task_command(request.task), request)
            program = _NativeEvaluation(binary, inputs, flags.root, Path(temporary), is_one)
            done, device_run = run_on_each(program.run, "native", devices, console)
        runs = [run for found in done.values() for run in found]
        elapsed_s = round(time.perf_counter() - clock, 3)
        result = assemble_native(inputs, runs, native_runtime(binary), started_at, elapsed_s)
    environment = replace(result.environment, command=list(request.command))
    return on_devices(result, device_run, environment), len(done) == len(devices.by_serial)


class _NativeEvaluation:
    """An evaluation by a ``binary``, on one device or on several, which are named then."""

    def __init__(self, binary: Path, inputs: NativeInputs[Any], root: str, folder: Path, is_one: bool) -> None:
        self._binary = binary
        self._inputs = inputs
        self._is_one = is_one
        self._files: dict[Path, str] = {}
        self._steps = self._prepare(root, folder)

    def run(self, device: Device) -> tuple[DeviceWork, list[NativeRun]]:
        """The runs of all configurations on a device."""

        def prepare() -> str:
            device.put_all(self._files)
            pictures = self._inputs.pictures
            return unpack_script(_PICTURES, device.put_folder(pictures[0].parent, pictures)) if pictures else ""

        done, found = run_binary(device, self._binary, self._steps, prepare)
        runs = [
            self._run_of(configuration, run, device.serial)
            for configuration, run in zip(self._inputs.configurations, found, strict=True)
        ]
        proof = tuple(dict.fromkeys(line for run in runs for line in run.delegate_lines))
        return replace(done, delegate_lines=proof), runs

    def _prepare(self, root: str, folder: Path) -> list[list[str]]:
        """The arguments of each run; the files in them are noted, of which some are written into ``folder`` first."""
        inputs, files = self._inputs, self._files

        def sent(path: Path, content: bytes | None = None) -> str:
            """The path on the device of a file, which is written first where its content is given."""
            if content is not None:
                path.write_bytes(content)
            files[path] = remote_path(root, path)
            return files[path]

        model = sent(inputs.request.model_file)
        truth = "" if inputs.truth is None else sent(folder / inputs.ground_truth_name, inputs.truth)
        labels = "" if inputs.label_text is None else sent(folder / "labels.txt", inputs.label_text)
        named = {str(path): sent(path) for each in inputs.configurations for path in each.files if path.is_file()}
        steps = []
        for number, configuration in enumerate(inputs.configurations):
            words = [f"--model_file={model}", f"--output_file_path={output_file(number)}"]
            words += task_flags(inputs.task, _PICTURES, labels, truth, inputs.num_runs)
            steps.append(words + configuration_flags(configuration, named))
        return steps

    def _run_of(self, configuration: Configuration, run: ProgramRun, serial: str) -> NativeRun:
        """A run of the program as one of a configuration."""
        return NativeRun(
            configuration=configuration,
            role="reference" if configuration is self._inputs.request.reference else "test",
            log=run.printed,
            proto=run.output,
            delegate_lines=run.delegate_lines,
            exit_code=run.code,
            crash=run.crash,
            failure=run.failure,
            place="" if self._is_one else serial,
        )
