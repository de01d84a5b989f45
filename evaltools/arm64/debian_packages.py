"""Download Debian packages into a folder and unpack them there: nothing is installed, and root is not needed.

Packages come from where this machine gets its own; apt's lists, archives and sources are files of ours in the folder,
and the machine's stay as they are.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from msgspec import Struct

KEYS: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_FOLDERS: Final = ("lists/partial", "cache/archives/partial", "root")
_LAST_OUTPUT: Final = 1000


class Repository(Struct, frozen=True):
    """Where packages come from.

    Attributes:
        address: as in a line of apt's sources
        suite: the release, e.g. the machine's own, its backports, or another
    """

    address: str
    suite: str


def is_here() -> bool:
    """Whether this machine has the tools that this needs."""
    return shutil.which("apt-get") is not None and shutil.which("dpkg") is not None


def make_folders(folder: Path) -> None:
    """Make the folders that apt and we need; raises :class:`OSError` where ``folder`` cannot be one."""
    for part in _FOLDERS:
        (folder / part).mkdir(parents=True, exist_ok=True)


def configured_repositories() -> list[Repository]:
    """Debian's own repositories on this machine; ``apt-get update`` must have been run once."""
    targets = run("apt-get", "indextargets", "--format", "$(ORIGIN)|$(REPO_URI)|$(RELEASE)", "Created-By: Packages")
    fields = [line.split("|") for line in dict.fromkeys(targets.splitlines())]
    found = [Repository(address, suite) for origin, address, suite in fields if origin == "Debian"]
    if not found:
        raise FileNotFoundError("apt knows no Debian repository; run apt-get update once")
    return found


def of_suite(repositories: list[Repository], suite: str) -> Repository:
    """Another release at the address of the machine's own.

    >>> of_suite([Repository("mirror/security", "one-security"), Repository("mirror", "one")], "two")
    Repository(address='mirror', suite='two')
    """
    for repository in repositories:
        if "-" not in repository.suite:
            return Repository(repository.address, suite)
    known = ", ".join(repository.suite for repository in repositories)
    raise FileNotFoundError(f"apt knows no repository of a whole Debian release, only {known}")


def backports(repositories: list[Repository]) -> list[Repository]:
    """The backports of the release, if a whole release is known."""
    own = [repository for repository in repositories if "-" not in repository.suite][:1]
    return [Repository(repository.address, f"{repository.suite}-backports") for repository in own]


def write_sources(folder: Path, repositories: list[Repository]) -> None:
    """A list of sources of our own; the machine's stays as it is."""
    key = f"[signed-by={KEYS}] " if KEYS.exists() else ""
    lines = [f"deb {key}{repository.address} {repository.suite} main" for repository in repositories]
    (folder / "sources.list").write_text("\n".join(lines) + "\n")


def apt(folder: Path, *arguments: str, tool: str = "apt-get", as_if_empty: bool = False, architecture: str = "") -> str:
    """What apt prints, run with lists and archives in our folder.

    Args:
        folder: holds :func:`make_folders`' folders and ``sources.list``
        arguments: of apt
        tool: apt's program
        as_if_empty: as on a machine where no package is installed: what a package needs counts as missing
        architecture: Debian's name of another machine's, such as arm64; empty: that of this machine
    """
    settings: dict[str, object] = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Debug::NoLocking": 1,
        "APT::Sandbox::User": "",
    }
    if as_if_empty:
        nothing = folder / "status"
        nothing.touch()
        settings["Dir::State::status"] = nothing
    if architecture:
        settings |= {"APT::Architecture": architecture, "APT::Architectures": architecture}
    options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
    return run(tool, "-q", *options, *arguments)


def download_and_unpack(
    folder: Path, repositories: list[Repository], *packages: str, architecture: str = "", leave_out: str = ""
) -> None:
    """Unpack packages with all that they need, but for the package ``leave_out``, below ``root``.

    Nothing that this machine has counts as there. ``architecture`` is as :func:`apt` takes it.
    """
    make_folders(folder)
    write_sources(folder, repositories)
    apt(folder, "update", architecture=architecture)
    options = ("--yes", "--download-only", "--no-install-recommends")
    apt(folder, "install", *options, *packages, as_if_empty=True, architecture=architecture)
    unpack_archives(folder, leave_out)
    for left in ("lists", "cache"):
        shutil.rmtree(folder / left)


def unpack_archives(folder: Path, leave_out: str = "") -> None:
    """Unpack what apt has downloaded below ``root``, without the package ``leave_out``, and remove the archives."""
    for archive in sorted((folder / "cache" / "archives").glob("*.deb")):
        if archive.name.split("_")[0] != leave_out:
            run("dpkg", "-x", str(archive), str(folder / "root"))
        archive.unlink()


def run(*command: str) -> str:
    """What a command prints; raises :class:`subprocess.CalledProcessError` where it fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def last_output(error: Exception) -> str:
    """The end of what a failed command said, empty for other errors."""
    return str(getattr(error, "stderr", "") or "").strip()[-_LAST_OUTPUT:]
