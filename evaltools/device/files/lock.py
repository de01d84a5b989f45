"""A lock file in a device's folder, which allows one user at a time and says who it is."""

from __future__ import annotations

import os
import platform
import shlex
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from typing import Final

import msgspec

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.answer import ShellAnswer
from evaltools.device.adb.errors import CommandFailed, DeviceBusy, DeviceError, NoPermission, NoSpace
from evaltools.device.adb.facts import free_bytes
from evaltools.device.adb.patience import patiently
from evaltools.documents import json_as
from evaltools.text import printable

MARKER: Final = ".evaltools"
"""The file by which a folder is known as evaltools' own."""
LOCK: Final = "lock"
OTHERS_FILES: Final = 4
STALE_AFTER_S: Final = 1080.0
"""A holder that has not renewed its lock for so long is gone; longer than a run that nobody looks at goes on."""
_HELD: Final = 5
_RENEW_S: Final = 60.0
_RELEASE_S: Final = 5.0
_HELD_HERE: Final = set[str]()
"""The identifiers of the locks that this process holds now."""


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock.

    ``processes`` names the space that ``pid`` is counted in, which tells containers of the same host name apart.
    ``since`` is ISO 8601. A lock that was not renewed for ``stale_after_s`` seconds is no longer valid.
    """

    lock_id: str
    host: str
    pid: int
    processes: str
    since: str
    stale_after_s: float

    @property
    def text(self) -> str:
        """The content of the lock file."""
        return msgspec.json.encode(self).decode()

    @property
    def name(self) -> str:
        """The process and computer of the holder, for messages."""
        return printable(f"process {self.pid} on {self.host}")

    @property
    def has_ended(self) -> bool:
        """Whether the holder is a process of this computer that has ended."""
        if (self.host, self.processes) != (platform.node(), _process_space()):
            return False
        if self.pid == os.getpid():
            return self.lock_id not in _HELD_HERE
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:
            return False
        return False


class DeviceLock:
    """Makes sure that one process at a time uses ``root`` on a device; a context that holds the lock.

    ``patience_s`` is the number of seconds that it waits for a device that is away; ``stop`` ends that. A thread renews
    the lock every minute; without that it is valid for ``stale_after_s`` seconds. ``force`` takes the lock from any
    holder. ``tell`` gets a line where the lock is taken from another holder. ``cleaning`` is the command that ends and
    deletes what is in the folder, for messages.
    """

    def __init__(
        self,
        adb: Adb,
        serial: str,
        root: str,
        patience_s: float = 0.0,
        stop: threading.Event | None = None,
        stale_after_s: float = STALE_AFTER_S,
        force: bool = False,
        tell: Callable[[str], None] = lambda _line: None,
        cleaning: str = "evaltools device clean",
    ) -> None:
        self.root = root
        self._adb = adb
        self._serial = serial
        self._patience_s = patience_s
        self._stop = stop
        self._force = force
        self._tell = tell
        self._cleaning = cleaning
        since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._own = Holder(
            uuid.uuid4().hex, platform.node(), os.getpid(), _process_space(), since, max(stale_after_s, STALE_AFTER_S)
        )
        self._lost: DeviceBusy | None = None
        self._released = threading.Event()
        self._renewing = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> DeviceLock:
        _HELD_HERE.add(self._own.lock_id)
        try:
            self.take()
        except BaseException:
            _HELD_HERE.discard(self._own.lock_id)
            raise
        self._renewing.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._released.set()
        self._renewing.join(_RELEASE_S)
        _HELD_HERE.discard(self._own.lock_id)
        self._release()

    def take(self) -> None:
        """Make the folder evaltools' own, and hold it; a lock that is held already is renewed.

        Raises :class:`DeviceBusy` where another holds it, :class:`CommandFailed` where the folder has files of others,
        :class:`NoPermission` or :class:`NoSpace` where nothing can be written there, and the error of a device that
        stayed away.
        """
        act = partial(self._adb.shell, self._serial, take_script(self.root, self._own), stop=self._stop)
        answer = patiently(self._adb, self._serial, act, self._patience_s, self._stop)
        if answer.code == _HELD:
            age, _, text = answer.text.partition("\n")
            self._take_over(text, int(age) if age.strip().isdigit() else 0)
        else:
            self._require_taken(answer)
        self._lost = None

    def require(self) -> None:
        """Raise :class:`DeviceBusy` where another has taken the lock meanwhile."""
        if self._lost is not None:
            raise self._lost

    def _take_over(self, text: str, age_s: int) -> None:
        """Take the lock with this ``text`` from its holder, if that has ended or is silent.

        ``age_s`` is the lock's age.
        """
        holder = read_holder(text)
        who = "another process" if holder is None else f"{holder.name} (since {printable(holder.since)})"
        stale_after_s = STALE_AFTER_S if holder is None else holder.stale_after_s
        if holder is not None and holder.has_ended:
            why = "which has ended without giving it back"
        elif age_s > stale_after_s:
            why = f"of which nothing was heard for {age_s // 60} minutes"
        elif self._force:
            why = "as asked with --force"
        else:
            raise DeviceBusy(
                f"{self._serial}: {self.root} is in use by {who}, which was heard of {age_s} s ago; wait until it has "
                f"ended, give another --device_folder, or take it with {self._cleaning} --force, which ends that run",
                self._serial,
            )
        answer = self._adb.shell(self._serial, take_script(self.root, self._own, text.rstrip("\n")), stop=self._stop)
        if answer.code == _HELD:
            raise DeviceBusy(
                f"{self._serial}: another process has just taken {self.root}; wait until it has ended", self._serial
            )
        self._require_taken(answer)
        self._tell(f"{self._serial}: {self.root} is taken over from {who}, {why}")

    def _require_taken(self, answer: ShellAnswer) -> None:
        serial, root = self._serial, self.root
        if answer.code == OTHERS_FILES:
            raise CommandFailed(
                f"{serial}: {root} holds files that are not evaltools'; give a folder of its own with --device_folder",
                serial,
            )
        if answer.code == 0:
            return
        free = free_bytes(self._adb.shell(serial, f"df -k {shlex.quote(root)}").text)
        if free is not None and free < len(self._own.text):
            raise NoSpace(f"{serial}: nothing fits into {root}, which has {free} bytes free; delete some", serial)
        raise NoPermission(
            f"{serial}: {root} cannot be made or written{answer.quote()}; give a folder below /data/local/tmp with "
            "--device_folder",
            serial,
        )

    def _renew(self) -> None:
        while not self._released.wait(_RENEW_S):
            try:
                answer = self._adb.shell(self._serial, take_script(self.root, self._own))
            except DeviceError:
                continue
            if answer.code == _HELD:
                holder = read_holder(answer.text.partition("\n")[2])
                who = "another process" if holder is None else holder.name
                self._lost = DeviceBusy(f"{self._serial}: {self.root} was taken over by {who}", self._serial)

    def _release(self) -> None:
        """Delete the lock, if the device answers. Otherwise it becomes invalid when this process ends."""
        with suppress(DeviceError):
            self._adb.shell(self._serial, release_script(self.root, self._own), _RELEASE_S)


def take_script(root: str, holder: Holder, instead_of: str | None = None) -> str:
    """A script that makes the lock file, which only one of several can do at a time.

    ``instead_of`` is the text of a lock that the script deletes first. It may be repeated by the same ``holder``. Where
    another holds the lock, it prints the lock's age in seconds, then its text. The marker is looked for twice, since
    another may make it before the folder is listed.
    """
    own, text = shlex.quote(root), shlex.quote(holder.text)
    deleting = "" if instead_of is None else f'[ "$(cat {LOCK})" != {shlex.quote(instead_of)} ] || rm -f {LOCK}'
    return f"""\
