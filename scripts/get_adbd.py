"""Unpack the real adb client and the real adb daemon from Debian packages into a folder, for tests of devices.

``python scripts/get_adbd.py [FOLDER]``, then ``. FOLDER/env.sh``

Nothing is installed and root is not needed: packages are downloaded from where this machine gets its packages and
unpacked; the client is this machine's release's own, the daemon another release's, with its own libraries and loader.
The daemon asks nobody who they are and gives a shell: run it only in a network namespace, as tests/device does.

Exit codes: 0 done, 1 a package cannot be had, 2 wrong arguments.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from evaltools.arm64.debian_packages import (
    configured_repositories,
    download_and_unpack,
    is_here,
    last_output,
    of_suite,
    run,
)

DEFAULT_FOLDER: Final = ".adbd"
DAEMON_SUITE: Final = "trixie"
"""The first Debian release whose adbd runs on a machine that is no phone."""
PROGRAMS: Final = "usr/lib/android-sdk/platform-tools"


def main(arguments: list[str]) -> int:
    """Do it."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print("usage: get_adbd.py [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(arguments[0] if arguments else DEFAULT_FOLDER).absolute()
    if any(character in str(folder) for character in ":;\n"):
        print(f"{folder} cannot stand in a list of libraries' folders: name one without : and ;", file=sys.stderr)
        return 2
    there = is_complete(folder)
    if not there and not is_here():
        instead = "elsewhere set EVALTOOLS_ADB and EVALTOOLS_ADBD to programs had by other means"
        print(f"apt-get and dpkg are needed; {instead}", file=sys.stderr)
        return 1
    try:
        if not there:
            unpack(folder)
            write_environment(folder)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        print(f"{folder} cannot be made a folder: {error.strerror} ({error.filename}); name another", file=sys.stderr)
        return 2
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"adb or adbd cannot be had here: {error}\n{last_output(error)}", file=sys.stderr)
        return 1
    shown = shlex.quote(str(folder / "env.sh"))
    print(f"adb and adbd are {'already ' if there else ''}in {folder}; before the tests: . {shown}")
    return 0


def is_complete(folder: Path) -> bool:
    """Whether an earlier call has unpacked everything, and into a folder of this very name."""
    environment = folder / "env.sh"
    if not environment.is_file() or environment.read_text() != environment_text(folder):
        return False
    return all((folder / "bin" / name).is_file() for name in ("adb", "adbd"))


def unpack(folder: Path) -> None:
    """Download client and daemon with what they need, and unpack them below ``client/root`` and ``daemon/root``."""
    repositories = configured_repositories()
    # The client starts itself once more as a server, which fails below a loader of our own: it takes this machine's.
    download_and_unpack(folder / "client", repositories, "adb", leave_out="libc6")
    download_and_unpack(folder / "daemon", [of_suite(repositories, DAEMON_SUITE)], "adbd")


def write_environment(folder: Path) -> None:
    """Programs that run client and daemon with their libraries, tried once, and ``env.sh``, which points at them."""
    client, daemon = folder / "client" / "root", folder / "daemon" / "root"
    loader = next(iter(sorted(daemon.glob("usr/lib/*-linux-gnu*/ld-linux*.so.*"))), None)
    adb, adbd = client / PROGRAMS / "adb", daemon / PROGRAMS / "adbd"
    if loader is None or not adb.is_file() or not adbd.is_file():
        raise FileNotFoundError("adb, adbd or its ld-linux*.so is not in the packages")
    with_loader = f"{shlex.quote(str(loader))} --library-path {shlex.quote(library_path(daemon))}"
    binaries = folder / "bin"
    binaries.mkdir(exist_ok=True)
    programs = {
        "adb": f"LD_LIBRARY_PATH={shlex.quote(library_path(client))} exec {shlex.quote(str(adb))}",
        "adbd": f"exec {with_loader} {shlex.quote(str(adbd))}",
    }
    for name, command in programs.items():
        (binaries / name).write_text(f'#!/bin/sh\n{command} "$@"\n')
        (binaries / name).chmod(0o755)
    run(str(binaries / "adb"), "version")
    run(str(loader), "--library-path", library_path(daemon), "--list", str(adbd))
    (folder / "env.sh").write_text(environment_text(folder))


def environment_text(folder: Path) -> str:
    """What ``env.sh`` holds."""
    names = {"EVALTOOLS_ADB": "adb", "EVALTOOLS_ADBD": "adbd"}
    return "".join(f"export {variable}={shlex.quote(str(folder / 'bin' / name))}\n" for variable, name in names.items())


def library_path(root: Path) -> str:
    """The folders of libraries below ``root``, Android's own first."""
    plain = [*sorted(root.glob("usr/lib/*-linux-gnu*")), *sorted(root.glob("lib/*-linux-gnu*"))]
    return ":".join(str(path) for path in [*(path / "android" for path in plain), *plain] if path.is_dir())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
