"""LiteRT's numerics checks on a device: a model on the CPU and on an accelerator, compared inside one program.

``gpu_numerics_check`` and ``npu_numerics_check`` are known by the names of their files. They write no result file: what
they print is read. Their flags are those of ``litert/tools/{gpu,npu}_numerics_check.cc``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import numpy as np
from msgspec import Struct

from evaltools.configuration import AUTO, Configuration
from evaltools.delegates import PARAMETERS
from evaltools.device.flags import DeviceFlags
from evaltools.device.store import stored_folder
from evaltools.errors import DataError, ModelError, UsageError
from evaltools.metrics.native_numbers import NativeError, NumericsDifference
from evaltools.model import ModelFile, read_model
from evaltools.model.compiled_for import DISPATCH
from evaltools.model.contents import operator_counts, read_graphs
from evaltools.model.flatbuffer import Table
from evaltools.model.signature import signature_names
from evaltools.native.logs.figures import NOTHING_TIMED, NativeFigures

Accelerator = Literal["gpu", "npu"]
INPUTS: Final = "inputs"
"""The name of the folder with the values of inputs, in the folder in which the program runs."""
_NAME: Final = re.compile(r"(gpu|npu)_numerics_check")
_EPSILON: Final = 1e-4
_READ_TYPES: Final = ("float32", "int32", "int16", "int8", "uint8")
"""Older releases compare zeros with zeros where an output has another type."""
_GPU_BACKENDS: Final = {"gl": "opengl", "cl": "opencl"}
_GPU_FLAGS: Final = ("use_gpu", "gpu_precision_loss_allowed", "gpu_backend")
_NPU_FLAGS: Final = ("use_npu", "npu_vendor", "dispatch_library_path")
_VENDORS: Final = ("qualcomm", "mediatek", "google_tensor")
_FIGURE: Final = re.compile(r"(Max diff|Min diff|Mean diff|MSE): (\S+)")
_TOTAL: Final = re.compile(
    r"Total (?P<different>\d+) out of (?P<elements>\d+) are different elements, for output #(?P<output>\d+), "
    r"threshold - (?P<epsilon>\S+)"
)
_ABOVE_ITS_LIMITS: Final = "Numerical threshold check failed"
"""Newer releases of gpu_numerics_check end so, with code 1, when everything is printed."""


class NumericsCheck(Struct, frozen=True):
    """A check of a model.

    ``accelerated`` is the model of the accelerator: a GPU's is the same as the CPU's. ``outputs`` has for each output
    that the program numbers its place among the model's outputs. ``inputs`` are files with the raw values of inputs, by
    their names in the signature; without such, the program makes values of its own. ``libraries`` maps the folder of
    ``--device_libraries`` to its path on the device.
    """

    accelerator: Accelerator
    epsilon: float
    accelerated: ModelFile
    outputs: tuple[int, ...]
    inputs: tuple[Path, ...]
    libraries: Mapping[str, str]

    @property
    def input_source(self) -> str:
        """Where the values of inputs come from, in words."""
        return "files of --input_dir" if self.inputs else f"values that {self.accelerator}_numerics_check makes"

    def arguments(self, configuration: Configuration, model: str, files: Mapping[str, str]) -> list[str]:
        """The flags of a run; ``files`` maps files here to their paths on the device.

        Raises :class:`UsageError` for a configuration that the program cannot have.
        """
        where = f"configuration {configuration.name!r}"
        delegates = configuration.delegates
        asked = [delegate.name for delegate in delegates.requested]
        if asked != [self.accelerator.upper()]:
            raise UsageError(
                f"{where}: {self.accelerator}_numerics_check compares the CPU with the {self.accelerator.upper()}, and "
                f"this asks for {' and '.join(asked) or 'the CPU'}; give only --use_{self.accelerator}=true"
            )
        if (configuration.runtime, configuration.kernels, configuration.num_threads) != (AUTO, "default", 1):
            raise UsageError(
                f"{where}: {self.accelerator}_numerics_check has no flags for runtime, kernels and threads; leave them "
                "out"
            )
        words = [f"--epsilon={self.epsilon:g}"]
        if self.accelerator == "gpu":
            self._require_flags(where, configuration, _GPU_FLAGS)
            words += [f"--graph={model}"]
            words += ["--use_fp16=true"] if delegates.value("gpu_precision_loss_allowed") else []
            backend = _GPU_BACKENDS.get(str(delegates.value("gpu_backend")))
            return [*words, *([f"--gpu_backend={backend}"] if backend else [])]
        own = tuple(name for name, _ in delegates.given if name.startswith(_VENDORS))
        self._require_flags(where, configuration, (*_NPU_FLAGS, *own))
        files = {**files, **self.libraries}
        dispatch = str(delegates.value("dispatch_library_path") or next(iter(self.libraries), ""))
        if not dispatch:
            raise UsageError(
                f"{where}: npu_numerics_check needs the vendor's dispatch library: give --device_libraries=FOLDER, a "
                "folder here with it, or --dispatch_library_path, one on the device"
            )
        words += [f"--cpu_model={model}", f"--npu_model={files[str(self.accelerated.path)]}"]
        words += [
            f"--dispatch_library_dir={files.get(dispatch, dispatch)}",
            *([f"--input_dir={INPUTS}"] if self.inputs else []),
        ]
        return words + [
            PARAMETERS[name].format(files.get(str(value), value)) for name, value in delegates.given if name in own
        ]

    def _require_flags(self, where: str, configuration: Configuration, known: tuple[str, ...]) -> None:
        for name, _ in configuration.delegates.given:
            if name not in known:
                raise UsageError(f"{where}: {self.accelerator}_numerics_check has nothing of --{name}; leave it out")

    def read(self, printed: str) -> NativeFigures | str:
        """The figures of a run by output of the model, or why there are none."""
        found: dict[int, NumericsDifference] = {}
        figures: dict[str, float | None] = {}
        for line in printed.splitlines():
            named, total = _FIGURE.fullmatch(line.strip()), _TOTAL.fullmatch(line.strip())
            if named:
                figures[named[1]] = _number(named[2])
            if total and len(figures) == 4:
                found[int(total["output"])] = NumericsDifference(
                    output=int(total["output"]),
                    max_diff=figures["Max diff"],
                    min_diff=figures["Min diff"],
                    mean_diff=figures["Mean diff"],
                    mse=figures["MSE"],
                    different=int(total["different"]),
                    elements=int(total["elements"]),
                    epsilon=self.epsilon,
                )
            if total:
                figures = {}
        if sorted(found) != list(range(len(self.outputs))):
            return (
                f"{self.accelerator}_numerics_check printed the figures of {len(found)} outputs, the model has "
                f"{len(self.outputs)}"
            )
        by_output = [found[self.outputs.index(place)] for place in range(len(self.outputs))]
        return NativeFigures(
            task="inference_diff",
            runs=1,
            inference=NOTHING_TIMED,
            errors=tuple(NativeError(each.mean_diff, 0.0, each.mean_diff, each.mean_diff) for each in by_output),
            numerics=tuple(by_output),
        )


def ended_above_limits(printed: str) -> bool:
    """Whether a run came to its end and failed only because of the program's own limits of differences."""
    return _ABOVE_ITS_LIMITS in printed


