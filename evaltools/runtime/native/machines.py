"""Where a program runs: on this computer, or on a device that adb reaches, with files there and back."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import posixpath
import shlex
import shutil
import subprocess
import tarfile
import tempfile
import time
import uuid
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, Protocol

from evaltools.adb import detached
from evaltools.adb.client import Adb, CommandFailed, ConnectionLost, DeviceError, DeviceInUse, Link
from evaltools.adb.facts import find_devices
from evaltools.adb.store import DEFAULT_ROOT, SESSIONS, DeviceFolder, is_alive, remote_path, stored_folder
from evaltools.adb.transfer import push
from evaltools.result.device import DeviceFacts
from evaltools.runtime.native.starts import RESULTS

_PATIENCE_S: Final = 180.0
_OTHERS_S: Final = 600.0
"""How long a batch waits for those of others, which have the device for themselves meanwhile."""
_HERE_S: Final = 2.0
_THERE_S: Final = 10.0
_TRANSFER_S: Final = 120.0
_CARRIED_BYTES: Final = 64 << 10
_NO_SPACE, _DAMAGED = 65, 66
_WAIT_FOR_LOCK_S: Final = 30.0


class Machine(Protocol):
    """A place where programs are started. ``name`` is empty for this computer."""

    name: str
    turn_s: float
    away_s: float

    def put_program(self, binary: Path) -> str:
        """The path of a program there; raises :class:`DeviceError` where it cannot be sent."""

    def put_file(self, file: Path) -> str:
        """The path of a file there."""

    def put_folder(self, folder: Path) -> str:
        """What stands before a command that finds the libraries of a folder."""

    def put_content(self, name: str, content: bytes) -> str:
        """The path of a file with this content."""

    def exchange(self, files: Mapping[str, bytes], script: str, limit_s: float, /) -> dict[str, bytes]:
        """Run a script in a folder of its own with these files; what it leaves in ``RESULTS``, by name.

        ``limit_s`` is the longest time in which it prints nothing. Raises :class:`DeviceError`.
        """

    def close(self) -> None:
        """Delete what lies there for this session alone."""


def machine_of(serial: str) -> Machine:
    """The computer that this is, or the device of that serial number; raises :class:`DeviceError`."""
    return Phone(serial) if serial else Here()


class Here:
    """Programs as processes of this computer."""

    name = ""
    turn_s = _HERE_S
    away_s = 0.0

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="evaltools-"))

    def put_program(self, binary: Path) -> str:
        """Where it is."""
        return str(binary.resolve())

    def put_file(self, file: Path) -> str:
        """Where it is."""
        return str(file.resolve())

    def put_folder(self, folder: Path) -> str:
        """Libraries of this computer are found as its user says."""
        return f"export LD_LIBRARY_PATH={shlex.quote(str(folder.resolve()))}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"

    def put_content(self, name: str, content: bytes) -> str:
        """A file of this session."""
        file = self._folder / name
        file.write_bytes(content)
        return str(file)

    def exchange(self, files: Mapping[str, bytes], script: str, _limit_s: float, /) -> dict[str, bytes]:
        """Run it with sh; the script itself ends what takes too long."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            for name, content in files.items():
                Path(folder, name).write_bytes(content)
            Path(folder, "script").write_text(script)
            subprocess.run(
                ["sh", "script"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            left = Path(folder, RESULTS)
            return {f"{RESULTS}/{each.name}": each.read_bytes() for each in left.glob("*")}

    def close(self) -> None:
        """Delete the session's folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


class Phone:
    """A device that adb reaches. Batches of several sessions, and of several commands, take turns there.

    Files are kept there by their content. A batch goes on when the link is cut, and is found again.
    """

    turn_s = _THERE_S
    away_s = _PATIENCE_S + _OTHERS_S

    def __init__(self, serial: str) -> None:
        self._link = Link(Adb(), serial, _PATIENCE_S)
        self._sent = _sent_to(serial)
        self._carried: dict[str, bytes] = {}
        self.name = _name(_looked_after(serial))
        self._own = f"{platform.node()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
        self._count = 0
        self._left: list[str] = []

    def put_program(self, binary: Path) -> str:
        """Send it, and make it one that can be started."""
        is_there = remote_path(DEFAULT_ROOT, binary) in self._sent
        path = self.put_file(binary)
        if is_there:
            return path
        answer = self._link.patiently(partial(self._link.shell, f"chmod 755 {shlex.quote(path)}"))
        if answer.code != 0:
            raise CommandFailed(f"{self._link.serial}: {path} cannot be made a program{answer.quote()}")
        return path

    def put_file(self, file: Path) -> str:
        """Send it unless the device has its content."""
        path = remote_path(DEFAULT_ROOT, file)
        self._send({file: path})
        return path

    def put_folder(self, folder: Path) -> str:
        """Send its files; loaders and signal processors look for libraries there."""
        own, files = stored_folder(DEFAULT_ROOT, folder)
        self._send(files)
        quoted = shlex.quote(own)
        loader = f"LD_LIBRARY_PATH={quoted}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
        return f'export {loader} ADSP_LIBRARY_PATH={quoted}"${{ADSP_LIBRARY_PATH:+;$ADSP_LIBRARY_PATH}}"'

    def put_content(self, name: str, content: bytes) -> str:
        """Send a file with this content; a small one goes with each batch, which costs no way of its own."""
        if len(content) <= _CARRIED_BYTES:
            self._carried[name] = content
            return name
        with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
            file = Path(folder, name)
            file.write_bytes(content)
            return self.put_file(file)

    def exchange(self, files: Mapping[str, bytes], script: str, limit_s: float, /) -> dict[str, bytes]:
        """One archive there, a script that goes on without the link, one archive back."""
        link, quoted = self._link, shlex.quote
        self._count += 1
        folder = posixpath.join(DEFAULT_ROOT, SESSIONS, f"{self._own}.{self._count}")
        packed = _packed({**self._carried, **files, "script": script.encode()})
        turn = posixpath.join(DEFAULT_ROOT, SESSIONS, "turn")
        command = f"""\
s=$(sha256sum <in.tar)
[ "${{s%% *}}" = {hashlib.sha256(packed).hexdigest()} ] || exit {_DAMAGED}
exec 9>{quoted(turn)}
flock 9 2>/dev/null
tar -xf in.tar && rm in.tar || exit {_NO_SPACE}
sh script 9>&-
tar -cf out.tar {RESULTS} || exit {_NO_SPACE}
sha256sum <out.tar
"""
        self._left.append(folder)

        def begin() -> None:
            with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
                archive = Path(temporary, "in.tar")
                archive.write_bytes(packed)
                link.run(["push", str(archive), f"{folder}/in.tar"], _TRANSFER_S)
            detached.start(link, command, folder, _PATIENCE_S + limit_s)

        link.patiently(begin)
        answer = detached.wait(link, folder, limit_s + _OTHERS_S)
        if answer.code == _DAMAGED:
            raise ConnectionLost(f"{link.serial}: what was sent did not arrive whole; look at the cable, and try again")
        if answer.code != 0:
            raise DeviceError(
                f"{link.serial}: inputs or outputs of a batch could not be written in {folder}{answer.quote()}; make "
                "room there: see adb shell df, and evaltools device clean"
            )
        content = link.patiently(partial(self._fetched, f"{folder}/out.tar", answer.text.split()[-2]))
        self._remove(folder)
        return _unpacked(content)

    def close(self) -> None:
        """Delete folders that are left of batches that failed; away from the device, a later session does."""
        for folder in [*self._left]:
            self._remove(folder)

    def _send(self, files: Mapping[Path, str]) -> None:
        """Send files whose paths there are known; others that send at this moment are waited for."""
        new = {file: path for file, path in files.items() if path not in self._sent}
        if not new:
            return
        limit = time.monotonic() + _WAIT_FOR_LOCK_S
        folder = DeviceFolder(self._link, DEFAULT_ROOT)
        while True:
            try:
                folder.take(force=False)
                break
            except DeviceInUse:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.5)
        with folder:
            for file, path in new.items():
                push(self._link, file, path)
                self._sent.add(path)

    def _fetched(self, path: str, digest: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
            file = Path(temporary, "out.tar")
            done = self._link.run(["pull", path, str(file)], _TRANSFER_S)
            content = file.read_bytes() if file.is_file() else b""
        if hashlib.sha256(content).hexdigest() != digest:
            raise ConnectionLost(f"{self._link.serial}: {path} did not arrive whole{done.quote()}; look at the cable")
        return content

    def _remove(self, folder: str) -> None:
        try:
            detached.remove(self._link, folder)
        except DeviceError:  # a later session of this computer removes it
            return
        self._left.remove(folder)


@lru_cache(maxsize=16)
def _sent_to(_serial: str) -> set[str]:
    """The paths of what this process has sent to a device."""
    return set()


@lru_cache(maxsize=16)
def _looked_after(serial: str) -> DeviceFacts:
    """What a device says of itself, asked once in a process, which then ends what killed processes have left there.

    Raises :class:`DeviceError`.
    """
    adb = Adb()
    adb.connect(serial)
    (found,) = find_devices(adb, (serial,))
    if found.facts is None:
        raise DeviceError(found.problem)
    _end_those_of_the_dead(Link(adb, serial, _PATIENCE_S))
    return found.facts


def _end_those_of_the_dead(link: Link) -> None:
    """End and delete batches of processes of this computer that were killed."""
    folder = posixpath.join(DEFAULT_ROOT, SESSIONS)
    there = link.patiently(partial(link.shell, f"ls {shlex.quote(folder)} 2>/dev/null || true"))
    for name in there.text.split():
        host, _, process = name.rpartition(".")[0].rpartition(".")[0].rpartition(".")
        if host == platform.node() and process.isdigit() and not is_alive(int(process)):
            detached.remove(link, posixpath.join(folder, name))


def _name(facts: DeviceFacts) -> str:
    """Model, chip and version of Android, as far as the device says them."""
    model = facts.model or facts.serial
    if facts.manufacturer and not model.lower().startswith(facts.manufacturer.lower()):
        model = f"{facts.manufacturer} {model}"
    chip = f" ({facts.soc})" if facts.soc else ""
    return f"{model}{chip}" + (f" with Android {facts.android}" if facts.android else "")


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _unpacked(content: bytes) -> dict[str, bytes]:
    """The files of an archive that the device made of what the script left."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [each for each in archive.getmembers() if each.isfile()]
        return {each.name: file.read() for each in members if (file := archive.extractfile(each)) is not None}
