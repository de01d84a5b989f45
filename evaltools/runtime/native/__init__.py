"""TensorFlow's ``benchmark_model`` as a runtime: it is started for each run, with inputs in and raw outputs out.

Any build of the program will do, as Google's prebuilt one for phones, with whatever delegates it has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools import file_content
from evaltools.adb.client import DeviceError
from evaltools.configuration import NATIVE, Configuration
from evaltools.errors import (
    ConfigurationUnavailable,
    EvaltoolsError,
    InferenceError,
    MachineAway,
    ProgramEnded,
    UsageError,
)
from evaltools.file_content import Unreadable
from evaltools.model import ModelFile
from evaltools.runtime.native.machines import Machine, machine_of
from evaltools.runtime.native.session import NativeSession
from evaltools.runtime.native.starts import Program, ProgramHung, flags_there
from evaltools.runtime.registry import find_runtime
from evaltools.runtime.session import TensorSpec

_DIGITS_OF_SHA256: Final = 12


class NativeRuntime(Struct, frozen=True):
    """Starts a program for each run."""

    name: str = NATIVE

    def open(self, model: ModelFile, configuration: Configuration) -> NativeSession:
        """Send what the program needs, and start it once on zeros, which proves what its delegates take.

        Raises :class:`ConfigurationUnavailable`, :class:`MachineAway` for a device that cannot be reached or is full,
        and :class:`UsageError` for flags that the program has not.
        """
        _require_runnable(model)
        try:
            machine = machine_of(configuration.device)
            try:
                program = _program(model, configuration, machine)
                return NativeSession(program, machine, _facts_of(Path(configuration.native_binary)))
            except BaseException:
                machine.close()
                raise
        except InferenceError as error:
            requested = configuration.delegates.requested
            raise ConfigurationUnavailable(
                str(error),
                requested[0].name if requested else "",
                crashed=isinstance(error, ProgramEnded),
                hung=isinstance(error, ProgramHung),
            ) from error
        except DeviceError as error:
            raise MachineAway(str(error)) from error


def _facts_of(binary: Path) -> tuple[str, str]:
    """Name and version of a program, which states no version: it is that of its content."""
    try:
        return binary.name, f"sha256 {file_content.sha256_of(binary)[:_DIGITS_OF_SHA256]}"
    except Unreadable as error:
        raise UsageError(
            f"--native_binary={binary} cannot be read: {error}; give the path of a benchmark_model that is built for "
            "the device"
        ) from error


def _require_runnable(model: ModelFile) -> None:
    """Raise :class:`ConfigurationUnavailable` for a model that the program cannot be given inputs for."""
    name = model.path.name
    if model.stateful:
        why = "keeps a state from run to run, which the program, started anew for each, forgets"
    elif len(model.signatures) > 1:
        why = f"has {len(model.signatures)} signatures, and the program does not say in which order their outputs come"
    elif any("string" in tensor.dtype for tensor in (*model.inputs, *model.outputs)):
        why = "has texts among its inputs or outputs, and the program writes raw numbers"
    elif any(not tensor.shape for tensor in model.inputs):
        why = "has an input without dimensions, for which the program has no flag; convert it with the shape [1]"
    else:
        return
    raise ConfigurationUnavailable(f"{name} {why}", cannot_exist=True)


def _program(model: ModelFile, configuration: Configuration, machine: Machine) -> Program:
    """The program with everything that it needs, at its place on the machine."""
    binary = Path(configuration.native_binary)
    _facts_of(binary)
    flags = flags_there(
        configuration, {str(path): "" for path in configuration.files}
    )  # refused before anything is sent
    paths = {str(path): machine.put_file(path) for path in configuration.files if path.is_file() and path != binary}
    folder = Path(configuration.device_libraries) if configuration.device_libraries else None
    environment = "" if folder is None else machine.put_folder(folder)
    flags = flags_there(configuration, paths)
    return Program(
        configuration=configuration,
        node_count=model.node_count,
        command=(machine.put_program(binary), f"--graph={machine.put_content('model.tflite', model.read())}", *flags),
        inputs=tuple(TensorSpec(each.name, np.dtype(each.dtype), each.shape) for each in model.inputs),
        outputs=_outputs(model),
        environment=environment,
    )


def _outputs(model: ModelFile) -> tuple[TensorSpec, ...]:
    """The outputs as the interpreter of this computer has them, since a file may leave sizes open; else the file's."""
    plain = Configuration("shapes", kernels="builtin")
    try:
        session = find_runtime(plain).open(model, plain)
    except EvaltoolsError:
        if any(-1 in tensor.shape_signature for tensor in (*model.inputs, *model.outputs)):
            raise ConfigurationUnavailable(
                f"{model.path.name} leaves sizes of its outputs open, and no runtime of this computer can say them; "
                "convert it with fixed sizes"
            ) from None
        return tuple(TensorSpec(each.name, np.dtype(each.dtype), each.shape) for each in model.outputs)
    found = session.outputs
    session.close()
    return tuple(found)


RUNTIME: Final = NativeRuntime()
