"""Sends files to a device and fetches them: under another name first, compared by their sha256, then renamed.

That name is ``NAME.part``. On the device it is deleted if the transfer fails, and stays if the device does not come
back; the next :func:`push` of the same name starts from the beginning. The caller must hold the lock of the folder that
it sends files to.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.device.adb.adb import Adb, patiently, stop_if_asked
from evaltools.device.adb.errors import (
    MAY_PASS,
    CommandFailed,
    ConnectionLost,
    DeviceError,
    DeviceTimeout,
    FileMissing,
    NoPermission,
    NoSpace,
    TransferFailed,
)
from evaltools.device.adb.facts import free_bytes
from evaltools.device.adb.process import AdbRun, ShellAnswer
from evaltools.errors import DataError, OutputError

PART: Final = ".part"
_LEAST_TIMEOUT_S: Final = 60.0
_SLOWEST_BYTES_PER_S: Final = 500_000.0
_BLOCK: Final = 1 << 20
_PATIENCE_AT_END_S: Final = 5.0
_PROGRESS_S: Final = 1.0
_PROGRESS_TIMEOUT_S: Final = 5.0
_SUM_TIMEOUT_S: Final = 120.0
"""For the sum of a file whose size is not known."""
_UNREADABLE: Final = 1
_NO_SUM: Final = 3
_DIFFERENT: Final = 4
_MISSING: Final = 5
_SIZE_AND_SUM: Final = re.compile(r"\s*(\d+)\s+([0-9a-f]{64})\b")


class Transfer(Struct, frozen=True):
    """A file that is the same on both sides; ``was_there``: it did not have to be sent."""

    size_bytes: int
    sha256: str
    was_there: bool = False


def push(
    adb: Adb,
    serial: str,
    local: Path,
    remote: str,
    timeout_s: float | None = None,
    patience_s: float = 0.0,
    stop: threading.Event | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Transfer:
    """Put a file on the device, whole or not at all; one with the same sha256 is left there.

    ``remote`` is an absolute path of the device; its folder is made. ``timeout_s`` is that of the sending, by default a
    minute and more for large files. A link that is lost is waited for ``patience_s`` seconds, and the file is sent
    again from its beginning; what cannot pass is raised at once. ``stop`` ends the sending.
    ``on_progress`` gets the bytes that have arrived about once a second, from another thread; they fall where the file
    is sent again. Raises :class:`DataError` where ``local`` cannot be read, and :class:`DeviceError`, of which
    :class:`NoSpace`, :class:`NoPermission` and :class:`TransferFailed` are about files.
    """
    size, digest = local_sum(local)
    part = f"{remote}{PART}"
    sending = _Sending(adb, serial, local, remote, part, size, digest, timeout_s or _timeout(size), stop)
    if patiently(adb, serial, sending.is_there, patience_s, stop):
        return Transfer(size, digest, was_there=True)
    try:
        with _reporting(partial(_arrived, adb, serial, part), size, on_progress):
            patiently(adb, serial, sending.send, patience_s, stop)
    except BaseException as error:
        with suppress(DeviceError):  # the error that led here is the one to tell
            patiently(adb, serial, sending.give_up, min(patience_s, _PATIENCE_AT_END_S))
        if isinstance(error, MAY_PASS):
            raise type(error)(f"{local} could not be sent to {remote}. {error}", serial) from error
        raise
    return Transfer(size, digest)


def pull(
    adb: Adb,
    serial: str,
    remote: str,
    local: Path,
    timeout_s: float | None = None,
    patience_s: float = 0.0,
    stop: threading.Event | None = None,
) -> Transfer:
    """Fetch a file, whole or not at all. What ``local`` held before is deleted first: an old file is no success.

    ``patience_s`` and ``stop`` are as of :func:`push`. Raises :class:`OutputError` where ``local``
    cannot be written, and :class:`DeviceError` as :func:`push` does, :class:`FileMissing` where the device has no such
    file.
    """
    part = Path(os.path.abspath(local) + PART)
    try:
        local.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{local} cannot be replaced: {error.strerror}") from error
    fetch = partial(_fetch, adb, serial, remote, local, part, timeout_s, stop)
    try:
        return patiently(adb, serial, fetch, patience_s, stop)
    except MAY_PASS as error:
        raise type(error)(f"{remote} could not be fetched. {error}", serial) from error


class _Sending(Struct, frozen=True):
    """A file that is being sent to the device; ``part`` is its name there until it is complete."""

    adb: Adb
    serial: str
    local: Path
    remote: str
    part: str
    size: int
    digest: str
    timeout_s: float
    stop: threading.Event | None = None

    def is_there(self) -> bool:
        """Whether the device has the file; if not, the way is made free for it."""
        remote = shlex.quote(self.remote)
        folder = shlex.quote(posixpath.dirname(self.remote))
        prepared = self._if_whole(
            self.remote,
            "exit 0",
            f"test ! -d {remote} && mkdir -p {folder} && rm -f {shlex.quote(self.part)} && exit {_DIFFERENT}",
        )
        if prepared.code not in (0, _DIFFERENT):
            raise self._why_not_written(prepared.quote())
        return prepared.code == 0

    def send(self) -> None:
        """Send the file from its beginning, and give it its name."""
        command = ["-s", self.serial, "push", os.path.abspath(self.local), self.part]
        done = self.adb.run(command, self.timeout_s, self.stop)
        stop_if_asked(self.serial, self.stop)
        named = f"mv -f {shlex.quote(self.part)} {shlex.quote(self.remote)}"
        moved = self._if_whole(self.part, named, f"exit {_DIFFERENT}")
        if moved.code == _DIFFERENT:
            raise self._why_not_whole(done)
        if moved.code != 0:
            raise self._why_not_written(moved.quote())

    def _if_whole(self, path: str, then: str, otherwise: str) -> ShellAnswer:
        """Run one command where a file on the device has the content, another where it has not."""
        answer = self.adb.shell(
            self.serial,
            f"found=$({_sum_script(path)}) || [ $? = {_UNREADABLE} ] || exit {_NO_SUM}\n"
            f'if [ "${{found%% *}}" = {self.digest} ]; then {then}; else {otherwise}; fi',
            _timeout(self.size),
            self.stop,
        )
        if answer.code == _NO_SUM:
            raise _why_no_sum(self.serial, answer)
        return answer

    def _why_not_written(self, quote: str) -> DeviceError:
        return _why_not_written(self.adb, self.serial, self.remote, self.size, quote)

    def _why_not_whole(self, done: AdbRun) -> DeviceError | DataError:
        """The error of a file that differs on the device.

        If it is shorter and the device has space, the connection was lost.
        """
        arrived = _arrived(self.adb, self.serial, self.part) or 0
        self.give_up()
        if local_sum(self.local)[1] != self.digest:
            return DataError(f"{self.local} changed while it was sent to {self.serial}; let it rest, then try again")
        error = self._why_not_written(done.quote())
        if type(error) is not TransferFailed or arrived == self.size:
            return error
        return _cut_short(self.serial, "push", self.remote, arrived, self.size, done, self.timeout_s)

    def give_up(self) -> None:
        """Delete the incomplete file on the device."""
        self.adb.shell(self.serial, f"rm -f {shlex.quote(self.part)}")


def _fetch(
    adb: Adb,
    serial: str,
    remote: str,
    local: Path,
    part: Path,
    timeout_s: float | None,
    stop: threading.Event | None,
) -> Transfer:
    """Fetch a file from its beginning, and give it its name."""
    size, digest = _remote_sum(adb, serial, remote, timeout_s or _SUM_TIMEOUT_S, stop)
    limit_s = timeout_s or _timeout(size)
    try:
        part.unlink(missing_ok=True)
        done = adb.run(["-s", serial, "pull", remote, str(part)], limit_s, stop)
        stop_if_asked(serial, stop)
        if not part.is_file() or local_sum(part)[1] != digest:
            adb.shell(serial, "true")  # names a lost link as such
            raise _why_not_fetched(serial, remote, part, size, done, limit_s)
        part.replace(local)
    except OSError as error:
        raise OutputError(f"{local} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return Transfer(size, digest)


def _why_not_fetched(
    serial: str, remote: str, part: Path, size: int, done: AdbRun, timeout_s: float
) -> DeviceError | OutputError:
    arrived = part.stat().st_size if part.exists() else 0
    if not os.access(part.parent, os.W_OK):
        return OutputError(f"{part.parent} cannot be written: {remote} of {serial} was to come there")
    free = shutil.disk_usage(part.parent).free
    if free < size - arrived:
        return OutputError(
            f"{remote} of {serial} ({size} bytes) does not fit into {part.parent}, which has {free} free; delete some"
        )
    if arrived < size:
        return _cut_short(serial, "pull", remote, arrived, size, done, timeout_s)
    return TransferFailed(
        f"{serial}: {remote} ({size} bytes) did not arrive as it is there{done.quote()}; does something still write "
        "the file? Try again when it does not",
        serial,
    )


def _cut_short(
    serial: str, doing: str, remote: str, arrived: int, size: int, done: AdbRun, timeout_s: float
) -> DeviceError:
    """The error of a file of which only a part arrived, although both sides have space for it."""
    if done.code is None:
        return DeviceTimeout(
            f"{serial}: adb {doing} of {remote} had brought {arrived} of {size} bytes after {timeout_s:g} s; "
            "look at the device, the cable and the network, or allow more time",
            serial,
        )
    return ConnectionLost(
        f"{serial}: the connection was lost during adb {doing} of {remote}: {arrived} of {size} bytes arrived"
        f"{done.quote()}; look at the cable or the network, then run it again",
        serial,
    )


@contextmanager
def _reporting(
    arrived: Callable[[], int | None], size: int, on_progress: Callable[[int], None] | None
) -> Iterator[None]:
    """A context that reports about once a second how many bytes have arrived, and all of them at its end."""
    if on_progress is None:
        yield
        return
    over = threading.Event()

    def tell() -> None:
        while not over.wait(_PROGRESS_S):
            try:
                count = arrived()
            except DeviceError:
                continue  # the transfer itself says what is wrong
            if count is not None:
                on_progress(count)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
    on_progress(size)


def _arrived(adb: Adb, serial: str, part: str) -> int | None:
    """The size of a file on the device in bytes, None where it does not exist."""
    name = shlex.quote(part)
    answer = adb.shell(serial, f"stat -c %s {name} 2> /dev/null || wc -c < {name}", _PROGRESS_TIMEOUT_S)
    return int(answer.text) if answer.code == 0 else None


def _timeout(size: int) -> float:
    return _LEAST_TIMEOUT_S + size / _SLOWEST_BYTES_PER_S


def local_sum(path: Path) -> tuple[int, str]:
    """Size in bytes and sha256 of a file of the host; raises :class:`DataError` where it cannot be read."""
    digest, size = hashlib.sha256(), 0
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    return size, digest.hexdigest()


def _remote_sum(adb: Adb, serial: str, path: str, timeout_s: float, stop: threading.Event | None) -> tuple[int, str]:
    """Size in bytes and sha256 of a file on the device.

    Raises :class:`FileMissing`, :class:`NoPermission`, and :class:`CommandFailed` without sha256sum.
    """
    quoted = shlex.quote(path)
    script = f"test -f {quoted} || exit {_MISSING}; test -r {quoted} && wc -c < {quoted}; {_sum_script(path)}"
    answer = adb.shell(serial, script, timeout_s, stop)
    if answer.code == _MISSING:
        raise FileMissing(
            f"{serial}: there is no file {path}{answer.quote()}; what should have written it did not", serial
        )
    if answer.code == _UNREADABLE:
        raise NoPermission(f"{serial}: {path} cannot be read; look at its permissions with ls -l", serial)
    found = _SIZE_AND_SUM.match(answer.text)
    if answer.code != 0 or found is None:
        raise _why_no_sum(serial, answer)
    return int(found[1]), found[2]


def _sum_script(path: str) -> str:
    """Print the sha256 of a file."""
    quoted = shlex.quote(path)
    return (
        f"test -f {quoted} && test -r {quoted} || exit {_UNREADABLE}; "
        f"sha256sum < {quoted} 2> /dev/null || exit {_NO_SUM}"
    )


def _why_no_sum(serial: str, answer: ShellAnswer) -> CommandFailed:
    return CommandFailed(
        f"{serial}: no sha256sum, which every Android and every Linux has{answer.quote()}; "
        "files cannot be compared without it, so use another device",
        serial,
    )


def _why_not_written(adb: Adb, serial: str, remote: str, size: int, quote: str) -> DeviceError:
    """The error of a file that did not arrive, from the device's folder and space; adb's messages are not read."""
    folder = posixpath.dirname(remote)
    if adb.shell(serial, f"test -d {shlex.quote(remote)}").code == 0:
        return TransferFailed(f"{serial}: {remote} is a folder; give the name of a file{quote}", serial)
    if adb.shell(serial, f"test -d {shlex.quote(folder)} && test -w {shlex.quote(folder)}").code != 0:
        return NoPermission(
            f"{serial}: {folder} cannot be written{quote}; use a folder below /data/local/tmp, or adb root", serial
        )
    free = free_bytes(adb.shell(serial, f"df -k {shlex.quote(folder)}").text)
    if free is not None and free < size:
        return NoSpace(f"{serial}: {size} bytes do not fit into {folder}, which has {free} free; delete some", serial)
    return TransferFailed(f"{serial}: {remote} ({size} bytes) did not arrive as it was sent{quote}; try again", serial)
