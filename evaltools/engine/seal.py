"""A seal on request and identity in a run folder: this user made them here, so going on with them does nothing new.

It is an HMAC of their text. The key is made with the first run folder, lies outside of all of them, and never
leaves the machine; so nobody else can make a folder whose request is carried out without being asked about.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import stat
import tempfile
from pathlib import Path
from typing import Final

_KEY_BYTES: Final = 32


def key_file() -> Path:
    """Where the key of this user lies: ``evaltools/key`` in XDG_STATE_HOME, which is ``~/.local/state`` unless set."""
    stated = os.environ.get("XDG_STATE_HOME", "")
    return Path(stated if os.path.isabs(stated) else os.path.expanduser("~/.local/state"), "evaltools", "key")


def seal_of(text: str) -> str:
    """The seal of a text; empty where no key can be kept, as with a home folder that cannot be written."""
    key = _key() or _new_key()
    return "" if key is None else _hmac(key, text)


def is_sealed(text: str, seal: str | None) -> bool:
    """Whether ``seal`` is that of a text, made with this user's key."""
    key = _key()
    return key is not None and bool(seal) and hmac.compare_digest(str(seal).encode(), _hmac(key, text).encode())


def _hmac(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogateescape"), "sha256").hexdigest()


def _key() -> bytes | None:
    """The key, None where there is none that this user alone has: a link, another's file, or one that others read."""
    place = key_file()
    if not place.is_absolute():
        return None
    try:
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not _is_own_alone(os.fstat(file.fileno())):
                return None
            key = file.read(_KEY_BYTES + 1)
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None


def _is_own_alone(status: os.stat_result) -> bool:
    others = stat.S_IMODE(status.st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not others


def _new_key() -> bytes | None:
    """A new key, or that of another process which was faster; never one that is half written."""
    place = key_file()
    if not place.is_absolute():
        return None
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            draft = Path(folder, "key")
            _write_key(draft)
            try:
                os.link(draft, place)
            except FileExistsError:
                pass
            except OSError:  # a file system without hard links
                with contextlib.suppress(FileExistsError):
                    _write_key(place)
    except OSError:
        return None
    return _key()


def _write_key(place: Path) -> None:
    """Write a new key to a file that is not there yet."""
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
