"""Files kept on a device by their content, so that each is sent once."""

from __future__ import annotations

import posixpath
import re
import shlex
import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.answer import Answer
from evaltools.device.adb.errors import CommandFailed, DeviceError, NoPermission, TransferFailed
from evaltools.device.adb.patience import patiently
from evaltools.device.files.archive import size_of
from evaltools.device.files.transfer import local_sum, push
from evaltools.device.programs.detached import DetachedRun, end
from evaltools.device.programs.scripts import in_use_script

STORE: Final = "store"
PROGRAMS: Final = "programs"
RUNS: Final = "runs"
MARKER: Final = ".evaltools"
"""The file by which a folder is known as evaltools' own."""
_CLEARED: Final = ".cleared"
_LEASE: Final = ".lease"
_DIGITS: Final = "[0-9a-f]"
_OWN_NAMES: Final = {
    PROGRAMS: f"{_DIGITS}{{16}}(\\.{_DIGITS}{{12}}\\.part)?",
    STORE: f"{_DIGITS}{{64}}",
    RUNS: f"[0-9]+-of-[0-9]+-{_DIGITS}{{16}}",
}
"""The names that evaltools makes in each of its folders, as expressions of grep -E."""
_OWN_PATHS: Final = "|".join(
    (
        re.escape(MARKER),
        *(f"{folder}(/{names})?" for folder, names in _OWN_NAMES.items()),
        f"evaltools-{_DIGITS}{{8}}\\{_LEASE}",
        f"evaltools-{_DIGITS}{{12}}\\{_CLEARED}(/({'|'.join(_OWN_NAMES)}))?",
    )
)
"""The names that evaltools makes in its folder and one level below, as an expression of grep -E."""
_OWN_ONLY: Final = (
    "{ l=$(find . -mindepth 1 -maxdepth 2) && "
    f"""[ $(printf '%s\\n' "$l" | grep -cE {shlex.quote(f"^([.]/({_OWN_PATHS}))?$")}) """
    """-eq $(printf '%s\\n' "$l" | wc -l) ]; }"""
)
"""Whether a folder holds nothing else; not so where a tool fails."""
_RUN_NAMES: Final = f"[0-9]*-of-[0-9]*-{_DIGITS * 16}"
"""Those of runs as a pattern of find, which takes no other name than a run's."""
_LEASES: Final = f"evaltools-{'?' * 8}{_LEASE}"
_TRASH: Final = f"evaltools-{'?' * 12}{_CLEARED}"
_TRIES: Final = "1 2 3 4 5"
"""Of what another desk may undo between two steps."""
_OTHERS: Final = 4
_IN_USE: Final = 5
_LONGEST_NAME: Final = 200
"""Bytes; a name of 255 leaves no room for what is behind it while it is sent."""
_CLEAR_S: Final = 120.0
_RELEASE_S: Final = 5.0


def new_mark() -> str:
    """Eight hexadecimal digits that nothing else has."""
    return uuid.uuid4().hex[:8]


