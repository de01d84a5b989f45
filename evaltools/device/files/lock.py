"""A lock in a device's folder: a folder made by ``mkdir``, in which a file says who has it since when."""

from __future__ import annotations

import getpass
import os
import platform
import re
import shlex
import threading
import uuid
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final

from evaltools.device.adb.adb import Adb, patiently
from evaltools.device.adb.errors import CommandFailed, DeviceBusy, DeviceError, NoPermission, NoSpace
from evaltools.device.adb.facts import free_bytes
from evaltools.device.adb.process import ShellAnswer
from evaltools.text import printable

MARKER: Final = ".evaltools"
"""The file by which a folder is known as evaltools' own."""
LOCK: Final = "lock"
OWNER: Final = f"{LOCK}/owner"
OTHERS_FILES: Final = 4
_HELD: Final = 5
_RELEASE_S: Final = 5.0
_LOCK_ID: Final = re.compile("[0-9a-f]{32}")
_ANY: Final = "any"


class DeviceLock:
    """Makes sure that one process at a time uses ``root`` on a device; a context that holds the lock.

    ``patience_s`` is the number of seconds that it waits for a device that is away; ``stop`` ends that. ``force`` takes
    the lock from its owner on entry. One whose owner was a process of the same user on this computer that is gone, as
    one that was killed, is taken in any case.
    """

    def __init__(
        self,
        adb: Adb,
        serial: str,
        root: str,
        patience_s: float = 0.0,
        stop: threading.Event | None = None,
        force: bool = False,
    ) -> None:
        self.root = root
        self._adb = adb
        self._serial = serial
        self._patience_s = patience_s
        self._stop = stop
        self._force = force
        self._lock_id = uuid.uuid4().hex

    def __enter__(self) -> DeviceLock:
        self._take(_ANY if self._force else "")
        return self

    def __exit__(self, *_error: object) -> None:
        """Delete the lock, if the device answers. Otherwise it is taken over later, or by ``--force``."""
        with suppress(DeviceError):
            self._adb.shell(self._serial, release_script(self.root, self._lock_id), _RELEASE_S)

    def take(self) -> None:
        """Make the folder evaltools' own, and take its lock, unless this lock has it already.

        Raises :class:`DeviceBusy` where another has it, :class:`CommandFailed` where the folder has files of others,
        :class:`NoPermission` or :class:`NoSpace` where the folder cannot be written, and the error of a device that
        stayed away.
        """
        self._take()

    def _take(self, takes: str = "") -> None:
        owner = f"{_owner_now()}\n{self._lock_id}\n{_process_now()}\n"
        script = take_script(self.root, self._lock_id, owner, takes)
        act = partial(self._adb.shell, self._serial, script, stop=self._stop)
        answer = patiently(self._adb, self._serial, act, self._patience_s, self._stop)
        if answer.code == _HELD:
            owner, lock_id, process, *_ = [*answer.text.splitlines(), "", "", ""]
            if lock_id != takes and _LOCK_ID.fullmatch(lock_id) and _has_ended(process):
                self._take(lock_id)
                return
            raise DeviceBusy(
                f"device {self._serial} is in use by {printable(owner) or 'another process'}; --force takes it, and "
                "ends what runs there",
                self._serial,
            )
        if answer.code != 0:
            raise self._why_not_taken(answer)

    def _why_not_taken(self, answer: ShellAnswer) -> DeviceError:
        serial, root = self._serial, self.root
        if answer.code == OTHERS_FILES:
            return CommandFailed(
                f"{serial}: {root} holds files that are not evaltools'; give a folder of its own with --device_folder",
                serial,
            )
        free = free_bytes(self._adb.shell(serial, f"df -k {shlex.quote(root)}").text)
        if free == 0:
            return NoSpace(f"{serial}: the lock does not fit into {root}, which has 0 bytes free; delete some", serial)
        return NoPermission(
            f"{serial}: {root} cannot be made or written{answer.quote()}; give a folder below /data/local/tmp with "
            "--device_folder",
            serial,
        )


def take_script(root: str, lock_id: str, owner: str, takes: str = "") -> str:
    """A script that makes the lock, which only one of several can do at a time, and may be repeated by that one.

    ``owner`` is what stands in it, with ``lock_id`` in a line. ``takes`` is the id of a lock that is deleted before,
    or ``any``. Where another has the lock, the script prints its owner. The marker is looked for twice, since another
    may make it before the folder is listed.
    """
    own, text = shlex.quote(root), shlex.quote(owner)
    taking = f"rm -rf {LOCK}" if takes == _ANY else f"grep -qF {takes} {OWNER} 2> /dev/null && rm -rf {LOCK}"
    is_own = f"grep -qF {lock_id} {OWNER} 2> /dev/null"
    return f"""\
mkdir -p {own} && cd {own} || exit 1
[ -e {MARKER} ] || [ -z "$(ls -A)" ] || [ -e {MARKER} ] || exit {OTHERS_FILES}
touch {MARKER} || exit 1
{is_own} && exit 0
{taking if takes else ""}
if mkdir {LOCK} 2> /dev/null
then printf %s {text} > {OWNER} || {{ rm -rf {LOCK}; exit 1; }}
else
[ -e {LOCK} ] || exit 1
cat {OWNER} 2> /dev/null
exit {_HELD}
fi
"""


def release_script(root: str, lock_id: str) -> str:
    """A script that deletes the lock if it has this id, then the folder if it is empty."""
    own = shlex.quote(root)
    return f"""\
cd {own} && grep -qF {lock_id} {OWNER} && rm -rf {LOCK} || exit 0
[ "$(ls -A)" != {MARKER} ] || {{ rm -f {MARKER}; cd /; rmdir {own}; }} 2> /dev/null
"""


def _owner_now() -> str:
    """Who takes a lock now: ``USER@HOST since TIME``."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a number without a name, as in a container
        user = "somebody"
    return f"{user}@{platform.node()} since {datetime.now(timezone.utc).isoformat(timespec='seconds')}"


def _process_now() -> str:
    """The running process, as this computer tells it: boot, processes and user, then its number and start.

    Empty where the system does not say all that.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')} {os.getuid()} {os.getpid()} {_start_of(str(os.getpid()))}"
    except OSError:
        return ""


def _start_of(process: str) -> str:
    """When the process of this number was started, in the kernel's ticks; empty where none goes on."""
    try:
        state, *more = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state == "Z" else more[18]


def _has_ended(process: str) -> bool:
    """Whether what :func:`_process_now` gave was a process of this computer and user that is gone.

    >>> _has_ended(_process_now()), _has_ended("of another computer 1 2 3"), _has_ended("")
    (False, False, False)
    """
    *place, number, start = ["", "", *process.split()]
    *here, _, _ = ["", "", *_process_now().split()]
    return place == here and number.isdecimal() and _start_of(number) != start