def accelerator_of(binary: Path | None) -> Accelerator | None:
    """Whose numerics check a binary is, by its name; None for any other program.

    >>> accelerator_of(Path("bin/npu_numerics_check")), accelerator_of(Path("run_eval"))
    ('npu', None)
    """
    found = None if binary is None else _NAME.search(binary.name)
    if found is None:
        return None
    return "gpu" if found[1] == "gpu" else "npu"


def numerics_check(model: ModelFile, flags: DeviceFlags) -> NumericsCheck | None:
    """The check that ``--native_binary`` does; None where that is another program, whose flags have none of a check.

    Raises :class:`UsageError` and its kinds for flags, models and files that the program cannot take.
    """
    accelerator = accelerator_of(flags.native_binary)
    if accelerator is None:
        refuse_numerics(flags)
        return None
    of_npu = [name for name in ("input_dir", "npu_model") if _given(flags)[name] is not None]
    if accelerator == "gpu" and of_npu:
        raise UsageError(f"gpu_numerics_check has nothing of --{of_npu[0]}; leave it out")
    odd = next((tensor for tensor in model.outputs if tensor.dtype not in _READ_TYPES), None)
    if odd is not None:
        raise ModelError(f"{model.path}: the output {odd}: the numerics checks read only {', '.join(_READ_TYPES)}")
    return NumericsCheck(
        accelerator=accelerator,
        epsilon=_EPSILON if flags.epsilon is None else flags.epsilon,
        accelerated=model if accelerator == "gpu" else _compiled_model(flags.npu_model),
        outputs=_output_order(model),
        inputs=() if flags.input_dir is None else _input_files(model, flags.input_dir),
        libraries=library_folders(flags),
    )


