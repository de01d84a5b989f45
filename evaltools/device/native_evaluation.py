"""An evaluation on devices with TensorFlow's own binary: what it says, made a result of ours."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from rich.console import Console

from evaltools.device.device import Device, devices_used, run_on_each
from evaltools.device.flags import DeviceFlags
from evaltools.device.native_inputs import NativeInputs
from evaltools.device.native_program import (
    PICTURES,
    ProgramRun,
    configuration_flags,
    native_runtime,
    output_file,
    run_binary,
    task_flags,
)
from evaltools.device.native_result import assemble_native
from evaltools.device.python_program import SentFiles
from evaltools.known_tasks import task_command
from evaltools.request import Request
from evaltools.result.device import DeviceWork
from evaltools.result.places import on_devices
from evaltools.result.result import Result
from evaltools.runs.places import require_one_file


def evaluate_native(
    request: Request, flags: DeviceFlags, inputs: NativeInputs[Any], binary: Path, console: Console
) -> tuple[Result, bool]:
    """Run the binary for every configuration on every device; the result, and whether all devices are in it."""
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder, devices_used(flags, console) as devices:
        is_one, sent = len(devices.by_serial) == 1, SentFiles(flags.root)
        if not is_one:
            require_one_file(task_command(request.task), request)
        steps = _steps(inputs, sent, Path(folder))

        def run(device: Device) -> tuple[DeviceWork, Sequence[ProgramRun]]:
            return run_binary(device, binary, steps, sent.files, inputs.pictures)

        done, device_run = run_on_each(run, "native", devices, console)
    runs = {"" if is_one else serial: found for serial, found in done.items()}
    elapsed_s = round(time.perf_counter() - clock, 3)
    result = assemble_native(inputs, runs, native_runtime(binary), started_at, elapsed_s)
    environment = replace(result.environment, command=list(request.command))
    return on_devices(result, device_run, environment), len(done) == len(devices.by_serial)


def _steps(inputs: NativeInputs[Any], sent: SentFiles, folder: Path) -> list[list[str]]:
    """The arguments of each run, with the files in them collected in ``sent``; some are written into ``folder``."""

    def written(name: str, content: bytes | None) -> str:
        """The path on devices of a file with this content; empty where there is none."""
        if content is None:
            return ""
        (folder / name).write_bytes(content)
        return sent.take_file(folder / name)

    model = sent.take_file(inputs.request.model_file)
    truth = written(f"ground_truth.{'pb' if inputs.task == 'coco' else 'txt'}", inputs.truth)
    labels = written("labels.txt", inputs.label_text)
    steps = []
    for number, configuration in enumerate(inputs.configurations):
        named = {str(path): sent.take_file(path) for path in configuration.files if path.is_file()}
        words = [f"--model_file={model}", f"--output_file_path={output_file(number)}"]
        words += task_flags(inputs.task, PICTURES, labels, truth, inputs.num_runs)
        steps.append(words + configuration_flags(configuration, named))
    return steps
