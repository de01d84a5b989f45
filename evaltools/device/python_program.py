"""Evaltools on a device that has Python: sent as wheels, and started with a request whose files have other names."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.adb.client import Answer, CommandFailed, DeviceError
from evaltools.adb.store import PROGRAMS, names_in, remote_path, stored_files, stored_folder
from evaltools.adb.transfer import sha256_of
from evaltools.command import Command
from evaltools.device.device import Device
from evaltools.errors import DataError, UsageError
from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK, USAGE
from evaltools.own_package import own_package
from evaltools.parameter import Parameter
from evaltools.request import Request
from evaltools.result.device import DeviceWork
from evaltools.result.host_names import HostNames
from evaltools.runs.handing_over import to_bytes
from evaltools.runs.identity import files_below
from evaltools.runs.stored import rewritten
from evaltools.tasks.framework.loading import files_beside
from evaltools.tasks.inference_diff.result import loaded_from
from evaltools.text import last_lines

_PICTURES: Final = "evaltools-pictures-"
_FOLDER: Final = "evaltools-folder-"
"""What names of folders on devices begin with, so that no other word in what a device prints is one of them."""


class SentFiles(Struct):
    """The files that a request names, collected by :meth:`take` while the request is rewritten for devices.

    ``files`` are single files with their paths below ``root`` on a device. ``pictures`` are folders of which only what
    ``pictures_of`` gives is sent, by option; ``folders`` are sent whole, by their names on a device. ``beside`` are
    files that must lie in the same folder as the file of the task. ``libraries`` is a folder that devices have anyway.
    """

    root: str
    beside: Sequence[Path] = ()
    libraries: Path | None = None
    pictures_of: Callable[[str], Sequence[Path]] = lambda _option: ()
    files: dict[Path, str] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)

    def take(self, parameter: Parameter | None, path: Path) -> str:
        """Collect the file or folder that a parameter names; returns its name on the device.

        ``parameter`` is None for the file that the task itself is in.
        """
        if parameter is None:
            if self.beside:
                self.files |= stored_files(self.root, path.parent, {path, *self.beside})[1]
            return self.take_file(path)
        if not parameter.is_sent or parameter.role == "machine_path":
            is_sent = self.libraries is not None and os.path.abspath(path) == os.path.abspath(self.libraries)
            return stored_folder(self.root, path)[0] if is_sent else str(path)
        if parameter.role == "pictures":
            self.pictures[parameter.name] = path
            return f"{_PICTURES}{parameter.name}"
        if parameter.role in ("library", "settings_file") and not path.is_file():
            if not posixpath.isabs(path):
                raise DataError(
                    f"--{parameter.name}={path}: there is no such file here, and it is not an absolute path on the "
                    "device"
                )
            return str(path)
        if parameter.role == "input_folder" or path.is_dir():
            return self._take_folder(path)
        return self.take_file(path)

    def take_file(self, path: Path) -> str:
        """Collect one file; returns its path on the device."""
        if path not in self.files:
            self.files[path] = remote_path(self.root, path)
        return self.files[path]

    def _take_folder(self, path: Path) -> str:
        name = next((name for name, known in self.folders.items() if known == path), f"{_FOLDER}{len(self.folders)}")
        self.folders[name] = path
        return name

    def put(self, device: Device, request: bytes) -> str:
        """Send all of it and the request; returns the arguments of :mod:`evaltools.device.on_device`."""
        device.put_all(self.files)
        words: list[str] = []
        for option, folder in self.pictures.items():
            names = device.put_content("names.json", names_in(folder))
            words += ["--folder", f"{_PICTURES}{option}", names, *device.put_folder(folder, self.pictures_of(option))]
        for name, folder in self.folders.items():
            words += ["--folder", name, *device.put_folder(folder, files_below([folder]))]
        return shlex.join([*words, "--", device.put_content("request.json", request)])

    def host_names(self, reference: str = "") -> HostNames:
        """The names that files and folders of devices have on the host; see :class:`HostNames`.

        ``reference`` is what to say of outputs that the host saved for devices, empty where it saved none.
        """
        files = {on_device: str(on_host) for on_host, on_device in self.files.items()}
        pictures = {f"{_PICTURES}{option}": str(on_host) for option, on_host in self.pictures.items()}
        folders = {on_device: str(on_host) for on_device, on_host in self.folders.items()}
        saved = {loaded_from(folder): reference for each in folders.items() for folder in each} if reference else {}
        return HostNames(files | pictures | folders | saved)


def device_request(
    request: Request, root: str, libraries: Path | None, pictures_of: Callable[[str], Sequence[Path]] = lambda _: ()
) -> tuple[Request, SentFiles]:
    """The request with the names that files have on devices, and the files to send for it.

    ``root`` is the folder for evaltools on devices, ``libraries`` that of --device_libraries; ``pictures_of`` gives the
    pictures of an option that are needed.

    Raises :class:`DataError` for files that are missing, :class:`UsageError` for configurations that only other
    packages on the host know.
    """
    for configuration in request.configurations:
        others = ", ".join(configuration.flags_from_outside)
        if others:
            raise UsageError(
                f"configuration {configuration.name!r}: {others} comes from another package, which is not on devices; "
                "use a delegate library that is built for them: --external_delegate_path"
            )
    sent = SentFiles(root, files_beside(request.task), libraries, pictures_of)
    return rewritten(replace(request, devices=None), sent.take, Path()), sent


_CHECK_S: Final = 180.0
_UNPACK_S: Final = 600.0
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
    before: str = "",
) -> tuple[DeviceWork, Answer]:
    """Have evaltools on a device carry out a request; the ``file`` that it writes is fetched into ``folder``.

    ``sent`` are the files of the request. ``before`` is a command for the shell, ``on_line`` gets the lines of stderr.
    Raises :class:`DeviceError` where it did not leave it.
    """
    serial, start = device.serial, python_on(device, asked)

    def prepare() -> str:
        return f"{before}exec {start} {sent.put(device, to_bytes(request))}"

    work, answer = device.do(prepare, (file,), folder, on_line)
    quoted = last_lines(answer.complaints, leave_out=_PROGRESS)
    if answer.code == USAGE:
        raise DeviceError(f"{serial}: evaltools refused the command there: {quoted}")
    if answer.code not in _WITH_RECORDS or not (folder / file).is_file():
        device.python = ""  # a package may be gone
        raise CommandFailed(
            f"{serial}: evaltools ended there with exit code {answer.code} and no records; it printed last: {quoted}"
        )
    return work, answer


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
    answer = device.link.shell(f"{shlex.quote(python)} --version && ls -d {shlex.quote(folder)} || true", _CHECK_S)
    found = _VERSION.match(answer.text)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_PYTHON:
        raise DeviceError(
            f"{serial}: {python} is {found[0] if found else f'not there{answer.quote()}'}, evaltools needs Python "
            f"{'.'.join(map(str, OLDEST_PYTHON))} or newer; give TensorFlow's program for the device with "
            "--native_binary=PATH, or name a Python with --device_python=PATH"
        )
    if folder not in answer.text.splitlines():
        packages = [device.put_content("evaltools.zip", own_package()), *map(device.put, wheels)]
        _unpack(device, packages, python, folder)
    start = f"{device.affinity}{start_command(python, folder)}"
    answer = device.link.shell(f"exec {start} --check {shlex.join(asked.modules_on_devices)}", _CHECK_S)
    if answer.code != 0:
        raise DeviceError(
            f"{serial}: evaltools {asked.words} cannot be started with {python}{answer.quote()}; install what it "
            "needs there (numpy, pillow, tflite-runtime or ai-edge-litert ...), or give a folder of wheels for the "
            "device with --device_wheels"
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
    answer = device.link.shell(
        f"rm -rf {part}; mkdir -p {part} && {unpacking} && mv {part} {whole} || {{ c=$?; rm -rf {part}; exit $c; }}",
        _UNPACK_S,
    )
    if answer.code != 0:
        raise DeviceError(
            f"{device.serial}: the wheels cannot be unpacked in {folder}{answer.quote()}; look at the space "
            "there, and whether its Python has the module zipfile"
        )
