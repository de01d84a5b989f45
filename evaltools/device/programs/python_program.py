"""evaltools itself on a device that has Python: put there as wheels, unpacked in a folder of its own."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import shlex
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaltools.device.adb.answer import Answer
from evaltools.device.adb.errors import CommandFailed, ProgramMissing
from evaltools.device.files.store import PROGRAMS, DeviceStore, sha256_of
from evaltools.device.programs.part import PartWork, SentFiles

_CHECK_S: Final = 180.0
_UNPACK_S: Final = 600.0
_PREINSTALLED: Final = "python3"
_KNOWN_FILE: Final = "evaltools/__init__.py"
OLDEST_PYTHON: Final = (3, 10)
_NOT_WHOLE: Final = 3
_IS_WHOLE: Final = f"""\
import os, sys, zipfile
folder, *wheels = sys.argv[1:]
for wheel in wheels:
    for name in zipfile.ZipFile(wheel).namelist():
        if not os.path.exists(os.path.join(folder, name)):
            sys.exit({_NOT_WHOLE})
"""


@dataclass(frozen=True)
class PythonProgram:
    """How evaltools is started on a device: ``python`` is the interpreter there, ``folder`` has the packages."""

    python: str
    folder: str
    version: str = ""

    def command(self, work: PartWork, sent: SentFiles, taskset: str) -> str:
        """Lay out the files, then carry out the request of the part."""
        words: list[str] = []
        for name in work.pictures:
            words += ["--pictures", name, sent.manifests[name], *sent.archives[name]]
        for name in work.folders:
            words += ["--folder", name, *sent.archives[name]]
        return self.start([*words, "--", sent.request], taskset)

    def start(self, words: Sequence[str], taskset: str = "") -> str:
        """The shell command that starts what runs there.

        >>> PythonProgram("python3", "/p").start(["--", "r.json"], "f0")
        'exec taskset f0 env PYTHONPATH=/p TMPDIR="$PWD" python3 -m evaltools.device.programs.on_device -- r.json'
        """
        affinity = f"taskset {shlex.quote(taskset)} " if taskset else ""
        environment = f'env PYTHONPATH={shlex.quote(self.folder)} TMPDIR="$PWD"'
        python = f"{shlex.quote(self.python)} -m evaltools.device.programs.on_device"
        return f"exec {affinity}{environment} {python} {shlex.join(words)}"


@dataclass(frozen=True)
class Needed:
    """What is to run on a device: the ``command`` of evaltools, and the ``modules`` that it imports."""

    command: str
    modules: Sequence[str]


def install(store: DeviceStore, wheels: Sequence[Path], needed: Needed, python: str = "") -> PythonProgram:
    """Put wheels on a device, unpacked, and try whether all that a command of evaltools needs can be imported there.

    ``wheels`` has that of evaltools first. ``python`` is the interpreter on the device, empty: ``python3``. What cannot
    be started is put there once more where files of it are missing. Raises :class:`ProgramMissing` where there is no
    Python, or a package is missing there; and :class:`DeviceError`.
    """
    interpreter = python or _PREINSTALLED
    answer = store.adb.shell(store.serial, f"{shlex.quote(interpreter)} --version", _CHECK_S, store.stop)
    version = re.match(r"Python (\d+)\.(\d+)\S*", answer.text or answer.err.decode("utf-8", "replace"))
    if answer.code != 0 or version is None:
        raise ProgramMissing(
            f"{store.serial}: there is no Python: {interpreter} --version failed{answer.quote()}; name one with "
            "--device_python=PATH, or use --device_program=native",
            store.serial,
        )
    if (int(version[1]), int(version[2])) < OLDEST_PYTHON:
        raise ProgramMissing(
            f"{store.serial}: {interpreter} is {version[0]}, evaltools needs {'.'.join(map(str, OLDEST_PYTHON))} or "
            "newer; name another with --device_python=PATH",
            store.serial,
        )
    folder = posixpath.join(store.root, PROGRAMS, _name_of(wheels))
    program = PythonProgram(interpreter, folder, version[0].removeprefix("Python "))
    try:
        _put(store, wheels, program, needed)
    except ProgramMissing:
        if not _is_whole(store, wheels, program):
            _remove(store, program)
        try:
            _put(store, wheels, program, needed)
        except ProgramMissing as error:
            if _is_whole(store, wheels, program):
                raise
            raise CommandFailed(
                f"{store.serial}: files of {program.folder} were deleted, as device clean does, while they were put "
                "there",
                store.serial,
            ) from error
    return program


def _put(store: DeviceStore, wheels: Sequence[Path], program: PythonProgram, needed: Needed) -> None:
    """Unpack and try it; raises :class:`ProgramMissing`, also where another desk has deleted some of it meanwhile."""
    interpreter, folder = program.python, program.folder
    _unpack(store, wheels, interpreter, folder)
    checked = store.adb.shell(store.serial, program.start(["--check", *needed.modules]), _CHECK_S, store.stop)
    if checked.code != 0:
        raise ProgramMissing(_why_not(store.serial, interpreter, needed.command, checked), store.serial)
    found = read_folder(checked.text)
    if found is None:
        raise ProgramMissing(
            f"{store.serial}: {interpreter} ended well, but did not say where it imports evaltools from"
            f"{checked.quote()}; is it a Python? Give the path of another one with --device_python",
            store.serial,
        )
    if posixpath.dirname(found) != folder:
        raise ProgramMissing(
            f"{store.serial}: {interpreter} imports evaltools from {found} and not from {folder}, which was "
            "put there for it; give the path of another interpreter with --device_python",
            store.serial,
        )


def _is_whole(store: DeviceStore, wheels: Sequence[Path], program: PythonProgram) -> bool:
    """Whether no file of the wheels is missing in the folder, or nobody can say."""
    paths = [store.put(wheel) for wheel in wheels]
    look = shlex.join([program.python, "-c", _IS_WHOLE, program.folder, *paths])
    return store.adb.shell(store.serial, look, _CHECK_S, store.stop).code != _NOT_WHOLE


def _remove(store: DeviceStore, program: PythonProgram) -> None:
    broken, part = shlex.quote(program.folder), shlex.quote(_part(program.folder))
    store.adb.shell(store.serial, f"mv {broken} {part} && rm -rf {part}", _CHECK_S, store.stop)


def read_folder(printed: str) -> str | None:
    r"""Where evaltools is imported from, by the last line that ``--check`` prints; None where that is no such line.

    >>> read_folder('warning\n{"folder": "/p/evaltools"}\n')
    '/p/evaltools'
    >>> read_folder("hello") is None
    True
    """
    try:
        found = json.loads(printed.strip().splitlines()[-1])["folder"]
    except (IndexError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def _unpack(store: DeviceStore, wheels: Sequence[Path], python: str, folder: str) -> None:
    """Unpack all wheels into one folder, whole or not at all."""
    if store.adb.shell(store.serial, f"test -d {shlex.quote(folder)}").code == 0:
        return
    part = _part(folder)
    paths = [store.put(wheel) for wheel in wheels]
    unpacking = " && ".join(
        f"{shlex.quote(python)} -m zipfile -e {shlex.quote(path)} {shlex.quote(part)}" for path in paths
    )
    own, whole = shlex.quote(part), shlex.quote(folder)
    answer = store.adb.shell(
        store.serial,
        f"mkdir -p {own} && {unpacking} && test -f {own}/{_KNOWN_FILE} && "
        f"{{ test -d {whole} || mv {own} {whole}; }}; c=$?; rm -rf {own}; exit $c",
        _UNPACK_S,
        store.stop,
    )
    if answer.code != 0:
        raise ProgramMissing(
            f"{store.serial}: the wheels cannot be unpacked in {folder}{answer.quote()}; look at the space there, and "
            "whether its Python has the module zipfile",
            store.serial,
        )


def _part(folder: str) -> str:
    """A new name for a folder that is not whole yet, or no longer."""
    return f"{folder}.{uuid.uuid4().hex[:12]}.part"


def _name_of(wheels: Sequence[Path]) -> str:
    """Changes with the wheels, so that another version has a folder of its own."""
    together = hashlib.sha256("".join(sha256_of(wheel) for wheel in wheels).encode())
    return together.hexdigest()[:16]


def _why_not(serial: str, python: str, command: str, answer: Answer) -> str:
    return (
        f"{serial}: evaltools {command} cannot be started with {python}{answer.quote()}; install what it needs there "
        "(numpy, pillow, tflite-runtime or ai-edge-litert ...), or give a folder of wheels for the device with "
        "--device_wheels"
    )
