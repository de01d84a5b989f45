"""Sends files to a device and fetches them: under another name first, compared by their sha256, then renamed.

That name is ``NAME.part``. On the device it is deleted if the transfer fails, and stays if the device does not come
back; the next :func:`push` of the same name starts from the beginning. The caller must hold the lock of the folder that
it sends files to.
"""

from __future__ import annotations

import os
import posixpath
import shlex
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from evaltools import file_content
from evaltools.adb.client import Answer, CommandFailed, ConnectionLost, DeviceError, DeviceTimeout, FileMissing, Link
from evaltools.adb.facts import free_bytes
from evaltools.errors import DataError, OutputError
from evaltools.file_content import Unreadable

PART: Final = ".part"
_LEAST_TIMEOUT_S: Final = 60.0
_SLOWEST_BYTES_PER_S: Final = 500_000.0
_PATIENCE_AT_END_S: Final = 5.0
_SUM_TIMEOUT_S: Final = 120.0
"""For the sum of a file whose size is not known."""
_DIFFERENT, _MISSING, _CLOSED = range(3, 6)
"""Exit codes of the scripts here."""


def push(
    link: Link,
    local: Path,
    remote: str,
    on_sending: Callable[[int], None] = lambda _size: None,
) -> None:
    """Put a file on the device, whole or not at all; one with the same sha256 is left there.

    ``remote`` is an absolute path of the device; its folder is made. After a link that was lost, the file is sent again
    from its beginning. ``on_sending`` gets the number of bytes before they are sent. Raises :class:`DataError` where
    ``local`` cannot be read, and :class:`DeviceError`.
    """
    serial, part, folder = link.serial, remote + PART, posixpath.dirname(remote)
    size, digest = size_of(local), sha256_of(local)
    limit_s = _timeout(size)

    def script(text: str) -> Answer:
        """Run a script in which ``$f`` is the file, ``$p`` its part, ``$d`` its folder; ``same`` compares contents."""
        return link.shell(
            f"f={shlex.quote(remote)} p={shlex.quote(part)} d={shlex.quote(folder)}\n"
            f'same() {{ s=$(sha256sum < "$1") && [ "${{s%% *}}" = {digest} ]; }} 2> /dev/null\n{text}',
            limit_s,
        )

    def is_there() -> bool:
        """Whether the device has the file; if not, the way is made free for it."""
        answer = script(f"""\
same "$f" && exit
mkdir -p "$d" && [ -w "$d" ] && [ ! -d "$f" ] && rm -f "$p" && echo | sha256sum > /dev/null || exit {_CLOSED}
exit {_DIFFERENT}""")
        if answer.code not in (0, _DIFFERENT):
            raise DeviceError(
                f"{serial}: {remote} cannot be written{answer.quote()}; use a folder below /data/local/tmp, or adb "
                "root; sha256sum must be there, too"
            )
        return answer.code == 0

    def send() -> None:
        """Send the file from its beginning, and give it its name."""
        done = link.run(["push", os.path.abspath(local), part], limit_s)
        answer = script(f"""\
same "$p" && mv -f "$p" "$f" && exit
n=$(wc -c < "$p")
rm -f "$p"
echo ${{n:-0}}
df -k "$d"
exit {_DIFFERENT}""")
        if answer.code == 0:
            return
        arrived, _, space = answer.text.partition("\n")
        free = free_bytes(space)
        if sha256_of(local) != digest:
            raise DataError(f"{local} changed while it was sent to {serial}; let it rest, then try again")
        if free is not None and free < size:
            raise DeviceError(f"{serial}: {size} bytes do not fit into {folder}, which has {free} free")
        raise _not_whole(serial, f"push of {remote}", int(arrived), size, done, limit_s)

    if link.patiently(is_there):
        return
    on_sending(size)
    try:
        link.patiently(send)
    except BaseException:
        last = link.unstoppable(_PATIENCE_AT_END_S)
        with suppress(DeviceError):  # the error that led here is the one to raise
            last.patiently(partial(last.shell, f"rm -f {shlex.quote(part)}"))
        raise


def pull(link: Link, remote: str, local: Path) -> None:
    """Fetch a file, whole or not at all; its folder is made. What ``local`` held before is deleted first.

    Raises :class:`OutputError` where ``local`` cannot be written, and :class:`DeviceError` as :func:`push` does,
    :class:`FileMissing` where the device has no such file.
    """
    serial, part = link.serial, Path(os.path.abspath(local) + PART)

    def fetch() -> None:
        size, digest = _remote_sum(link, remote)
        limit_s = _timeout(size)
        part.unlink(missing_ok=True)
        done = link.run(["pull", remote, str(part)], limit_s)
        if part.is_file() and sha256_of(part) == digest:
            part.replace(local)
            return
        link.shell("true")  # names a lost link as such
        arrived, free = part.stat().st_size if part.exists() else 0, shutil.disk_usage(part.parent).free
        if free < size - arrived or not os.access(part.parent, os.W_OK):
            raise OutputError(
                f"{remote} of {serial} ({size} bytes) cannot be written into {part.parent}, which has {free} free"
            )
        raise _not_whole(serial, f"pull of {remote}", arrived, size, done, limit_s)

    try:
        local.parent.mkdir(parents=True, exist_ok=True)
        local.unlink(missing_ok=True)
        link.patiently(fetch)
    except OSError as error:
        raise OutputError(f"{local} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _remote_sum(link: Link, path: str) -> tuple[int, str]:
    """Size in bytes and sha256 of a file on the device."""
    answer = link.shell(
        f'f={shlex.quote(path)}\n[ -f "$f" ] || exit {_MISSING}\nwc -c < "$f" && sha256sum < "$f" || exit {_CLOSED}',
        _SUM_TIMEOUT_S,
    )
    if answer.code == _MISSING:
        raise FileMissing(f"{link.serial}: there is no file {path}; what should have written it did not")
    if answer.code != 0:
        raise DeviceError(f"{link.serial}: {path} cannot be read{answer.quote()}; look at its permissions with ls -l")
    size, digest, *_ = answer.text.split()
    return int(size), digest


def _not_whole(serial: str, doing: str, arrived: int, size: int, done: Answer, timeout_s: float) -> DeviceError:
    """The error of a file that did not arrive as it was sent, although there is space for it on both sides."""
    if arrived >= size:
        return CommandFailed(
            f"{serial}: adb {doing} ({size} bytes) did not bring what was sent{done.quote()}; does something still "
            "write the file? Try again when it does not"
        )
    if done.code < 0:
        return DeviceTimeout(
            f"{serial}: adb {doing} had brought {arrived} of {size} bytes after {timeout_s:g} s; "
            "look at the device, the cable and the network"
        )
    return ConnectionLost(
        f"{serial}: the connection was lost during adb {doing}: {arrived} of {size} bytes arrived{done.quote()}; "
        "look at the cable or the network, then run it again"
    )


def _timeout(size: int) -> float:
    return _LEAST_TIMEOUT_S + size / _SLOWEST_BYTES_PER_S


def size_of(path: Path) -> int:
    """The size of a file of the host in bytes; raises :class:`DataError` where it cannot be read."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def sha256_of(path: Path) -> str:
    """The sha256 of a file of the host, in hexadecimal digits; raises :class:`DataError` where it cannot be read."""
    try:
        return file_content.sha256_of(path)
    except Unreadable as error:
        raise DataError(f"{path} cannot be read: {error}") from error
