"""The GPU of LiteRT's ``CompiledModel``, a WebGPU accelerator on Vulkan, Metal or Direct3D, and Vulkan's drivers."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from evaltools.configuration import Configuration
from evaltools.delegates import DelegateSettings
from evaltools.documents import json_values
from evaltools.runtime.compiled.messages import first_error

_SOFTWARE: Final = "a GPU in software is enough for numbers: apt install mesa-vulkan-drivers (docs/accelerators.md)"
_DYNAMIC: Final = re.compile(r"only supports static-sized tensors .*\(tensor#(\d+) is a dynamic-sized tensor\)")
_NOT_APPLIED: Final = "Failed to modify graph with delegate"
_INSTEAD: Final = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_BESIDE: Final = "VK_ADD_DRIVER_FILES"
_BELOW: Final = Path("vulkan", "icd.d")
_FOLDERS: Final = (
    ("XDG_CONFIG_HOME", "~/.config"),
    ("XDG_CONFIG_DIRS", "/etc/xdg"),
    ("", "/etc"),
    ("XDG_DATA_HOME", "~/.local/share"),
    ("XDG_DATA_DIRS", "/usr/local/share:/usr/share"),
)
LOADED_LATER: Final = {"nvidia": ("libEGL.so.1", "libegl1")}
"""What a driver with such a name loads only when it looks for a GPU, and the package that has it.

Measured with NVIDIA's 580.159 on an H200: without the library it finds none and says nothing.
"""
_OF_CONTAINERS: Final = (
    "in a container, that of NVIDIA needs NVIDIA_DRIVER_CAPABILITIES with graphics; Mesa before 24 is too old"
)


def environment(_settings: DelegateSettings | None) -> Mapping[str, str]:
    """Where libraries are. A folder without any stands for those of NPUs, which would be looked for and loaded."""
    spec = importlib.util.find_spec("ai_edge_litert")
    package, none = str(Path(str(spec.origin)).parent) if spec else "", str(Path(__file__).parent)
    return {"runtime_path": package, "dispatch_library_path": none, "compiler_plugin_path": none}


def set_options(options: Any, configuration: Configuration) -> None:
    """``benchmark_mode`` lets a run end when its work is done; without it, a run ends when the work is enqueued."""
    gpu, settings = options.gpu_options, configuration.delegates
    gpu.enforce_f32 = not settings.value("gpu_precision_loss_allowed")
    gpu.benchmark_mode = True
    gpu.infinite_float_capping = bool(settings.value("gpu_infinite_float_capping"))
    gpu.allow_src_quantized_fc_conv_ops = bool(settings.value("gpu_allow_src_quantized_fc_conv_ops"))


def explain(messages: str) -> str:
    """What is missing and what to do, from what was printed; empty where that says nothing."""
    if "Couldn't load Vulkan" in messages:
        return (
            f"WebGPU found no Vulkan loader (libvulkan.so.1). Install libvulkan1 and a driver of the GPU; {_SOFTWARE}"
        )
    if "No adapters found" in messages:
        drivers = f": {describe_drivers(os.environ)}" if sys.platform == "linux" else ""
        return (
            f"WebGPU found no adapter: a Vulkan loader is there, but no driver that it can use{drivers}. "
            f"Without a GPU {_SOFTWARE}"
        )
    dynamic = _DYNAMIC.search(messages)
    if dynamic is not None and _NOT_APPLIED in messages:
        return (
            f"the GPU takes models of fixed sizes only, and the size of tensor {dynamic[1]} of this one is known only "
            "when it runs; convert the model with fixed sizes, or leave --use_gpu out"
        )
    return first_error(messages)


def describe_drivers(environment: Mapping[str, str]) -> str:
    """What was found, driver by driver, and what to do about it.

    The libraries are loaded into this process, as the loader does. Where manifests are looked for: the loader's own
    document on its interface to drivers, "Driver Discovery on Linux".

    >>> describe_drivers({"VK_DRIVER_FILES": "/nowhere/icd.json"})
    'VK_DRIVER_FILES=/nowhere/icd.json is not a manifest of a driver; name its .json file, or unset the variable'
    """
    variable = next((name for name in _INSTEAD if environment.get(name)), "")
    found = _manifests(_paths(environment[variable]) if variable else _places(environment))
    if found:
        return "; ".join(map(_describe, found))
    if variable:
        stated = f"{variable}={environment[variable]}"
        return f"{stated} is not a manifest of a driver; name its .json file, or unset the variable"
    return "none has a manifest in /usr/share/vulkan/icd.d or where else Vulkan looks; install the driver of the GPU"


def has_drivers(environment: Mapping[str, str]) -> bool:
    """Whether a variable names drivers, or a manifest of one lies where Vulkan looks."""
    stated = any(environment.get(name) for name in (*_INSTEAD, _BESIDE))
    return stated or bool(_manifests(_places(environment)))


def _places(environment: Mapping[str, str]) -> list[Path]:
    folders = [environment.get(variable) or default for variable, default in _FOLDERS]
    below = [path.expanduser() / _BELOW for folder in folders for path in _paths(folder)]
    return below + _paths(environment.get(_BESIDE, ""))


def _manifests(places: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for place in places:
        found += sorted(place.glob("*.json")) if place.is_dir() else [place] if place.is_file() else []
    return list(dict.fromkeys(found))


def _paths(text: str) -> list[Path]:
    return [Path(entry) for entry in text.split(os.pathsep) if entry]


def _describe(manifest: Path) -> str:
    try:
        library = str(json_values(manifest.read_bytes())["ICD"]["library_path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{manifest} is not a manifest of a driver ({type(error).__name__}: {error}); install the driver anew"
    path = str(manifest.parent / library) if "/" in library else library
    try:
        ctypes.CDLL(path)
    except OSError as error:
        return f"{manifest} names {path}, which cannot be loaded: {error}; install what is missing"
    for maker, (library, package) in LOADED_LATER.items():
        if maker in Path(path).name and not _can_be_loaded(library):
            return (
                f"{path}, which {manifest} names, needs {library} to find a GPU, and it is missing: install {package}"
            )
    return f"{path}, which {manifest} names, can be loaded and finds no GPU that will do ({_OF_CONTAINERS})"


def _can_be_loaded(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
