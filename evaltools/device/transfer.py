"""Sends files to a device and fetches them: under another name first, compared by their sha256, then renamed.

That name is ``NAME.part``. On the device it is deleted if the transfer fails, and stays if the device does not come
back; the next :func:`push` of the same name starts from the beginning. The caller must hold the lock of the folder that
it sends files to.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import shlex
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.device.adb import Adb, patiently, stop_if_asked
from evaltools.device.errors import (
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
from evaltools.device.facts import free_bytes
from evaltools.device.process import Answer
from evaltools.errors import DataError, OutputError
from evaltools.file_content import Unreadable, opened

PART: Final = ".part"
_LEAST_TIMEOUT_S: Final = 60.0
_SLOWEST_BYTES_PER_S: Final = 500_000.0
_BLOCK: Final = 1 << 20
_PATIENCE_AT_END_S: Final = 5.0
_SUM_TIMEOUT_S: Final = 120.0
"""For the sum of a file whose size is not known."""
_NO_SUM, _DIFFERENT, _MISSING, _CLOSED, _FOLDER = range(3, 8)
"""Exit codes of the scripts here."""
_HAS_SUM: Final = f"echo | sha256sum > /dev/null || exit {_NO_SUM}"


def push(
    adb: Adb,
    serial: str,
    local: Path,
    remote: str,
    timeout_s: float | None = None,
    patience_s: float = 0.0,
    stop: threading.Event | None = None,
    on_sending: Callable[[int], None] = lambda _size: None,
) -> bool:
    """Put a file on the device, whole or not at all; one with the same sha256 is left there, and False returned.

    ``remote`` is an absolute path of the device; its folder is made. ``timeout_s`` is that of the sending, by default a
    minute and more for large files. A link that is lost is waited for ``patience_s`` seconds, and the file is sent
    again from its beginning; what cannot pass is raised at once. ``stop`` ends the sending. ``on_sending`` gets the
    number of bytes before they are sent. Raises :class:`DataError` where ``local`` cannot be read, and
    :class:`DeviceError`, of which :class:`NoSpace`, :class:`NoPermission` and :class:`TransferFailed` are about files.
    """
    size, digest = local_sum(local)
    sending = _Sending(adb, serial, local, remote, size, digest, timeout_s or _timeout(size), stop)
    if patiently(adb, serial, sending.is_there, patience_s, stop):
        return False
    on_sending(size)
    try:
        patiently(adb, serial, sending.send, patience_s, stop)
    except BaseException as error:
        give_up = partial(adb.shell, serial, f"rm -f {shlex.quote(remote + PART)}")
        with suppress(DeviceError):  # the error that led here is the one to raise
            patiently(adb, serial, give_up, min(patience_s, _PATIENCE_AT_END_S))
        if isinstance(error, MAY_PASS):
            raise type(error)(f"{local} could not be sent to {remote}. {error}", serial) from error
        raise
    return True


class _Sending(Struct, frozen=True):
    """A file that is being sent to the device."""

    adb: Adb
    serial: str
    local: Path
    remote: str
    size: int
    digest: str
    timeout_s: float
    stop: threading.Event | None

    def is_there(self) -> bool:
        """Whether the device has the file; if not, the way is made free for it."""
        answer = self._run(f"""\
same "$f" && exit
[ ! -d "$f" ] || exit {_FOLDER}
mkdir -p "$d" && [ -w "$d" ] && rm -f "$p" || exit {_CLOSED}
exit {_DIFFERENT}""")
        if answer.code == _FOLDER:
            raise TransferFailed(f"{self.serial}: {self.remote} is a folder; give the name of a file", self.serial)
        if answer.code not in (0, _DIFFERENT):
            raise NoPermission(
                f"{self.serial}: {posixpath.dirname(self.remote)} cannot be written{answer.quote()}; use a folder "
                "below /data/local/tmp, or adb root",
                self.serial,
            )
        return answer.code == 0

    def send(self) -> None:
        """Send the file from its beginning, and give it its name."""
        command = ["-s", self.serial, "push", os.path.abspath(self.local), self.remote + PART]
        done = self.adb.run(command, self.timeout_s, self.stop)
        stop_if_asked(self.serial, self.stop)
        answer = self._run("""\
