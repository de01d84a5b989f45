"""The folder of evaltools on a device: its lock, and files kept there by their content, so that each is sent only once.

Archives are of many: the same files give the same bytes, so that they are sent once, too.
"""

from __future__ import annotations

import getpass
import hashlib
import io
import json
import os
import platform
import posixpath
import re
import shlex
import tarfile
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final

from evaltools.adb.client import DeviceError, DeviceInUse, Link
from evaltools.adb.detached import remove
from evaltools.adb.transfer import sha256_of, size_of
from evaltools.errors import DataError
from evaltools.file_content import MODEL_BYTES, Unreadable, content_of
from evaltools.text import printable

DEFAULT_ROOT: Final = "/data/local/tmp/evaltools"
"""The folder, where no flag names another."""
MARKER: Final = ".evaltools"
"""The file by which a folder is known as evaltools' own."""
OTHERS_FILES: Final = 4
_HELD: Final = 5
_OWNER: Final = re.compile(r"@(?P<host>\S+) \(process (?P<process>[0-9]{1,9})\) since ")
_RELEASE_S: Final = 5.0
STORE: Final = "store"
PROGRAMS: Final = "programs"
RUNS: Final = "runs"
KEPT: Final = "kept"
SESSIONS: Final = "sessions"
_CLEAR_S: Final = 120.0


class DeviceFolder:
    """The folder ``root`` of evaltools on a device; a context that holds its lock: one process at a time uses it.

    ``force`` takes the lock from its owner on entry.
    """

    def __init__(self, link: Link, root: str, force: bool = False) -> None:
        self.root = root
        self._link = link
        self._force = force
        self._lock_id = uuid.uuid4().hex

    def __enter__(self) -> DeviceFolder:
        self.take(self._force)
        return self

    def __exit__(self, *_error: object) -> None:
        """Delete the lock, if the device answers. Otherwise it is taken later by ``--force``."""
        with suppress(DeviceError):
            self._link.unstoppable(0.0).shell(release_script(self.root, self._lock_id), _RELEASE_S)

    def take(self, force: bool = False) -> None:
        """Make the folder evaltools' own, and take its lock, unless this lock has it already.

        Raises :class:`DeviceError` where another has it, where the folder has files of others or cannot be written, and
        the error of a device that stayed away.
        """
        serial, root = self._link.serial, self.root
        script = take_script(root, self._lock_id, _owner_now(), force)
        answer = self._link.patiently(partial(self._link.shell, script))
        if answer.code == 0:
            return
        if answer.code == _HELD:
            owner = next(iter(answer.text.splitlines()), "")
            if not force and _has_died(owner):
                self.take(force=True)
                return
            raise DeviceInUse(
                f"device {serial} is in use by {printable(owner) or 'another process'}; --force takes it, and "
                "ends what runs there"
            )
        if answer.code == OTHERS_FILES:
            raise DeviceError(
                f"{serial}: {root} holds files that are not evaltools'; give a folder of its own with --device_folder"
            )
        raise DeviceError(
            f"{serial}: {root} cannot be made or written{answer.quote()}; look at the space there, or give a folder "
            "below /data/local/tmp with --device_folder"
        )

    def is_there(self) -> bool:
        """Whether the folder exists; raises :class:`DeviceError` if it is not evaltools' own."""
        own = shlex.quote(self.root)
        found = self._link.shell(
            f"[ -e {own} ] || exit 1; cd {own} || exit {OTHERS_FILES}; [ ! -f {MARKER} ] || exit 0; "
            f'[ -r . ] && [ -z "$(ls -A)" ] && exit 1; exit {OTHERS_FILES}',
        )
        if found.code not in (0, 1):
            raise DeviceError(
                f"{self._link.serial}: {self.root} is not a folder that evaltools has made, so that nothing is deleted "
                "in it; give the --device_folder of a run"
            )
        return found.code == 0

    def remove_runs(self, of: str = RUNS) -> None:
        """End all runs in the folder, whose lock is held, and delete their folders, also where a stop was asked for."""
        link, folder = self._link.unstoppable(self._link.patience_s), posixpath.join(self.root, of)
        for name in link.shell(f"ls {shlex.quote(folder)} 2> /dev/null || true").text.splitlines():
            remove(link, posixpath.join(folder, name))

    def clear(self) -> int:
        """End all runs in the folder, whose lock is held, and delete evaltools' files there.

        Returns how many KiB were deleted. Raises :class:`DeviceError` where some of them stay.
        """
        self.remove_runs()
        self.remove_runs(SESSIONS)
        own, folders = shlex.quote(self.root), f"{PROGRAMS} {STORE} {RUNS} {KEPT} {SESSIONS}"
        answer = self._link.shell(
            f"cd {own} && mkdir -p {folders} && du -skc {folders} | tail -n 1 && rm -rf {folders}", _CLEAR_S
        )
        if answer.code != 0:
            raise DeviceError(
                f"{self._link.serial}: what is in {self.root} cannot be deleted{answer.quote()}; look at it with adb "
                f"shell ls -l {self.root}"
            )
        return int(answer.text.split()[0])


