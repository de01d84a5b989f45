"""Evaltools on a device that has Python: sent as wheels, and unpacked into a folder of its own."""

from __future__ import annotations

import hashlib
import importlib
import io
import posixpath
import re
import shlex
import zipfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.device.errors import ProgramMissing
from evaltools.device.part import PartWork, SentFiles
from evaltools.device.process import Answer
from evaltools.device.store import PROGRAMS, DeviceStore, sha256_of
from evaltools.documents import json_values

_CHECK_S: Final = 180.0
_UNPACK_S: Final = 600.0
_PREINSTALLED: Final = "python3"
_KNOWN_FOLDER: Final = "evaltools"
_PACKAGES: Final = ("evaltools", "evaltools.tasks", "evaltools.datasets")
OLDEST_PYTHON: Final = (3, 10)
_VERSION: Final = re.compile(r"Python (\d+)\.(\d+)\S*")


class PythonProgram(Struct, frozen=True):
    """How evaltools is started on a device: ``python`` is the interpreter, ``folder`` has the packages."""

    python: str
    folder: str
    version: str = ""

    def command(self, work: PartWork, sent: SentFiles, taskset: str) -> str:
        """Lay out the files, then carry out the request of the part."""
        words = ["--part"] if work.records_only else []
        for name in work.pictures:
            words += ["--pictures", name, sent.manifests[name], *sent.archives[name]]
        for name in work.folders:
            words += ["--folder", name, *sent.archives[name]]
        return self.start([*words, "--", sent.request], taskset)

    def start(self, words: Sequence[str], taskset: str = "") -> str:
        """The shell command that starts the program on the device.

        >>> PythonProgram("python3", "/p").start(["--", "r.json"], "f0")  # doctest: +ELLIPSIS
        'exec taskset f0 env PYTHONPATH=/p TMPDIR="$PWD" XDG_STATE_HOME="$PWD" python3 -m ...on_device -- r.json'
        """
        affinity = f"taskset {shlex.quote(taskset)} " if taskset else ""
        environment = f'env PYTHONPATH={shlex.quote(self.folder)} TMPDIR="$PWD" XDG_STATE_HOME="$PWD"'
        python = f"{shlex.quote(self.python)} -m evaltools.device.on_device"
        return f"exec {affinity}{environment} {python} {shlex.join(words)}"


class Needed(Struct, frozen=True):
    """What a device must be able to run: the ``command`` of evaltools, and the ``modules`` that it imports."""

    command: str
    modules: Sequence[str]


def install(store: DeviceStore, wheels: Sequence[Path], needed: Needed, python: str = "") -> PythonProgram:
    """Send wheels to a device, unpack them, and check that all modules of a command of evaltools can be imported there.

    The first of ``wheels`` is that of evaltools. ``python`` is the interpreter on the device; empty means ``python3``.
    Raises :class:`ProgramMissing` where Python or a package is missing, and :class:`DeviceError`.
    """
    interpreter = python or _PREINSTALLED
    folder = posixpath.join(store.root, PROGRAMS, _name_of(wheels))
    asked = f"{shlex.quote(interpreter)} --version || exit; ls -1 {shlex.quote(folder)} 2> /dev/null || true"
    answer = store.adb.shell(store.serial, asked, _CHECK_S, store.stop)
    found = _VERSION.match(answer.text) or _VERSION.match(answer.err.decode("utf-8", "replace"))
    if answer.code != 0 or found is None:
        raise ProgramMissing(
            f"{store.serial}: there is no Python: {interpreter} --version failed{answer.quote()}; name one with "
            "--device_python=PATH, or use --device_program=native",
            store.serial,
        )
    if (int(found[1]), int(found[2])) < OLDEST_PYTHON:
        raise ProgramMissing(
            f"{store.serial}: {interpreter} is {found[0]}, evaltools needs {'.'.join(map(str, OLDEST_PYTHON))} or "
            "newer; name another with --device_python=PATH",
            store.serial,
        )
    program = PythonProgram(interpreter, folder, found[0].removeprefix("Python "))
    if _KNOWN_FOLDER not in answer.text.splitlines()[1:]:
        _unpack(store, wheels, interpreter, folder)
    _check(store, program, needed)
    return program


