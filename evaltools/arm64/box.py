"""The folder with an ARM64 Python, and what starts it: as which core, and with which evaltools."""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.own_package import own_package, own_package_name
from evaltools.parameter import did_you_mean
from evaltools.runtime.session import EMULATOR_VARIABLE

INSTALL: Final = "evaltools doctor --install=arm64"
ANY_CORE: Final = "max"
"""QEMU's core with every feature that it knows."""
OLDEST_QEMU: Final = 10
"""Of the versions that were tried: 7.2 ends in a segmentation fault with LiteRT 2.2 and later, 10 runs all of them."""
_QEMU: Final = ("qemu-aarch64", "qemu-aarch64-static")
_VERSION: Final = re.compile(r"version ((\d+)\.[\d.]+)")
_CORE: Final = re.compile(r"^ +(cortex-a\S+|neoverse-\S+|a64fx|max)", re.MULTILINE)
FOLDER_VARIABLE: Final = "EVALTOOLS_ARM64_FOLDER"
_CORE_VARIABLE: Final = "EVALTOOLS_ARM64_CORE"
_OWN_VARIABLE: Final = "EVALTOOLS_ARM64_OWN"
_SECONDS: Final = 60.0
_SECONDS_UNTIL_OLD: Final = 86400.0
_LAUNCHER: Final = f"""\
#!/bin/sh
# Python for ARM64, as the core {_CORE_VARIABLE}, below QEMU.
here=$(cd "$(dirname "$0")" && pwd)
export EVALTOOLS_ARM64_PYTHON="$here/python"
export PYTHONPATH="${{{_OWN_VARIABLE}:+${_OWN_VARIABLE}:}}$here/site"
exec "$here/qemu" -cpu "${{{_CORE_VARIABLE}:-{ANY_CORE}}}" -L "$here/root" "$here/root/usr/bin/@PYTHON@" "$@"
"""
_SITE: Final = """\
import os
import sys

sys.executable = os.environ["EVALTOOLS_ARM64_PYTHON"]  # what starts a child: below QEMU, too
"""


class Qemu(Struct, frozen=True):
    """A program that runs ARM64 programs, and its version."""

    program: Path
    version: str

    @property
    def is_new_enough(self) -> bool:
        """Whether the runtimes work on it."""
        return int(self.version.split(".")[0]) >= OLDEST_QEMU


class Box(Struct, frozen=True):
    """An ARM64 Python in a folder, which is complete once the program ``python`` is there."""

    folder: Path

    @property
    def python(self) -> Path:
        """What is started in the place of Python."""
        return self.folder / "python"

    @property
    def is_complete(self) -> bool:
        """Whether it can be used."""
        return self.python.is_file()

    @property
    def qemu(self) -> Path:
        """The program that runs it, or a link to one that was here."""
        return self.folder / "qemu"

    def write_launcher(self, python: str) -> None:
        """Write what starts ``python``, a name in the root."""
        (self.folder / "site" / "sitecustomize.py").write_text(_SITE)
        self.python.write_text(_LAUNCHER.replace("@PYTHON@", python))
        self.python.chmod(0o755)

    def environment(self, core: str) -> dict[str, str]:
        """The variables of a process that runs as a core: this evaltools, and what says that it is emulated.

        Raises :class:`UsageError` where there is no box, or QEMU has no such core.
        """
        if not self.is_complete:
            raise UsageError(f"arm64: no ARM64 Python is installed here yet; {INSTALL} puts one into {self.folder}")
        qemu = qemu_of(self)
        cores = cores_of(qemu)
        if not cores:
            raise UsageError(f"arm64: {self.qemu} does not say which cores it has; {INSTALL} installs it anew")
        if core not in cores:
            known = ", ".join(cores)
            raise UsageError(f"arm64:{core}: QEMU {qemu.version} has {known}.{did_you_mean(core, cores)}")
        return {
            **os.environ,
            _CORE_VARIABLE: core,
            _OWN_VARIABLE: str(self._own()),
            EMULATOR_VARIABLE: f"QEMU {qemu.version}, {core}",
        }

    def _own(self) -> Path:
        """The running evaltools, unpacked; that of other versions is removed where it was not used for a day."""
        place = self.folder / "own" / own_package_name()
        if not place.is_dir():
            place.parent.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as scratch:
                draft = Path(scratch, "evaltools")
                with zipfile.ZipFile(io.BytesIO(own_package())) as archive:
                    archive.extractall(draft)
                with suppress(OSError):  # another process was faster
                    draft.rename(place)
        place.touch()
        for other in place.parent.iterdir():
            if time.time() - other.stat().st_mtime > _SECONDS_UNTIL_OLD:
                shutil.rmtree(other)
        return place


def users_box() -> Box:
    """The box of this user, which may not be there yet: in the cache, or where :data:`FOLDER_VARIABLE` says."""
    if stated := os.environ.get(FOLDER_VARIABLE):
        return Box(Path(stated).absolute())
    return Box(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "evaltools" / "arm64")


def is_arm64() -> bool:
    """Whether this machine is ARM64 itself."""
    return platform.machine().lower() in ("aarch64", "arm64")


def qemu_of(box: Box) -> Qemu:
    """The QEMU of a box; raises :class:`UsageError` where it is gone."""
    qemu = version_of(box.qemu)
    if qemu is None:
        raise UsageError(f"arm64: {box.qemu} does not run any more; {INSTALL} installs it anew")
    return qemu


def installed_qemu() -> list[Qemu]:
    """Each QEMU on the PATH that runs ARM64 programs."""
    programs = [Path(program) for name in _QEMU if (program := shutil.which(name))]
    return [qemu for program in programs if (qemu := version_of(program))]


def version_of(program: Path) -> Qemu | None:
    """A QEMU with its version, None for what is none."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except OSError:
        return None
    found = _VERSION.search(said.stdout)
    return Qemu(program, found[1]) if found else None


def cores_of(qemu: Qemu) -> list[str]:
    """The names of the ARM64 cores that a QEMU knows."""
    said = subprocess.run([qemu.program, "-cpu", "help"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    return _CORE.findall(said.stdout)
