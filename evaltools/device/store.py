"""Files kept on a device by their content, so that each is sent once."""

from __future__ import annotations

import hashlib
import posixpath
import shlex
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from evaltools.device.adb import Adb
from evaltools.device.detached import DetachedRun, end
from evaltools.device.errors import CommandFailed, NoPermission
from evaltools.device.files import push
from evaltools.device.patience import patiently
from evaltools.errors import DataError

STORE: Final = "store"
PROGRAMS: Final = "programs"
RUNS: Final = "runs"
FOLDERS: Final = (STORE, PROGRAMS, RUNS)
MARKER: Final = ".evaltools"
"""The file by which a folder is known as evaltools' own."""
_OTHERS: Final = 4
_LONGEST_NAME: Final = 200
"""Bytes; a name of 255 leaves no room for what is behind it while it is sent."""
_CLEAR_S: Final = 120.0
_BLOCK: Final = 1 << 20


class DeviceStore:
    """The files of one device below ``root/store``, each in a folder named after its sha256.

    ``patience_s`` is how long a device that is away is waited for, in seconds; ``stop`` ends that.
    ``on_sending`` gets a file that is sent, the bytes of it that have arrived, and its size, about once a second.
    """

    def __init__(
        self,
        adb: Adb,
        serial: str,
        root: str,
        patience_s: float = 0.0,
        stop: threading.Event | None = None,
        on_sending: Callable[[Path, int, int], None] | None = None,
    ) -> None:
        self.adb = adb
        self.serial = serial
        self.root = root
        self._patience_s = patience_s
        self._stop = stop
        self._on_sending = on_sending
        self._known: set[str] = set()
        self._is_claimed = False

    def put(self, local: Path, remote: str = "") -> str:
        """Send a file unless its content is there; returns its path on the device. Raises as :func:`push` does.

        ``remote`` is what :func:`remote_path` says, where that is known already.
        """
        remote = remote or remote_path(self.root, local)
        if remote in self._known:
            return remote
        self.claim()
        told = None if self._on_sending is None else partial(self._sending, local, local.stat().st_size)
        push(self.adb, self.serial, local, remote, patience_s=self._patience_s, stop=self._stop, on_progress=told)
        self._known.add(remote)
        return remote

    def _sending(self, local: Path, size: int, arrived: int) -> None:
        assert self._on_sending is not None
        self._on_sending(local, arrived, size)

    def claim(self) -> None:
        """Make the folder evaltools' own, and delete runs there that nobody has fetched for two days.

        Raises :class:`NoPermission` where it cannot be made, :class:`CommandFailed` where it holds other files.
        """
        if self._is_claimed:
            return
        answer = patiently(
            self.adb, self.serial, partial(self.adb.shell, self.serial, _claim_script(self.root)), self._patience_s
        )
        if answer.code == _OTHERS:
            raise CommandFailed(
                f"{self.serial}: {self.root} holds files that are not evaltools'; give a folder of its own with "
                "--device_folder",
                self.serial,
            )
        if answer.code != 0:
            raise NoPermission(
                f"{self.serial}: {self.root} cannot be made or written{answer.quote()}; give a folder below "
                "/data/local/tmp with --device_folder",
                self.serial,
            )
        self._is_claimed = True

    def let_all_read(self, remotes: Iterable[str]) -> None:
        """Let programs of other users, such as apps, read files of this store; raises :class:`CommandFailed`."""
        files = list(remotes)
        words = shlex.join([*dict.fromkeys(posixpath.dirname(path) for path in files)])
        answer = self.adb.shell(self.serial, f"chmod a+x {words} && chmod a+r {shlex.join(files)}")
        if answer.code != 0:
            raise CommandFailed(
                f"{self.serial}: files in {self.root} cannot be made readable for apps{answer.quote()}; give another "
                "--device_folder",
                self.serial,
            )

    def forget(self) -> None:
        """Look again which files are there, as after the device was away."""
        self._known.clear()
        self._is_claimed = False


def remote_path(root: str, local: Path) -> str:
    """Where a file lies on every device below ``root``; raises :class:`DataError` where it cannot be read."""
    return posixpath.join(root, STORE, sha256_of(local), _remote_name(local))


def clear(adb: Adb, serial: str, root: str) -> int:
    """End all runs below ``root``, delete what evaltools has put there, and say how many KiB that were.

    Nothing but evaltools' own folders is deleted, and ``root`` itself where it is empty then. Raises
    :class:`CommandFailed` where something stays.
    """
    quoted = shlex.quote(root)
    found = adb.shell(serial, f"test -e {quoted} || exit 1; test -f {quoted}/{MARKER} || exit {_OTHERS}")
    if found.code == 1:
        return 0
    if found.code != 0:
        raise CommandFailed(
            f"{serial}: {root} is no folder that evaltools has made, so that nothing is deleted in it; give the "
            "--device_folder of a run",
            serial,
        )
    answer = adb.shell(serial, f"ls -d {quoted}/{RUNS}/*/ 2> /dev/null || true")
    for folder in answer.text.splitlines():
        end(adb, DetachedRun(serial, folder.rstrip("/")))
    own = " ".join(FOLDERS)
    answer = adb.shell(
        serial,
        f"cd {quoted} || exit 1; s=0; for f in {own}; do [ -d $f ] || continue; "
        f"set -- $(du -sk $f) && s=$((s + $1)) && rm -rf $f || exit 1; done; rm -f {MARKER}; cd / && "
        f"{{ rmdir {quoted} 2> /dev/null || true; }}; echo $s",
        _CLEAR_S,
    )
    size = answer.text.split()[-1:]
    if answer.code != 0 or not size or not size[0].isdigit():
        raise CommandFailed(
            f"{serial}: what is in {root} cannot be deleted{answer.quote()}; look at it with adb shell ls -l {root}",
            serial,
        )
    return int(size[0])


def sha256_of(path: Path) -> str:
    """The sha256 of a file, as hexadecimal digits; raises :class:`DataError` where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def _claim_script(root: str) -> str:
    """Mark the folder, which is new, empty or marked already."""
    own = shlex.quote(root)
    return (
        f'mkdir -p {own} && cd {own} || exit 1; [ -e {MARKER} ] || [ -z "$(ls -A)" ] || exit {_OTHERS}; '
        f": > {MARKER} || exit 1; [ ! -d {RUNS} ] || "
        f"find {RUNS} -mindepth 1 -maxdepth 1 -mtime +1 -exec rm -rf {{}} \\; > /dev/null 2>&1; true"
    )


def _remote_name(local: Path) -> str:
    r"""The file's own name, or only its ending where it is no text of one line, or too long.

    >>> _remote_name(Path("a/my model.tflite")), _remote_name(Path("a/two\nlines.tflite"))
    ('my model.tflite', 'file.tflite')
    """
    if local.name.isprintable() and len(local.name.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME:
        return local.name
    return f"file{local.suffix}" if local.suffix.isprintable() else "file"
