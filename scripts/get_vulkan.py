"""Unpack a GPU in software, Mesa's lavapipe, from Debian packages into a folder, for tests on the GPU.

``python scripts/get_vulkan.py [FOLDER]``, then ``. FOLDER/env.sh``

Nothing is installed and root is not needed: packages are downloaded from where this machine gets its packages, or from
the backports of its release where its Mesa is older than 24, and unpacked.

Exit codes: 0 done, 1 a package cannot be had, 2 wrong arguments.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from evaltools.arm64.debian_packages import (
    apt,
    backports,
    configured_repositories,
    is_here,
    last_output,
    make_folders,
    unpack_archives,
    write_sources,
)

DEFAULT_FOLDER: Final = ".vulkan"
_PACKAGE: Final = "mesa-vulkan-drivers"
_OLDEST_MESA: Final = 24
"""WebGPU takes none before."""


def main(arguments: list[str]) -> int:
    """Do it."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print("usage: get_vulkan.py [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(arguments[0] if arguments else DEFAULT_FOLDER).absolute()
    if any(character in str(folder) for character in ":;\n"):
        print(f"{folder} cannot stand in a list of libraries' folders: name one without : and ;", file=sys.stderr)
        return 2
    environment = folder / "env.sh"
    if not environment.is_file():
        if not is_here():
            print("apt-get and dpkg are needed", file=sys.stderr)
            return 1
        try:
            unpack(folder)
            environment.write_text(environment_of(folder))
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"lavapipe cannot be had here: {error}\n{last_output(error)}", file=sys.stderr)
            return 1
    print(f"lavapipe is in {folder}; before the tests: . {shlex.quote(str(environment))}")
    return 0


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


def environment_of(folder: Path) -> str:
    """What ``env.sh`` holds; writes the manifest that names the driver by its whole path."""
    root = folder / "root"
    manifest, library = (next(iter(sorted(root.rglob(name))), None) for name in ("lvp_icd*.json", "libvulkan_lvp.so"))
    if manifest is None or library is None:
        raise FileNotFoundError("the driver is not in the packages")
    description = json.loads(manifest.read_text())
    description["ICD"]["library_path"] = str(library)
    (folder / "icd.json").write_text(json.dumps(description))
    libraries = ":".join(sorted({str(file.parent) for file in (root / "usr" / "lib").glob("*-linux-gnu/*.so*")}))
    return (
        f"export VK_DRIVER_FILES={shlex.quote(str(folder / 'icd.json'))}\n"
        f'export LD_LIBRARY_PATH={shlex.quote(libraries)}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\n'
        f'[ -n "${{XDG_RUNTIME_DIR:-}}" ] || export XDG_RUNTIME_DIR={shlex.quote(str(folder / "run"))}\n'
    )


def _is_too_old(folder: Path) -> bool:
    shown = apt(folder, "show", _PACKAGE, tool="apt-cache")
    versions = [line.split(":", 1)[1].strip() for line in shown.splitlines() if line.startswith("Version:")]
    return not versions or int(versions[0].split(".")[0].split(":")[-1]) < _OLDEST_MESA


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