def _check(store: DeviceStore, program: PythonProgram, needed: Needed) -> None:
    """Import the modules on the device."""
    answer = store.adb.shell(store.serial, program.start(["--check", *needed.modules]), _CHECK_S, store.stop)
    if answer.code != 0:
        raise ProgramMissing(_why_not(store.serial, program.python, needed.command, answer), store.serial)
    found = read_folder(answer.text)
    if found is None:
        raise ProgramMissing(
            f"{store.serial}: {program.python} ended well, but did not say where it imports evaltools from"
            f"{answer.quote()}; is it a Python? Give the path of another one with --device_python",
            store.serial,
        )
    if posixpath.dirname(found) != program.folder:
        raise ProgramMissing(
            f"{store.serial}: {program.python} imports evaltools from {found} and not from {program.folder}, which was "
            "put there for it; give the path of another interpreter with --device_python",
            store.serial,
        )


def read_folder(printed: str) -> str | None:
    r"""The folder that evaltools is imported from, in the last line that ``--check`` prints; None for other output.

    >>> read_folder('warning\n{"folder": "/p/evaltools"}\n')
    '/p/evaltools'
    >>> read_folder("hello") is None
    True
    """
    try:
        found = json_values(printed.strip().splitlines()[-1])["folder"]
    except (IndexError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def write_own_package(folder: Path) -> Path:
    """Write the running evaltools, however it was installed, to ``evaltools-VERSION.zip``.

    The same sources give the same bytes.
    """
    path = folder / f"evaltools-{version('evaltools')}.zip"
    path.write_bytes(own_package())
    return path


@cache
def own_package() -> bytes:
    """The content of that file, which is made once in a process."""
    own_version = version("evaltools")
    contents = dict(sorted(_package_files()))
    metadata = f"Metadata-Version: 2.1\nName: evaltools\nVersion: {own_version}\n"
    contents[f"evaltools-{own_version}.dist-info/METADATA"] = metadata.encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _package_files() -> Iterator[tuple[str, bytes]]:
    for package in _PACKAGES:
        for root in importlib.import_module(package).__path__:
            for file in Path(root).rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    yield f"{package.replace('.', '/')}/{file.relative_to(root).as_posix()}", file.read_bytes()


def _unpack(store: DeviceStore, wheels: Sequence[Path], python: str, folder: str) -> None:
    """Unpack all wheels into one folder, all or none."""
    part, whole = shlex.quote(f"{folder}.part"), shlex.quote(folder)
    unpacking = " && ".join(
        f"{shlex.quote(python)} -m zipfile -e {shlex.quote(store.put(wheel))} {part}" for wheel in wheels
    )
    answer = store.adb.shell(
        store.serial,
        f"rm -rf {part}; mkdir -p {part} && {unpacking} && test -f {part}/{_KNOWN_FOLDER}/__init__.py && "
        f"mv {part} {whole} || {{ c=$?; rm -rf {part}; exit $c; }}",
        _UNPACK_S,
        store.stop,
    )
    if answer.code != 0:
        raise ProgramMissing(
            f"{store.serial}: the wheels cannot be unpacked in {folder}{answer.quote()}; look at the space there, and "
            "whether its Python has the module zipfile",
            store.serial,
        )


def _name_of(wheels: Sequence[Path]) -> str:
    """A folder name that depends on the wheels, so that every version gets a folder of its own."""
    together = hashlib.sha256("".join(sha256_of(wheel) for wheel in wheels).encode())
    return together.hexdigest()[:16]


def _why_not(serial: str, python: str, command: str, answer: Answer) -> str:
    return (
        f"{serial}: evaltools {command} cannot be started with {python}{answer.quote()}; install what it needs there "
        "(numpy, pillow, tflite-runtime or ai-edge-litert ...), or give a folder of wheels for the device with "
        "--device_wheels"
    )