mkdir -p {own} && cd {own} || exit 1
[ -e {MARKER} ] || [ -z "$(ls -A)" ] || [ -e {MARKER} ] || exit {OTHERS_FILES}
touch {MARKER} || exit 1
{deleting}
if (set -C; : > {LOCK}) 2> /dev/null
then printf %s {text} > {LOCK} || {{ rm -f {LOCK}; exit 1; }}
elif ! grep -qF {holder.lock_id} {LOCK}
then
[ -e {LOCK} ] || exit 1
echo $(($(date +%s) - $(stat -c %Y {LOCK})))
cat {LOCK}
exit {_HELD}
fi
touch {MARKER} {LOCK}
"""


def release_script(root: str, holder: Holder) -> str:
    """A script that deletes the lock file if it is the holder's own, then the folder if nothing is left in it."""
    own = shlex.quote(root)
    return f"""\
cd {own} && grep -qF {holder.lock_id} {LOCK} && rm -f {LOCK} || exit 0
[ "$(ls -A)" != {MARKER} ] || {{ rm -f {MARKER}; cd /; rmdir {own}; }} 2> /dev/null
"""


def read_holder(text: str) -> Holder | None:
    """The holder in a lock's text; None where the lock is damaged, or not written yet.

    >>> read_holder("") is None
    True
    """
    try:
        return json_as(text, Holder)
    except ValueError:
        return None


def _process_space() -> str:
    """The name of the space that process numbers are counted in; empty where the system has no such spaces."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
