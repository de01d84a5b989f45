"""Install a GPU in software: a Vulkan driver from Debian packages, unpacked into a folder.

Nothing is installed on the machine and root is not needed: packages are downloaded from where this machine gets its
packages, as far as they are missing, and unpacked. It is Mesa's lavapipe (24 or newer, on older Debian releases from
their backports), which computes in fp16 and fp32.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

from evaltools.delegates.gpu import GPU
from evaltools.documents import json_values
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.inspection.debian_packages import (
    apt,
    backports,
    configured_repositories,
    is_here,
    last_output,
    make_folders,
    unpack_archives,
    write_sources,
)
from evaltools.runtime.compiled.gpu import LOADER, MANIFEST, VARIABLE, find, installed_driver, library_folders

_PACKAGE: Final = "mesa-vulkan-drivers"
_DRIVER_MANIFEST: Final = "lvp_icd*.json"
_LIBRARY: Final = "libvulkan_lvp.so"
_ENVIRONMENT: Final = "env.sh"
_OLDEST_MESA: Final = 24
_INSTEAD: Final = "install Mesa's lavapipe (24 or newer) with the packages of this machine"


def install(folder: Path) -> Path:
    """Unpack the driver into a folder, unless it is there; returns the file to be read by a shell.

    Raises :class:`UsageError` for what cannot be a folder, :class:`ConfigurationUnavailable` where packages cannot be
    had.
    """
    if any(character in str(folder) for character in ":;\n"):
        raise UsageError(f"{folder} cannot stand in a list of libraries' folders: name one without : and ;")
    if is_complete(folder):
        return folder / _ENVIRONMENT
    if not is_here():
        raise _unavailable(f"apt-get and dpkg, which only Debian and its like have, are needed; else {_INSTEAD}")
    try:
        unpack(folder)
        write_environment(folder)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        message = f"{folder} cannot be made a folder: {error.strerror} ({error.filename}); name another with --folder"
        raise UsageError(message) from error
    except (subprocess.CalledProcessError, OSError) as error:
        message = last_output(error).rpartition("\n")[2] or str(error)
        next_step = f"see that the network is there and that apt-get update works, then try again, or {_INSTEAD}"
        raise _unavailable(f"lavapipe cannot be had from Debian's packages ({message}); {next_step}") from error
    return folder / _ENVIRONMENT


def is_complete(folder: Path) -> bool:
    """Whether an earlier call has unpacked the driver, and into a folder of this very name."""
    environment = folder / _ENVIRONMENT
    is_there = installed_driver(folder) is not None and environment.is_file()
    return is_there and environment.read_text() == _environment_text(folder)


def unpack(folder: Path) -> None:
    """Download the driver, the Vulkan loader and what they need, and unpack them below ``root``."""
    make_folders(folder)
    (folder / "run").mkdir(exist_ok=True)
    repositories = configured_repositories()
    write_sources(folder, repositories)
    apt(folder, "update")
    release: list[str] = []
    if _is_too_old(folder):
        write_sources(folder, [*repositories, *backports(repositories)])
        apt(folder, "update")
        release = [f"--target-release={entry.suite}" for entry in backports(repositories)]
    options = ["--yes", "--download-only", "--no-install-recommends", "--reinstall", *release]
    apt(folder, "install", *options, _PACKAGE, "libvulkan1")
    unpack_archives(folder)
    for left in ("lists", "cache"):
        shutil.rmtree(folder / left)


def write_environment(folder: Path) -> None:
    """A manifest that names the library by its whole path, and ``env.sh``, which points at it."""
    manifest, library = find(folder, _DRIVER_MANIFEST), find(folder, _LIBRARY)
    if manifest is None or library is None or find(folder, LOADER) is None:
        raise FileNotFoundError(f"{_DRIVER_MANIFEST}, {_LIBRARY} or {LOADER} is not in the packages")
    description = json_values(manifest.read_text())
    description["ICD"]["library_path"] = str(library)
    (folder / MANIFEST).write_text(json.dumps(description))
    (folder / _ENVIRONMENT).write_text(_environment_text(folder))


def _environment_text(folder: Path) -> str:
    libraries = ":".join(map(str, library_folders(folder)))
    return (
        f"export {VARIABLE}={shlex.quote(str(folder / MANIFEST))}\n"
        f'export LD_LIBRARY_PATH={shlex.quote(libraries)}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\n'
        f'[ -n "${{XDG_RUNTIME_DIR:-}}" ] || export XDG_RUNTIME_DIR={shlex.quote(str(folder / "run"))}\n'
    )


def _is_too_old(folder: Path) -> bool:
    """Whether WebGPU does not accept what the release itself has."""
    shown = apt(folder, "show", _PACKAGE, tool="apt-cache")
    versions = [line.split(":", 1)[1].strip() for line in shown.splitlines() if line.startswith("Version:")]
    return not versions or int(versions[0].split(".")[0].split(":")[-1]) < _OLDEST_MESA


def _unavailable(reason: str) -> ConfigurationUnavailable:
    return ConfigurationUnavailable(f"no GPU in software can be installed here: {reason}", GPU.name)