def take_script(root: str, lock_id: str, owner: str, force: bool = False) -> str:
    """A script that makes the lock, which only one of several can do at a time, and may be repeated by that one.

    ``owner`` is what stands in it, before ``lock_id``. ``force`` deletes that of another before. Where another has the
    lock, the script prints its owner. The marker is looked for twice, since another may make it before the folder is
    listed.
    """
    own, text = shlex.quote(root), shlex.quote(f"{owner}\n{lock_id}\n")
    return f"""\
mkdir -p {own} && cd {own} || exit 1
[ -e {MARKER} ] || [ -z "$(ls -A)" ] || [ -e {MARKER} ] || exit {OTHERS_FILES}
touch {MARKER} || exit 1
grep -qF {lock_id} lock/owner 2> /dev/null && exit 0
{"rm -rf lock" if force else ""}
if mkdir lock 2> /dev/null
then printf %s {text} > lock/owner || {{ rm -rf lock; exit 1; }}
else
[ -e lock ] || exit 1
cat lock/owner 2> /dev/null
exit {_HELD}
fi
"""


def release_script(root: str, lock_id: str) -> str:
    """A script that deletes the lock if it has this id, then the folder if it is empty."""
    own = shlex.quote(root)
    return f"""\
cd {own} && grep -qF {lock_id} lock/owner && rm -rf lock || exit 0
[ "$(ls -A)" != {MARKER} ] || {{ rm -f {MARKER}; cd /; rmdir {own}; }} 2> /dev/null
"""


def _has_died(owner: str) -> bool:
    """Whether an owner was a process of this computer that is no more: it was killed, and nobody else has the lock."""
    found = _OWNER.search(owner)
    return found is not None and found["host"] == platform.node() and not is_alive(int(found["process"]))


def is_alive(process: int) -> bool:
    """Whether this computer has a process of that number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _owner_now() -> str:
    """Who takes a lock now: ``USER@HOST (process NUMBER) since TIME``."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a number without a name, as in a container
        user = "somebody"
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return f"{user}@{platform.node()} (process {os.getpid()}) since {now}"


MOST_BYTES: Final = 32 << 20
"""The size of an archive: a cut link costs the sending of one."""


def remote_path(root: str, local: Path) -> str:
    """The path of a file on every device, below ``root``; raises :class:`DataError` where the file cannot be read.

    A name with control characters or broken bytes, which passes through no shell unharmed, leaves its ending.
    """
    name = next(filter(str.isprintable, (local.name, f"file{local.suffix}")), "file")
    return posixpath.join(root, STORE, sha256_of(local), name)


def stored_files(root: str, folder: Path, files: Iterable[Path]) -> tuple[str, dict[Path, str]]:
    """The path on every device of files of a folder, named after all their names and contents; and that of each.

    Raises :class:`DataError` for a file that cannot be read.
    """
    names, checksum = {path: path.relative_to(folder).as_posix() for path in sorted(files)}, hashlib.sha256()
    for path, name in names.items():
        checksum.update(f"{name}\0{sha256_of(path)}\0".encode("utf-8", "surrogateescape"))
    together = posixpath.join(root, STORE, checksum.hexdigest())
    return together, {path: posixpath.join(together, name) for path, name in names.items()}


def stored_folder(root: str, folder: Path) -> tuple[str, dict[Path, str]]:
    """The path of a folder on every device, and its files with their paths there, as :func:`stored_files` has them."""
    return stored_files(root, folder, (path for path in folder.rglob("*") if path.is_file()))


def archives(folder: Path, files: Sequence[Path], most_bytes: int = MOST_BYTES) -> Iterator[bytes]:
    """Tar archives of ``files`` below ``folder``, in their order: each of so many bytes at most, or of one larger file.

    They are without times and owners; pictures do not become smaller, so they are not compressed. Raises
    :class:`DataError` for a file that cannot be read.
    """
    left = deque(files)
    while left:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            while left and (not packed.tell() or packed.tell() + size_of(left[0]) <= most_bytes):
                file = left.popleft()
                try:
                    content = content_of(file, MODEL_BYTES)
                except Unreadable as error:
                    raise DataError(f"{file} cannot be read: {error}") from error
                entry = tarfile.TarInfo(file.relative_to(folder).as_posix())
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        yield packed.getvalue()


def names_in(folder: Path) -> bytes:
    """The names and the sizes in bytes of all files of a folder of pictures, as JSON ``[[name, size], ...]``.

    A device gets the content of some files only. With all names, examples have the same numbers there. Names that are
    no Unicode are kept.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return json.dumps([[file.name, size_of(file)] for file in files]).encode()
