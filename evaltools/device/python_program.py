"""Evaltools on a device that has Python: sent as wheels, and unpacked into a folder of its own."""

from __future__ import annotations

import hashlib
import importlib
import io
import posixpath
import re
import shlex
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.device.device import Device
from evaltools.device.errors import DeviceError
from evaltools.device.flags import DeviceFlags
from evaltools.device.part import PartWork, SentFiles
from evaltools.device.store import PROGRAMS
from evaltools.device.transfer import sha256_of
from evaltools.documents import json_values
from evaltools.errors import UsageError
from evaltools.task_kind import RequestKind

_CHECK_S: Final = 180.0
_UNPACK_S: Final = 600.0
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


class Pythons:
    """Evaltools on devices that have Python: the running one, with wheels of the packages that they lack.

    Making it raises :class:`UsageError` for wheels of which two are the same package.
    """

    def __init__(self, flags: DeviceFlags, console: Console) -> None:
        self._others_wheels = _one_of_each(flags.wheels, console)
        self._python = flags.python or "python3"
        self._programs: dict[str, PythonProgram] = {}

    def on(self, device: Device, kind: RequestKind) -> PythonProgram:
        """Evaltools on a device, with all modules that a command needs; it is sent and unpacked if necessary.

        Raises :class:`DeviceError` where Python or a package is missing, and :class:`DeviceError`.
        """
        known = self._programs.get(device.serial)
        if known is not None and known.folder in device.known:
            return known
        with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
            wheels = [write_own_package(Path(temporary)), *self._others_wheels]
            program = install(device, wheels, kind.command, kind.modules_on_devices, self._python)
        self._programs[device.serial] = program
        device.known.add(program.folder)
        if self._python != "python3":
            device.facts = replace(device.facts, python=program.version)
        return program


def _one_of_each(wheels: Iterable[Path], console: Console) -> tuple[Path, ...]:
    """The given wheels without those of evaltools, of which the host's version is sent.

    Raises :class:`UsageError` where two are of one package: all are unpacked into one folder.
    """
    found: dict[str, Path] = {}
    for wheel in wheels:
        name = re.sub(r"[-_.]+", "-", wheel.name.partition("-")[0]).lower()
        if name == _KNOWN_FOLDER:
            console.print(f"left aside: {wheel}: evaltools is sent to the devices as it is here")
        elif name in found:
            raise UsageError(
                f"--device_wheels: {found[name]} and {wheel} are both {name}, and one would be unpacked over the "
                "other; leave the one for the devices' processor and Python there, and delete the other"
            )
        else:
            found[name] = wheel
    return tuple(found.values())


def install(device: Device, wheels: Sequence[Path], command: str, modules: Sequence[str], python: str) -> PythonProgram:
    """Send wheels to a device, unpack them, and check that all modules of a command of evaltools can be imported there.

    The first of ``wheels`` is that of evaltools. Raises as :meth:`Pythons.on` does.
    """
    serial = device.serial
    together = hashlib.sha256("".join(sha256_of(wheel) for wheel in wheels).encode())
    folder = posixpath.join(device.flags.root, PROGRAMS, together.hexdigest()[:16])
    answer = device.shell(
        f"{shlex.quote(python)} --version || exit; ls -1 {shlex.quote(folder)} 2> /dev/null || true", _CHECK_S
    )
    found = _VERSION.match(answer.text) or _VERSION.match(answer.err.decode("utf-8", "replace"))
    if answer.code != 0 or found is None:
        raise DeviceError(
            f"{serial}: there is no Python: {python} --version failed{answer.quote()}; give TensorFlow's program for "
            "the device with --native_binary=PATH, or name a Python with --device_python=PATH",
            serial,
        )
    if (int(found[1]), int(found[2])) < OLDEST_PYTHON:
        raise DeviceError(
            f"{serial}: {python} is {found[0]}, evaltools needs {'.'.join(map(str, OLDEST_PYTHON))} or "
            "newer; name another with --device_python=PATH",
            serial,
        )
    program = PythonProgram(python, folder, found[0].removeprefix("Python "))
    if _KNOWN_FOLDER not in answer.text.splitlines()[1:]:
        _unpack(device, wheels, program)
    _check(device, program, command, modules)
    return program


def _unpack(device: Device, wheels: Sequence[Path], program: PythonProgram) -> None:
    """Unpack all wheels into one folder, all or none."""
    part, whole = shlex.quote(f"{program.folder}.part"), shlex.quote(program.folder)
    unpacking = " && ".join(
        f"{shlex.quote(program.python)} -m zipfile -e {shlex.quote(device.put(wheel))} {part}" for wheel in wheels
    )
    answer = device.shell(
        f"rm -rf {part}; mkdir -p {part} && {unpacking} && test -f {part}/{_KNOWN_FOLDER}/__init__.py && "
        f"mv {part} {whole} || {{ c=$?; rm -rf {part}; exit $c; }}",
        _UNPACK_S,
    )
    if answer.code != 0:
        raise DeviceError(
            f"{device.serial}: the wheels cannot be unpacked in {program.folder}{answer.quote()}; look at the space "
            "there, and whether its Python has the module zipfile",
            device.serial,
        )


def _check(device: Device, program: PythonProgram, command: str, modules: Sequence[str]) -> None:
    """Import the modules on the device."""
    serial, python = device.serial, program.python
    answer = device.shell(program.start(["--check", *modules]), _CHECK_S)
    if answer.code != 0:
        raise DeviceError(
            f"{serial}: evaltools {command} cannot be started with {python}{answer.quote()}; install what it needs "
            "there (numpy, pillow, tflite-runtime or ai-edge-litert ...), or give a folder of wheels for the device "
            "with --device_wheels",
            serial,
        )
    found = read_folder(answer.text)
    if found is None:
        raise DeviceError(
            f"{serial}: {python} ended well, but did not say where it imports evaltools from"
            f"{answer.quote()}; is it a Python? Give the path of another one with --device_python",
            serial,
        )
    if posixpath.dirname(found) != program.folder:
        raise DeviceError(
            f"{serial}: {python} imports evaltools from {found} and not from {program.folder}, which was "
            "put there for it; give the path of another interpreter with --device_python",
            serial,
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