class DeviceStore:
    """The files of one device below ``root/store``, each in a folder named after its sha256.

    ``patience_s`` is how long a device that is away is waited for, in seconds; ``stop`` ends that, and the sending.
    ``on_sending`` gets a file that is sent, the bytes of it that have arrived, and its size, about once a second.
    ``mark`` has 8 hexadecimal digits that tell the desk from others; a run that is begun again has that of before.

    Attributes:
        lease: the name of the file below ``root`` by which others see that this desk uses what is there, from its
            first file until :meth:`release`
    """

    def __init__(
        self,
        adb: Adb,
        serial: str,
        root: str,
        patience_s: float = 0.0,
        stop: threading.Event | None = None,
        on_sending: Callable[[Path, int, int], None] | None = None,
        mark: str = "",
    ) -> None:
        self.adb = adb
        self.serial = serial
        self.root = root
        self.stop = stop
        self.lease = f"evaltools-{mark or new_mark()}{_LEASE}"
        self._has_lease = False
        self._patience_s = patience_s
        self._on_sending = on_sending
        self._known: set[str] = set()

    def put(self, local: Path, remote: str = "") -> str:
        """Send a file unless its content is there; returns its path on the device. Raises as :func:`push` does.

        ``remote`` is what :func:`remote_path` says, where that is known already. Another desk may delete everything at
        any time: a file that was sent is looked for, and one whose folder is deleted under it is sent again, once.
        """
        remote = remote or remote_path(self.root, local)
        if remote in self._known and self.has(remote):
            return remote
        try:
            self._send(local, remote)
        except (NoPermission, TransferFailed):
            if self.has(posixpath.dirname(remote)):
                raise
            self._send(local, remote)
        self._known.add(remote)
        return remote

    def has(self, path: str) -> bool:
        """Whether a file or folder is on the device now; raises :class:`DeviceError` where the device is away."""
        lease = shlex.quote(posixpath.join(self.root, self.lease))
        lasting = f"touch {lease} 2> /dev/null; " if self._has_lease else ""
        return self._shell(f"{lasting}test -e {shlex.quote(path)}").code == 0

    def _send(self, local: Path, remote: str) -> None:
        self.claim()
        told = None if self._on_sending is None else partial(self._sending, local, size_of(local))
        push(self.adb, self.serial, local, remote, patience_s=self._patience_s, stop=self.stop, on_progress=told)

    def _sending(self, local: Path, size: int, arrived: int) -> None:
        assert self._on_sending is not None
        self._on_sending(local, arrived, size)

    def claim(self) -> None:
        """Make the folder evaltools' own, lease it, and delete runs there that nobody has fetched for two days.

        A folder without the marker in which everything has evaltools' own names is its own as well. Raises
        :class:`NoPermission` where it cannot be made, :class:`CommandFailed` where it holds other files,
        :class:`DeviceStopped`, and the error of a device that stayed away.
        """
        self._has_lease = True
        answer = self._shell(_claim_script(self.root, self.lease))
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

    def release(self) -> None:
        """Give the lease up, as far as that can be done now; one that stays counts no more after an hour."""
        if self._has_lease:
            self._has_lease = False
            with suppress(DeviceError):
                lease = posixpath.join(self.root, self.lease)
                self.adb.shell(self.serial, f"rm -f {shlex.quote(lease)}", _RELEASE_S)

    def let_all_read(self, remotes: Iterable[str]) -> None:
        """Let programs of other users, such as apps, read files of this store, and go through the folders above them.

        Raises :class:`CommandFailed` where that cannot be done, and :class:`DeviceError` as :meth:`claim` does.
        """
        files = list(remotes)
        folders = [self.root, posixpath.join(self.root, STORE), *(posixpath.dirname(path) for path in files)]
        opened = shlex.join(dict.fromkeys(folders))
        answer = self._shell(f"chmod a+x {opened} && chmod a+r {shlex.join(files)}")
        if answer.code != 0:
            raise CommandFailed(
                f"{self.serial}: files in {self.root} cannot be made readable for apps{answer.quote()}; give another "
                "--device_folder",
                self.serial,
            )

    def _shell(self, command: str) -> Answer:
        """Run a command that may be repeated."""
        act = partial(self.adb.shell, self.serial, command, stop=self.stop)
        return patiently(self.adb, self.serial, act, self._patience_s, self.stop)

    def runs_of(self, mark: str) -> list[str]:
        """The folders of the runs here whose names bear a mark."""
        runs = posixpath.join(self.root, RUNS)
        found = self._shell(f"ls {shlex.quote(runs)} 2> /dev/null || true").text.split()
        return [posixpath.join(runs, name) for name in found if f"-{mark}" in name]

    def forget(self) -> None:
        """Look again which files are there, as after the device was away."""
        self._known.clear()


def remote_path(root: str, local: Path) -> str:
    """Where a file lies on every device below ``root``; raises :class:`DataError` where it cannot be read."""
    return posixpath.join(root, STORE, sha256_of(local), _remote_name(local))


def clear(adb: Adb, serial: str, root: str) -> int:
    """End all runs below ``root``, delete what evaltools has put there, and say how many KiB that were.

    Nothing but what has evaltools' own names is deleted, and ``root`` itself where it is empty then; the marker stays
    beside files of others. Another desk finds each file or folder whole or not at all. Raises :class:`CommandFailed`
    where something of evaltools stays.
    """
    if not _is_there(adb, serial, root):
        return 0
    runs = posixpath.join(root, RUNS)
    ended = set(adb.shell(serial, f"ls {shlex.quote(runs)} 2> /dev/null || true").text.split())
    for name in sorted(ended):
        end(adb, DetachedRun(serial, posixpath.join(runs, name)))
    *deleted, size = _delete(adb, serial, root, "")
    for name in sorted({*deleted} - ended):
        end(adb, DetachedRun(serial, posixpath.join(runs, name)))
    return int(size)


def clear_unused(adb: Adb, serial: str, root: str, lease: str) -> bool:
    """As :func:`clear`, but leave everything where others use what is below ``root``; says whether it was deleted.

    Others are runs that go on there, and desks with a lease; ``lease`` is one's own, which is given up in any case.
    """
    if not _is_there(adb, serial, root):
        return True
    unless = f"rm -f {shlex.quote(lease)}\nif {in_use_script(RUNS, _LEASES)}then exit {_IN_USE}; fi"
    return bool(_delete(adb, serial, root, unless))


def _is_there(adb: Adb, serial: str, root: str) -> bool:
    """Whether there is anything at ``root``; raises :class:`CommandFailed` where it is not evaltools' own."""
    found = adb.shell(serial, _look_script(root))
    if found.code not in (0, 1):
        raise CommandFailed(
            f"{serial}: {root} is no folder that evaltools has made, so that nothing is deleted in it; give the "
            "--device_folder of a run",
            serial,
        )
    return found.code == 0


