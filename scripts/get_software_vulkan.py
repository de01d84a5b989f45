"""Unpack a software Vulkan driver from Debian packages into a folder, so that the GPU accelerator runs without a GPU.

``python scripts/get_software_vulkan.py [FOLDER] [lavapipe|swiftshader]``, then ``. FOLDER/env.sh``

Nothing is installed and root is not needed: packages are downloaded from where this machine gets its packages, as far
as they are missing, and unpacked. lavapipe (Mesa 24 or newer, on older Debian releases from their backports) computes
in fp16 and fp32; swiftshader (from chromium-common) in fp32 only.

Exit codes: 0 done, 1 a package cannot be had, 2 wrong arguments.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

from debian_packages import (
    apt,
    backports,
    configured_repositories,
    is_here,
    last_output,
    make_folders,
    unpack_archives,
    write_sources,
)

DRIVERS = {
    "lavapipe": ("mesa-vulkan-drivers", "lvp_icd*.json", "libvulkan_lvp.so"),
    "swiftshader": ("chromium-common", "vk_swiftshader_icd.json", "libvk_swiftshader.so"),
}
OLDEST_MESA = "24"
DEFAULT_FOLDER = ".vulkan"


def main(arguments: list[str]) -> int:
    """Do it."""
    folder = Path(arguments[0] if arguments else DEFAULT_FOLDER).absolute()
    driver = arguments[1] if len(arguments) > 1 else "lavapipe"
    if driver not in DRIVERS or len(arguments) > 2 or any(argument.startswith("-") for argument in arguments):
        print(f"usage: get_software_vulkan.py [FOLDER] [{'|'.join(DRIVERS)}]", file=sys.stderr)
        return 2
    if not is_here():
        print("apt-get and dpkg are needed; elsewhere install Mesa's lavapipe by other means", file=sys.stderr)
        return 1
    try:
        unpack(folder, driver)
        write_environment(folder, driver)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        print(f"{folder} cannot be made a folder: {error.strerror} ({error.filename}); name another", file=sys.stderr)
        return 2
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"{driver} cannot be had here: {error}\n{last_output(error)}", file=sys.stderr)
        return 1
    print(f"{driver} is in {folder}; before evaltools: . {shlex.quote(str(folder / 'env.sh'))}")
    return 0


def unpack(folder: Path, driver: str) -> None:
    """Download the driver, the Vulkan loader and what they need, and unpack them below ``root``."""
    package = DRIVERS[driver][0]
    make_folders(folder)
    (folder / "run").mkdir(exist_ok=True)
    repositories = configured_repositories()
    write_sources(folder, repositories)
    apt(folder, "update")
    release: list[str] = []
    if driver == "lavapipe" and is_too_old(folder, package):
        write_sources(folder, [*repositories, *backports(repositories)])
        apt(folder, "update")
        release = ["--target-release", backports(repositories)[0].suite]
    options = ["--yes", "--download-only", "--no-install-recommends", "--reinstall", *release]
    if driver == "lavapipe":
        apt(folder, "install", *options, package, "libvulkan1")
    else:  # alone: of all that it depends on, the driver needs nothing
        for name in (package, "libvulkan1"):
            apt(folder, "download", name, where=folder / "cache" / "archives")
    unpack_archives(folder)


def write_environment(folder: Path, driver: str) -> None:
    """A driver file that names the library by its whole path, and ``env.sh``, which points at it."""
    _, manifest, library = DRIVERS[driver]
    found = next(iter(sorted((folder / "root").rglob(manifest))), None)
    path = next(iter(sorted((folder / "root").rglob(library))), None)
    loader = next(iter(sorted((folder / "root").rglob("libvulkan.so.1"))), None)
    if found is None or path is None or loader is None:
        raise FileNotFoundError(f"{manifest}, {library} or libvulkan.so.1 is not in the packages")
    description = json.loads(found.read_text())
    description["ICD"]["library_path"] = str(path)
    icd = folder / "icd.json"
    icd.write_text(json.dumps(description))
    libraries = sorted({str(file.parent) for file in (folder / "root" / "usr" / "lib").glob("*-linux-gnu/*.so*")})
    (folder / "env.sh").write_text(
        f"export VK_DRIVER_FILES={shlex.quote(str(icd))}\n"
        f'export LD_LIBRARY_PATH={shlex.quote(":".join(libraries))}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\n'
        f'[ -n "${{XDG_RUNTIME_DIR:-}}" ] || export XDG_RUNTIME_DIR={shlex.quote(str(folder / "run"))}\n'
    )


def is_too_old(folder: Path, package: str) -> bool:
    """Whether WebGPU does not accept what the release itself has."""
    shown = apt(folder, "show", package, tool="apt-cache")
    versions = [line.split(":", 1)[1].strip() for line in shown.splitlines() if line.startswith("Version:")]
    return not versions or int(versions[0].split(".")[0].split(":")[-1]) < int(OLDEST_MESA)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