def library_folders(flags: DeviceFlags) -> dict[str, str]:
    """The folder of ``--device_libraries`` with its path on devices; empty without one."""
    folder = flags.libraries
    return {} if folder is None else {str(folder): stored_folder(flags.root, folder)[0]}


def refuse_numerics(flags: DeviceFlags) -> None:
    """Raise :class:`UsageError` for a numerics check, or a flag of one, where another program runs."""
    if accelerator_of(flags.native_binary) is not None:
        raise UsageError(f"--native_binary={flags.native_binary} compares outputs: give it to inference-diff")
    stated = [name for name, value in _given(flags).items() if value is not None]
    if stated:
        raise UsageError(
            f"--{stated[0]} is for LiteRT's numerics checks, --native_binary=gpu_numerics_check or npu_numerics_check; "
            "leave it out"
        )


def _given(flags: DeviceFlags) -> dict[str, float | Path | None]:
    return {"epsilon": flags.epsilon, "input_dir": flags.input_dir, "npu_model": flags.npu_model}


def _compiled_model(path: Path | None) -> ModelFile:
    if path is None:
        raise UsageError("npu_numerics_check needs --npu_model=FILE, the model compiled for the NPU")
    model = read_model(path)
    if DISPATCH not in operator_counts(read_graphs(memoryview(model.read()))):
        raise ModelError(
            f"--npu_model={path} is not compiled for an NPU: it has no operator {DISPATCH}, and would run on the CPU; "
            "compile it with LiteRT's apply_plugin"
        )
    return model


def _output_order(model: ModelFile) -> tuple[int, ...]:
    """The places of outputs in the order of the first signature, which numbers them for LiteRT."""
    places = {tensor.index: place for place, tensor in enumerate(model.outputs)}
    if not model.signatures:
        return tuple(range(len(model.outputs)))
    _, named = signature_names(Table.root(memoryview(model.read())), 0, model.signatures[0])
    if set(named) != set(places):
        raise ModelError(f"{model.path}: its first signature has other outputs than its main graph, which is compared")
    return tuple(places[index] for index in named)


def _input_files(model: ModelFile, folder: Path) -> tuple[Path, ...]:
    found = []
    for tensor in model.inputs:
        name = tensor.signature_name or tensor.name
        path = folder / f"{name}.raw"
        if not path.is_file():
            raise DataError(f"--input_dir={folder}: no file {path.name}, the raw values of the input {tensor}")
        expected = math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize
        if path.stat().st_size != expected:
            raise DataError(f"{path} has {path.stat().st_size} bytes, the input {tensor} takes {expected}")
        found.append(path)
    return tuple(found)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
