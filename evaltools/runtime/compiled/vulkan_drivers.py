"""Why a Vulkan loader finds no driver: which manifests there are, and what comes of loading the libraries they name.

Where manifests are looked for: the loader's own document on its interface to drivers, "Driver Discovery on Linux".
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from evaltools.documents import json_values

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


def describe_drivers(environment: Mapping[str, str]) -> str:
    """What was found, driver by driver, and what to do about it.

    The libraries are loaded into this process, as the loader does.

    >>> describe_drivers({"VK_DRIVER_FILES": "/nowhere/icd.json"})
    'VK_DRIVER_FILES=/nowhere/icd.json is no manifest of a driver; name its .json file, or unset the variable'
    """
    variable = next((name for name in _INSTEAD if environment.get(name)), "")
    found = _manifests(_paths(environment[variable]) if variable else _places(environment))
    if found:
        return "; ".join(map(_describe, found))
    if variable:
        stated = f"{variable}={environment[variable]}"
        return f"{stated} is no manifest of a driver; name its .json file, or unset the variable"
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
        return f"{manifest} is no manifest of a driver ({type(error).__name__}: {error}); install the driver anew"
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
