"""What a bundle of a native program has: raw inputs beside the model, and the commands that run it with them."""

from __future__ import annotations

import shlex
from contextlib import closing
from math import prod
from pathlib import Path
from typing import Final

import numpy as np

from evaltools.errors import ConfigurationUnavailable, InferenceError
from evaltools.model import read_model
from evaltools.operators.part import Case
from evaltools.runtime.native.starts import files_flag, flags_there, start_flags
from evaltools.runtime.registry import open_session
from evaltools.runtime.session import TensorSpec

_FOLDER: Final = "/data/local/tmp"
_OUTPUTS: Final = "outputs"


def write_inputs(case: Case, folder: Path) -> None:
    """Write the inputs of a case as the program reads them, raw."""
    for place, values in enumerate(case.inputs):
        (folder / _input(place)).write_bytes(np.ascontiguousarray(values).tobytes())


def commands(case: Case, model: str, script: str) -> list[str]:
    """What is typed in the folder of the bundle, on a device by adb: send, run, compare."""
    configuration = case.configuration
    binary = Path(configuration.native_binary)
    files = [path for path in configuration.files if path.is_file() and path != binary]
    given = [_input(place) for place in range(len(case.inputs))]
    if not configuration.device:
        command = _started(case, str(binary.resolve()), {str(path): str(path.resolve()) for path in files}, model)
        return [command, f"python {script} <{_OUTPUTS}"]
    sent = shlex.join([str(binary), model, *given, *map(str, files)])
    libraries = configuration.device_libraries
    folder = f" {shlex.quote(libraries.rstrip('/'))}/." if libraries else ""
    command = _started(case, f"./{binary.name}", {str(path): f"./{path.name}" for path in files}, model)
    paths = "export LD_LIBRARY_PATH=. ADSP_LIBRARY_PATH=.; " if libraries else ""
    there = f"cd {_FOLDER} && chmod 755 {shlex.quote(binary.name)} && {paths}{command}"
    return [
        f"adb push {sent}{folder} {_FOLDER}/",
        f"adb shell {shlex.quote(there)}",
        f"adb exec-out cat {_FOLDER}/{_OUTPUTS} | python {script}",
    ]


def script_fields(case: Case) -> dict[str, str]:
    """Which bytes of all outputs are those of the tensor that was wrong, and what they are."""
    outputs = read_model(case.model).outputs
    sizes = [np.dtype(each.dtype).itemsize * prod(each.shape) for each in outputs]
    return {
        "start": str(sum(sizes[: case.output])),
        "size": str(sizes[case.output]),
        "dtype": np.dtype(outputs[case.output].dtype).name,
    }


def outputs_of(case: Case) -> bytes:
    """What the program writes once more for the inputs of a case; raises what running it raises."""
    try:
        with closing(open_session(read_model(case.model), case.configuration)) as session:
            return b"".join(np.ascontiguousarray(each).tobytes() for each in session.run(case.inputs).outputs)
    except ConfigurationUnavailable as error:
        raise InferenceError(str(error)) from error


def _started(case: Case, program: str, files: dict[str, str], model: str) -> str:
    specs = [TensorSpec("", values.dtype, values.shape) for values in case.inputs]
    given = [_input(place) for place in range(len(specs))]
    own = [*flags_there(case.configuration, files), *start_flags(specs, 1), files_flag(given)]
    return shlex.join([program, f"--graph={model}", *own, f"--output_filepath={_OUTPUTS}"])


def _input(place: int) -> str:
    return f"input_{place}"
