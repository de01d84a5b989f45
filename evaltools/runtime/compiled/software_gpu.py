"""A GPU in software: where ``evaltools doctor --install=software-gpu`` puts its driver, and how a process takes it.

Nothing is set for the user's programs: the process of a configuration on the GPU loads the driver itself, and only on
a machine whose Vulkan has no driver, so that a real GPU is never replaced.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from evaltools.documents import json_values
from evaltools.runtime.compiled.vulkan_drivers import has_drivers

MANIFEST: Final = "icd.json"
LOADER: Final = "libvulkan.so.1"
VARIABLE: Final = "VK_DRIVER_FILES"
_MISSING: Final = re.compile(r"(\S+): cannot open shared object file")


def default_folder(environment: Mapping[str, str]) -> Path:
    """Where the driver lies unless another folder is named.

    >>> default_folder({"XDG_CACHE_HOME": "/cache"}).as_posix()
    '/cache/evaltools/software-gpu'
    """
    return Path(environment.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "evaltools" / "software-gpu"


def installed_driver(folder: Path) -> Path | None:
    """The library that the manifest of a folder names, None where driver or Vulkan's loader are not there."""
    try:
        library = Path(json_values((folder / MANIFEST).read_bytes())["ICD"]["library_path"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return library if library.is_file() and find(folder, LOADER) is not None else None


def library_folders(folder: Path) -> list[Path]:
    """Where the packages have libraries that programs look for by name."""
    return sorted({file.parent for file in (folder / "root" / "usr" / "lib").glob("*-linux-gnu/*.so*")})


def find(folder: Path, pattern: str) -> Path | None:
    """The first file of that name among those that were unpacked."""
    return next(iter(sorted((folder / "root").rglob(pattern))), None)


def take_software_gpu(environment: MutableMapping[str, str]) -> None:
    """Let Vulkan find the installed driver in this process, where nothing else says which driver to use.

    What is found by name only while a process starts is loaded by its path beforehand. A library that cannot be loaded
    is left to those who explain why there is no adapter.
    """
    folder = default_folder(environment)
    driver, loader = installed_driver(folder), find(folder, LOADER)
    manifest = str(folder / MANIFEST)
    if sys.platform != "linux" or driver is None or loader is None:
        return
    if environment.get(VARIABLE) != manifest and has_drivers(environment):
        return
    environment[VARIABLE] = manifest
    libraries = {file.name: file for below in library_folders(folder) for file in below.glob("*.so*")}
    for library in (loader, driver):
        with suppress(OSError):
            _load(library, libraries)


def _load(library: Path, others: Mapping[str, Path]) -> None:
    """Load it after those that it needs and the machine does not have; a loaded library is found by its name."""
    while True:
        try:
            ctypes.CDLL(str(library))
            return
        except OSError as error:
            missing = _MISSING.match(str(error))
            if missing is None or missing[1] not in others:
                raise
            _load(others[missing[1]], others)