same "$p" && mv -f "$p" "$f" && exit
n=$(wc -c < "$p")
rm -f "$p"
echo ${n:-0}
df -k "$d"
exit 4""")
        if answer.code != 0:
            arrived, _, space = answer.text.partition("\n")
            raise self._why_not_whole(done, int(arrived), free_bytes(space))

    def _run(self, script: str) -> Answer:
        """Run a script in which ``$f`` is the file, ``$p`` its part, ``$d`` its folder; ``same`` compares contents."""
        answer = self.adb.shell(
            self.serial,
            f"f={shlex.quote(self.remote)}\np=$f{PART}\nd={shlex.quote(posixpath.dirname(self.remote))}\n{_HAS_SUM}\n"
            f'same() {{ s=$(sha256sum < "$1") && [ "${{s%% *}}" = {self.digest} ]; }} 2> /dev/null\n{script}',
            _timeout(self.size),
            self.stop,
        )
        if answer.code == _NO_SUM:
            raise _no_sum(self.serial, answer)
        return answer

    def _why_not_whole(self, done: Answer, arrived: int, free: int | None) -> DeviceError | DataError:
        """The error of a file that differs on the device, of which ``arrived`` bytes came; adb's words are not read."""
        serial, remote, size = self.serial, self.remote, self.size
        if local_sum(self.local)[1] != self.digest:
            return DataError(f"{self.local} changed while it was sent to {serial}; let it rest, then try again")
        if free is not None and free < size:
            folder = posixpath.dirname(remote)
            return NoSpace(
                f"{serial}: {size} bytes do not fit into {folder}, which has {free} free; delete some", serial
            )
        if arrived < size:
            return _cut_short(serial, "push", remote, arrived, size, done, self.timeout_s)
        return TransferFailed(
            f"{serial}: {remote} ({size} bytes) did not arrive as it was sent{done.quote()}; try again", serial
        )


def pull(
    adb: Adb,
    serial: str,
    remote: str,
    local: Path,
    timeout_s: float | None = None,
    patience_s: float = 0.0,
    stop: threading.Event | None = None,
) -> None:
    """Fetch a file, whole or not at all. What ``local`` held before is deleted first: an old file is no success.

    ``patience_s`` and ``stop`` are as of :func:`push`. Raises :class:`OutputError` where ``local``
    cannot be written, and :class:`DeviceError` as :func:`push` does, :class:`FileMissing` where the device has no such
    file.
    """
    part = Path(os.path.abspath(local) + PART)

    def fetch() -> None:
        size, digest = _remote_sum(adb, serial, remote, timeout_s or _SUM_TIMEOUT_S, stop)
        limit_s = timeout_s or _timeout(size)
        part.unlink(missing_ok=True)
        done = adb.run(["-s", serial, "pull", remote, str(part)], limit_s, stop)
        stop_if_asked(serial, stop)
        if not part.is_file() or local_sum(part)[1] != digest:
            adb.shell(serial, "true")  # names a lost link as such
            raise _why_not_fetched(serial, remote, part, size, done, limit_s)
        part.replace(local)

    try:
        local.unlink(missing_ok=True)
        patiently(adb, serial, fetch, patience_s, stop)
    except OSError as error:
        raise OutputError(f"{local} cannot be written: {error.strerror}") from error
    except MAY_PASS as error:
        raise type(error)(f"{remote} could not be fetched. {error}", serial) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _remote_sum(adb: Adb, serial: str, path: str, timeout_s: float, stop: threading.Event | None) -> tuple[int, str]:
    """Size in bytes and sha256 of a file on the device."""
    answer = adb.shell(
        serial,
        f'f={shlex.quote(path)}\n[ -f "$f" ] || exit {_MISSING}\n[ -r "$f" ] || exit {_CLOSED}\n{_HAS_SUM}\n'
        'wc -c < "$f" && sha256sum < "$f"',
        timeout_s,
        stop,
    )
    if answer.code == _MISSING:
        raise FileMissing(f"{serial}: there is no file {path}; what should have written it did not", serial)
    if answer.code == _CLOSED:
        raise NoPermission(f"{serial}: {path} cannot be read; look at its permissions with ls -l", serial)
    if answer.code != 0:
        raise _no_sum(serial, answer)
    size, digest, *_ = answer.text.split()
    return int(size), digest


def _why_not_fetched(
    serial: str, remote: str, part: Path, size: int, done: Answer, timeout_s: float
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
    serial: str, doing: str, remote: str, arrived: int, size: int, done: Answer, timeout_s: float
) -> DeviceError:
    """The error of a file of which only a part arrived, although both sides have space for it."""
    if done.code < 0:
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


def _no_sum(serial: str, answer: Answer) -> CommandFailed:
    return CommandFailed(
        f"{serial}: no sha256sum, which every Android and every Linux has{answer.quote()}; "
        "files cannot be compared without it, so use another device",
        serial,
    )


def _timeout(size: int) -> float:
    return _LEAST_TIMEOUT_S + size / _SLOWEST_BYTES_PER_S


def local_sum(path: Path) -> tuple[int, str]:
    """Size in bytes and sha256 of a file of the host; raises :class:`DataError` where it cannot be read."""
    digest, size = hashlib.sha256(), 0
    try:
        with opened(path) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                size += len(block)
    except Unreadable as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return size, digest.hexdigest()
