"""A lock in a device's folder: a folder made by ``mkdir``, in which a file says who has it since when."""

from __future__ import annotations

import getpass
import platform
import shlex
import uuid
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from typing import Final

from evaltools.device.adb import Link
from evaltools.device.errors import DeviceError
from evaltools.text import printable

MARKER: Final = ".evaltools"
"""The file by which a folder is known as evaltools' own."""
OTHERS_FILES: Final = 4
_HELD: Final = 5
_RELEASE_S: Final = 5.0


class DeviceLock:
    """Makes sure that one process at a time uses ``root`` on a device; a context that holds the lock.

    ``force`` takes the lock from its owner on entry.
    """

    def __init__(self, link: Link, root: str, force: bool = False) -> None:
        self.root = root
        self._link = link
        self._force = force
        self._lock_id = uuid.uuid4().hex

    def __enter__(self) -> DeviceLock:
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
            raise DeviceError(
                f"device {serial} is in use by {printable(owner) or 'another process'}; --force takes it, and "
                "ends what runs there",
                serial,
            )
        if answer.code == OTHERS_FILES:
            raise DeviceError(
                f"{serial}: {root} holds files that are not evaltools'; give a folder of its own with --device_folder",
                serial,
            )
        raise DeviceError(
            f"{serial}: {root} cannot be made or written{answer.quote()}; look at the space there, or give a folder "
            "below /data/local/tmp with --device_folder",
            serial,
        )


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


def _owner_now() -> str:
    """Who takes a lock now: ``USER@HOST since TIME``."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a number without a name, as in a container
        user = "somebody"
    return f"{user}@{platform.node()} since {datetime.now(timezone.utc).isoformat(timespec='seconds')}"
