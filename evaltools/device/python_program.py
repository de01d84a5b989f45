"""Evaltools on a device that has Python: sent as wheels, and unpacked into a folder of its own."""

from __future__ import annotations

import hashlib
import importlib
import io
import posixpath
import re
import shlex
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.command import Command
from evaltools.device.adb import last_lines
from evaltools.device.device import Device, WorkDone
from evaltools.device.errors import CommandFailed, DeviceError
from evaltools.device.request import SentFiles
from evaltools.device.store import PROGRAMS
from evaltools.device.transfer import sha256_of
from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK, USAGE
from evaltools.request import Request
from evaltools.runs.stored import to_bytes

_CHECK_S: Final = 180.0
_UNPACK_S: Final = 600.0
_PACKAGES: Final = ("evaltools", "evaltools.tasks", "evaltools.datasets")
OLDEST_PYTHON: Final = (3, 10)
_PROGRESS: Final = '{"phase"'
"""How lines about progress begin."""
_WITH_RECORDS: Final = (OK, NOT_MEASURED, EXAMPLES_FAILED)
"""The exit codes of a command that leaves records."""
_VERSION: Final = re.compile(r"Python (\d+)\.(\d+)\S*")


def carry_out_on(
    device: Device,
    asked: Command,
    request: Request,
    sent: SentFiles,
    file: str,
    folder: Path,
    on_line: Callable[[bytes], None],
    pictures_of: Callable[[str], Sequence[Path]] = lambda _option: (),
    before: str = "",
) -> WorkDone:
    """Have evaltools on a device carry out a request; the ``file`` that it writes is fetched into ``folder``.

    ``sent`` are the files of the request, ``pictures_of`` those of an option that are needed. ``before`` is a command
    for the shell, ``on_line`` gets the lines of stderr. Raises :class:`DeviceError` where it did not leave it.
    """
    serial, start = device.serial, python_on(device, asked)

    def prepare() -> str:
        return f"{before}exec {start} {sent.put(device, to_bytes(request), pictures_of)}"

    done = device.do(prepare, (file,), folder, on_line)
    quoted = last_lines(done.err, leave_out=_PROGRESS)
    if done.code == USAGE:
        raise DeviceError(f"{serial}: evaltools refused the command there: {quoted}", serial)
    if done.code not in _WITH_RECORDS or not (folder / file).is_file():
        device.python = ""  # a package may be gone
        raise CommandFailed(
            f"{serial}: evaltools ended there with exit code {done.code} and no records; it printed last: {quoted}",
            serial,
        )
    return done


def python_on(device: Device, asked: Command) -> str:
    """The command by which evaltools is started on a device that has Python, with all modules that ``asked`` needs.

    It is the running one, with wheels of the packages that the device lacks; both are sent and unpacked if necessary.
    Raises :class:`DeviceError`, also where Python or a package is missing.
    """
    if device.python:
        return device.python
    serial, python = device.serial, device.flags.python or "python3"
    wheels = device.flags.wheels
    together = hashlib.sha256(own_package())
    for wheel in wheels:
        together.update(sha256_of(wheel).encode())
    folder = posixpath.join(device.flags.root, PROGRAMS, together.hexdigest()[:16])
    answer = device.shell(f"{shlex.quote(python)} --version && ls -d {shlex.quote(folder)} || true", _CHECK_S)
    found = _VERSION.match(answer.text)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_PYTHON:
        raise DeviceError(
            f"{serial}: {python} is {found[0] if found else f'not there{answer.quote()}'}, evaltools needs Python "
            f"{'.'.join(map(str, OLDEST_PYTHON))} or newer; give TensorFlow's program for the device with "
            "--native_binary=PATH, or name a Python with --device_python=PATH",
            serial,
        )
    if folder not in answer.text.splitlines():
        packages = [device.put_content("evaltools.zip", own_package()), *map(device.put, wheels)]
        _unpack(device, packages, python, folder)
    start = f"{device.affinity}{start_command(python, folder)}"
    answer = device.shell(f"exec {start} --check {shlex.join(asked.modules_on_devices)}", _CHECK_S)
    if answer.code != 0:
        raise DeviceError(
            f"{serial}: evaltools {asked.words} cannot be started with {python}{answer.quote()}; install what it "
            "needs there (numpy, pillow, tflite-runtime or ai-edge-litert ...), or give a folder of wheels for the "
            "device with --device_wheels",
            serial,
        )
    device.facts = replace(device.facts, python=found[0].removeprefix("Python "))
    device.python = start
    return start


def start_command(python: str, folder: str) -> str:
    """The shell command, without arguments, that starts evaltools from the ``folder`` of its packages.

    >>> start_command("python3", "/p")
    'env PYTHONPATH=/p TMPDIR="$PWD" XDG_STATE_HOME="$PWD" python3 -m evaltools.device.on_device'
    """
    environment = f'env PYTHONPATH={shlex.quote(folder)} TMPDIR="$PWD" XDG_STATE_HOME="$PWD"'
    return f"{environment} {shlex.quote(python)} -m evaltools.device.on_device"


def _unpack(device: Device, packages: Sequence[str], python: str, folder: str) -> None:
    """Unpack all packages, which are on the device, into one folder, all or none."""
    part, whole = shlex.quote(f"{folder}.part"), shlex.quote(folder)
    unpacking = " && ".join(f"{shlex.quote(python)} -m zipfile -e {shlex.quote(each)} {part}" for each in packages)
    answer = device.shell(
        f"rm -rf {part}; mkdir -p {part} && {unpacking} && mv {part} {whole} || {{ c=$?; rm -rf {part}; exit $c; }}",
        _UNPACK_S,
    )
    if answer.code != 0:
        raise DeviceError(
            f"{device.serial}: the wheels cannot be unpacked in {folder}{answer.quote()}; look at the space "
            "there, and whether its Python has the module zipfile",
            device.serial,
        )


@cache
def own_package() -> bytes:
    """The running evaltools, however it was installed, as a zip of its packages; the same sources give the same."""
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
