"""Files to and from a device: under another name first, compared by their sha256, then renamed."""

from __future__ import annotations

import hashlib
import os
import posixpath
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaltools.device.adb import Adb
from evaltools.device.answer import Answer
from evaltools.device.errors import CommandFailed, DeviceError, NoPermission, NoSpace, TransferFailed
from evaltools.errors import DataError, OutputError

PART: Final = ".part"
_LEAST_TIMEOUT_S: Final = 60.0
_SLOWEST_BYTES_PER_S: Final = 500_000.0
_BLOCK: Final = 1 << 20


@dataclass(frozen=True)
class Transfer:
    """A file that is the same on both sides; ``was_there``: it had not to be sent."""

    size_bytes: int
    sha256: str
    was_there: bool = False


def push(adb: Adb, serial: str, local: Path, remote: str, timeout_s: float | None = None) -> Transfer:
    """Put a file on the device, whole or not at all; one with the same sha256 is left there.

    ``remote`` is an absolute path of the device; its folder is made. ``timeout_s`` is that of the sending, by default a
    minute and more for large files. Raises :class:`DataError` where ``local`` cannot be read, and
    :class:`DeviceError`, of which :class:`NoSpace`, :class:`NoPermission` and :class:`TransferFailed` are about files.
    """
    size, digest = _local_sum(local)
    if _remote_sum(adb, serial, remote, size) == digest:
        return Transfer(size, digest, was_there=True)
    part, folder = remote + PART, posixpath.dirname(remote)
    prepared = adb.shell(
        serial, f"test ! -d {shlex.quote(remote)} && mkdir -p {shlex.quote(folder)} && rm -f {shlex.quote(part)}"
    )
    if prepared.code != 0:
        raise _why_not_written(adb, serial, remote, size, prepared.quote())
    done = adb.run(["-s", serial, "push", os.path.abspath(local), part], timeout_s or _timeout(size))
    if _remote_sum(adb, serial, part, size) != digest:
        adb.shell(serial, f"rm -f {shlex.quote(part)}")
        if _local_sum(local)[1] != digest:
            raise DataError(f"{local} changed while it was sent to {serial}; let it rest, then try again")
        late = "; its time was over" if done.code is None else done.quote()
        raise _why_not_written(adb, serial, remote, size, late)
    moved = adb.shell(serial, f"mv -f {shlex.quote(part)} {shlex.quote(remote)}")
    if moved.code != 0:
        raise _why_not_written(adb, serial, remote, size, moved.quote())
    return Transfer(size, digest)


def pull(adb: Adb, serial: str, remote: str, local: Path, timeout_s: float | None = None) -> Transfer:
    """Fetch a file, whole or not at all. What ``local`` held before is deleted first: an old file is no success.

    Raises :class:`OutputError` where ``local`` cannot be written, and :class:`DeviceError` as :func:`push` does.
    """
    part = Path(os.path.abspath(local) + PART)
    try:
        local.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{local} cannot be replaced: {error.strerror}") from error
    size = _remote_size(adb, serial, remote)
    digest = _remote_sum(adb, serial, remote, size)
    if digest is None:
        raise NoPermission(f"{serial}: {remote} cannot be read; look at its permissions with ls -l", serial)
    done = adb.run(["-s", serial, "pull", remote, str(part)], timeout_s or _timeout(size))
    try:
        if not part.is_file() or _local_sum(part)[1] != digest:
            adb.shell(serial, "true")  # names a lost link as such
            raise TransferFailed(
                f"{serial}: {remote} ({size} bytes) did not arrive whole{done.quote()}; look at the space left for "
                f"{part.parent}, and whether something still writes the file, then try again",
                serial,
            )
        part.replace(local)
    except OSError as error:
        raise OutputError(f"{local} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return Transfer(size, digest)


def _timeout(size: int) -> float:
    return _LEAST_TIMEOUT_S + size / _SLOWEST_BYTES_PER_S


def _local_sum(path: Path) -> tuple[int, str]:
    """Size in bytes and sha256 of a file here."""
    digest, size = hashlib.sha256(), 0
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    return size, digest.hexdigest()


def _remote_sum(adb: Adb, serial: str, path: str, size: int) -> str | None:
    """The sha256 of a file of the device, None where it cannot be read; :class:`CommandFailed` without sha256sum."""
    quoted = shlex.quote(path)
    answer = adb.shell(
        serial,
        f"test -f {quoted} && test -r {quoted} || exit 1; for tool in '' toybox busybox; do "
        f"$tool sha256sum < {quoted} 2> /dev/null && exit 0; done; exit 3",
        _timeout(size),
    )
    if answer.code == 1:
        return None
    digest = answer.text.split()[:1]
    if answer.code != 0 or not digest or len(digest[0]) != 64:
        raise CommandFailed(
            f"{serial}: no sha256sum, which every Android from 6 on and every Linux has{answer.quote()}; "
            "files cannot be compared without it, so use another device",
            serial,
        )
    return digest[0]


def _remote_size(adb: Adb, serial: str, path: str) -> int:
    answer = adb.shell(
        serial, f"test -f {shlex.quote(path)} && test -r {shlex.quote(path)} && wc -c < {shlex.quote(path)}"
    )
    if answer.code != 0:
        raise _why_not_read(adb, serial, path, answer)
    return int(answer.text)


def _why_not_read(adb: Adb, serial: str, path: str, answer: Answer) -> DeviceError:
    if adb.shell(serial, f"test -f {shlex.quote(path)}").code == 0:
        return NoPermission(f"{serial}: {path} cannot be read; look at its permissions with ls -l", serial)
    return TransferFailed(
        f"{serial}: there is no file {path}{answer.quote()}; what should have written it did not", serial
    )


def _why_not_written(adb: Adb, serial: str, remote: str, size: int, quote: str) -> DeviceError:
    """Why a file did not arrive: the device is asked for its folder and its space, adb's messages are not read."""
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


def free_bytes(df: str) -> int | None:
    r"""The space left in the output of ``df -k FOLDER``, in bytes; None where it is not a table in blocks of 1 KiB.

    A long name of a file system may break the line in two.

    >>> free_bytes("Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/block/dm-5 100 60 40 60% /data\n")
    40960
    """
    lines = df.splitlines()
    headings = [number for number, line in enumerate(lines) if line.startswith("Filesystem")]
    if not headings or not ("1K-blocks" in lines[headings[-1]] or "1024-blocks" in lines[headings[-1]]):
        return None
    cells = " ".join(lines[headings[-1] + 1 :]).split()
    if len(cells) < 6 or not cells[3].isdigit():
        return None
    return int(cells[3]) * 1024
