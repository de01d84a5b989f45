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
import shutil
import subprocess
import sys
from pathlib import Path

DRIVERS = {
    "lavapipe": ("mesa-vulkan-drivers", "lvp_icd*.json", "libvulkan_lvp.so"),
    "swiftshader": ("chromium-common", "vk_swiftshader_icd.json", "libvk_swiftshader.so"),
}
OLDEST_MESA = "24"
DEFAULT_FOLDER = ".vulkan"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def main(arguments: list[str]) -> int:
    """Do it."""
    folder = Path(arguments[0] if arguments else DEFAULT_FOLDER).absolute()
    driver = arguments[1] if len(arguments) > 1 else "lavapipe"
    if driver not in DRIVERS or len(arguments) > 2 or any(argument.startswith("-") for argument in arguments):
        print(f"usage: get_software_vulkan.py [FOLDER] [{'|'.join(DRIVERS)}]", file=sys.stderr)
        return 2
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        print("apt-get and dpkg are needed; elsewhere install Mesa's lavapipe by other means", file=sys.stderr)
        return 1
    try:
        unpack(folder, driver)
        write_environment(folder, driver)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        print(f"{folder} cannot be made a folder: {error.strerror} ({error.filename}); name another", file=sys.stderr)
        return 2
    except (subprocess.CalledProcessError, OSError) as error:
        output = getattr(error, "stderr", "") or ""
        print(f"{driver} cannot be had here: {error}\n{output.strip()[-1000:]}", file=sys.stderr)
        return 1
    print(f"{driver} is in {folder}; before evaltools: . {shlex.quote(str(folder / 'env.sh'))}")
    return 0


def unpack(folder: Path, driver: str) -> None:
    """Download the driver, the Vulkan loader and what they need, and unpack them below ``root``."""
    package = DRIVERS[driver][0]
    for part in ("lists/partial", "cache/archives/partial", "root", "run"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    repositories = configured_repositories()
    write_sources(folder, repositories)
    apt(folder, "update")
    release: list[str] = []
    if driver == "lavapipe" and is_too_old(folder, package):
        write_sources(folder, [*repositories, *backports(repositories)])
        apt(folder, "update")
        release = ["--target-release", backports(repositories)[0][1]]
    options = ["--yes", "--download-only", "--no-install-recommends", "--reinstall", *release]
    if driver == "lavapipe":
        apt(folder, "install", *options, package, "libvulkan1")
    else:  # alone: of all that it depends on, the driver needs nothing
        for name in (package, "libvulkan1"):
            apt(folder, "download", name, where=folder / "cache" / "archives")
    for archive in sorted((folder / "cache" / "archives").glob("*.deb")):
        run("dpkg", "-x", str(archive), str(folder / "root"))
        archive.unlink()


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


def configured_repositories() -> list[tuple[str, str]]:
    """Address and suite of Debian's own repositories on this machine; ``apt-get update`` must have been run once."""
    targets = run("apt-get", "indextargets", "--format", "$(ORIGIN)|$(REPO_URI)|$(RELEASE)", "Created-By: Packages")
    fields = [line.split("|") for line in dict.fromkeys(targets.splitlines())]
    found = [(address, suite) for origin, address, suite in fields if origin == "Debian"]
    if not found:
        raise FileNotFoundError("apt knows no Debian repository; run apt-get update once")
    return found


def backports(repositories: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The backports of the release."""
    return [(address, f"{suite}-backports") for address, suite in repositories if "-" not in suite][:1]


def write_sources(folder: Path, repositories: list[tuple[str, str]]) -> None:
    """A list of sources of our own; the machine's stays as it is."""
    key = f"[signed-by={KEYS}] " if KEYS.exists() else ""
    lines = [f"deb {key}{address} {suite} main" for address, suite in repositories]
    (folder / "sources.list").write_text("\n".join(lines) + "\n")


def is_too_old(folder: Path, package: str) -> bool:
    """Whether WebGPU does not accept what the release itself has."""
    shown = apt(folder, "show", package, tool="apt-cache")
    versions = [line.split(":", 1)[1].strip() for line in shown.splitlines() if line.startswith("Version:")]
    return not versions or int(versions[0].split(".")[0].split(":")[-1]) < int(OLDEST_MESA)


def apt(folder: Path, *arguments: str, tool: str = "apt-get", where: Path | None = None) -> str:
    """Run apt with lists and archives in our folder."""
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Debug::NoLocking": 1,
        "APT::Sandbox::User": "",
    }
    options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
    return run(tool, "-q", *options, *arguments, where=where)


def run(*command: str, where: Path | None = None) -> str:
    """What a command prints; raises :class:`subprocess.CalledProcessError` where it fails."""
    return subprocess.run(command, cwd=where, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