def _delete(adb: Adb, serial: str, root: str, unless: str) -> list[str]:
    """Delete evaltools' own folders; the names of the runs among them, then how many KiB that were.

    Empty where ``unless``, a script in ``root``, left with the code for that. Raises :class:`CommandFailed`.
    """
    answer = adb.shell(serial, _delete_script(root, unless), _CLEAR_S)
    words = answer.text.split()
    if answer.code == _IN_USE:
        return []
    if answer.code != 0 or not words or not words[-1].isdigit():
        raise CommandFailed(
            f"{serial}: what is in {root} cannot be deleted{answer.quote()}; look at it with adb shell ls -l {root}",
            serial,
        )
    return words


def sha256_of(path: Path) -> str:
    """The sha256 of a file, as hexadecimal digits; raises :class:`DataError` where it cannot be read."""
    return local_sum(path)[1]


def _claim_script(root: str, lease: str) -> str:
    """Mark the folder, which is new, marked already, or holds nothing but what has evaltools' names.

    Another desk may delete the folder after each step, so that it is made again some times.
    """
    own = shlex.quote(root)
    return f"""\
for n in {_TRIES}; do
c=1
mkdir -p {own} && cd {own} || continue
[ -e {MARKER} ] || {_OWN_ONLY} || {{ c={_OTHERS}; continue; }}
touch {own}/{MARKER} {own}/{shlex.quote(lease)} || continue
[ ! -d {RUNS} ] || find {RUNS} -mindepth 1 -maxdepth 1 -name '{_RUN_NAMES}' -mtime +1 \\
-exec rm -rf {{}} \\; > /dev/null 2>&1
exit 0
done
exit $c
"""


def _look_script(root: str) -> str:
    """Leave with 0 where there is anything of evaltools, with 1 where there is nothing at all.

    Another desk may delete the folder after each step, and somebody make it again.
    """
    own = shlex.quote(root)
    return f"""\
for n in {_TRIES}; do
[ -e {own} ] || exit 1
cd {own} || continue
[ -f {MARKER} ] && exit 0
[ -r . ] || exit {_OTHERS}
[ -n "$(ls -A)" ] || exit 1
{_OWN_ONLY} && exit 0
done
exit {_OTHERS}
"""


def _delete_script(root: str, unless: str) -> str:
    """Take the folders away under another name, each at once, then delete them.

    Where one holds names that evaltools does not make, it stays with them, and what is evaltools' own is taken out of
    it. The marker goes last, and only where nothing has come meanwhile. Another desk that deletes may take the folder
    away before anything is done here, so that it is looked for anew, and later the new name.
    """
    own, trash = shlex.quote(root), f"evaltools-{uuid.uuid4().hex[:12]}{_CLEARED}"
    folders = "\n".join(f"take_own {folder} {shlex.quote(f'^({names})$')}" for folder, names in _OWN_NAMES.items())
    return f"""\
take() {{
for m in {_TRIES}; do
[ -e $1 ] || return 0
mkdir -p {trash}/$2 && mv $1 {trash}/$2/. && return 0
done
return 1
}}
take_own() {{
for k in {_TRIES}; do
[ -e $1 ] || return 0
l=$(ls -A $1) || continue
if [ -z "$l" ] || [ $(printf '%s\\n' "$l" | grep -cE "$2") -eq $(printf '%s\\n' "$l" | wc -l) ]; then take $1 . || e=1
else for i in $(printf '%s\\n' "$l" | grep -E "$2"); do take $1/$i $1 || e=1; done
fi
return 0
done
e=1
}}
for n in {_TRIES}; do
[ -e {own} ] || {{ echo 0; exit 0; }}
cd {own} || continue
{unless}
mkdir {trash} || continue
e=0 s=0
rm -f {_LEASES} || e=1
{folders}
[ ! -d {trash}/{RUNS} ] || ls {trash}/{RUNS}
for f in {_TRASH}/*; do
[ -e $f ] || continue
set -- $(du -sk $f 2> /dev/null)
s=$((s + ${{1:-0}}))
done
rm -rf {_TRASH} 2> /dev/null || rm -rf {_TRASH} || e=1
[ "$(ls -A)" != {MARKER} ] || rm -f {MARKER}
cd / && rmdir {own} 2> /dev/null
echo $s
exit $e
done
exit 1
"""


def _remote_name(local: Path) -> str:
    r"""The file's own name, or only its ending where it is no text of one line, or too long.

    >>> _remote_name(Path("a/my model.tflite")), _remote_name(Path("a/two\nlines.tflite"))
    ('my model.tflite', 'file.tflite')
    """
    if local.name.isprintable() and len(local.name.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME:
        return local.name
    return f"file{local.suffix}" if local.suffix.isprintable() else "file"
