"""Inputs kept in a folder, so that another run with the same pictures and transform need not make them again.

An input is known by what its picture's file holds, by the transform, and by the code and the libraries that made it: a
picture or an evaltools that was changed gives another input. What is read is checked against its checksum, so that a
damaged entry is made again.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import stat
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import version
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.preprocess.tensor import ImageToTensor

_TAG: Final = "CACHEDIR.TAG"
"""What tells programs that make backups that a folder holds nothing of value (bford.info/cachedir)."""
_SIGNATURE: Final = "Signature: 8a477f597d28d172789f06886806bc55\n# Inputs that evaltools made; they can be deleted.\n"
_HEADER: Final = struct.Struct("<III")
"""Checksum of what follows it, width and height of the picture."""
_SHARE_BETWEEN_LOOKS: Final = 16
_KEY_LETTERS: Final = 40
_FOLDER_LETTERS: Final = 2
"""The first of a key, which name a folder of entries."""
_KEY: Final = re.compile(f"[0-9a-f]{{{_KEY_LETTERS}}}")
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


class KeptInput(Struct, frozen=True):
    """An input ``(1, height, width, 3)``, and the width and height in pixels of the picture that it was made of."""

    values: npt.NDArray[Any]
    width: int
    height: int


class InputCache:
    """A folder with inputs, of at most about ``most_bytes``; open it with :meth:`opened`.

    Several processes may use it at once. What this run has used or kept is never deleted to make room: where all of a
    folder is of this run and it is full, nothing more is kept, so that the next run finds as much as has room.
    """

    def __init__(self, folder: Path, most_bytes: int, began: float) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._began = began
        self._since_look = 0
        self._is_full = False

    @classmethod
    def opened(cls, folder: Path, most_bytes: int) -> InputCache:
        """The cache in a folder, which is made where there is none.

        Raises :class:`~evaltools.errors.UsageError` for a folder that holds other files, or cannot be used.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not any(folder.iterdir()):
                (folder / _TAG).write_text(_SIGNATURE, encoding="utf-8")
            if not (folder / _TAG).exists() or not _SIGNATURE.encode().startswith(_content(folder / _TAG)):
                raise UsageError(f"--input_cache={folder} holds other files; give a new or an empty folder")
        except OSError as error:
            raise UsageError(f"--input_cache={folder} cannot be used: {error.strerror}; give another folder") from error
        found = cls(folder, most_bytes, time.time())
        found._make_room()
        return found

    def key(self, content: bytes, suffix: str, to_tensor: ImageToTensor) -> str:
        """What an input is known by: content and extension of its picture's file, the transform, what makes it."""
        made_by = hashlib.sha256(content)
        made_by.update(f"\0{suffix.lower()}\0{to_tensor!r}\0{_makers()}".encode())
        return made_by.hexdigest()[:_KEY_LETTERS]

    def read(self, key: str, to_tensor: ImageToTensor) -> KeptInput | None:
        """The input that was kept, None where there is none that is whole."""
        path = self._path(key)
        shape = (1, to_tensor.height, to_tensor.width, 3)
        body = bytearray(math.prod(shape) * to_tensor.dtype.itemsize)
        try:
            with _opened(path) as file:
                header = file.read(_HEADER.size)
                is_whole = len(header) == _HEADER.size and file.readinto(body) == len(body) and not file.read(1)
                if not is_whole:
                    return None
                os.utime(file.fileno())
        except OSError:
            return None
        checksum, width, height = _HEADER.unpack(header)
        if checksum != _checksum(body, width, height):
            return None
        return KeptInput(np.frombuffer(body, to_tensor.dtype).reshape(shape), width, height)

    def keep(self, key: str, made: KeptInput) -> None:
        """Keep an input, if there is room; a disk that cannot take it costs the next run time, and nothing else."""
        if self._is_full:
            return
        body = made.values.tobytes()
        header = _HEADER.pack(_checksum(body, made.width, made.height), made.width, made.height)
        path = self._path(key)
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            path.parent.mkdir(exist_ok=True)
            unfinished.write_bytes(header + body)
            unfinished.replace(path)
        except OSError as error:
            self._is_full = error.errno in _NO_ROOM
            with suppress(OSError):
                unfinished.unlink()
        self._since_look += len(body)
        if self._since_look > self._most_bytes / _SHARE_BETWEEN_LOOKS:
            self._make_room()

    def _path(self, key: str) -> Path:
        return self._folder / key[:_FOLDER_LETTERS] / key[_FOLDER_LETTERS:]

    def _kept(self) -> Iterator[Path]:
        """The files that are named as a cache names its own; links are not followed."""
        with suppress(OSError):
            for folder in self._folder.iterdir():
                if len(folder.name) == _FOLDER_LETTERS and folder.is_dir() and not folder.is_symlink():
                    yield from (path for path in folder.iterdir() if _KEY.match(folder.name + path.name))

    def _make_room(self) -> None:
        """Delete what was not used for longest until there is room until the next look."""
        self._since_look = 0
        entries = []
        for path in self._kept():
            with suppress(OSError):
                status = path.lstat()
                entries.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        allowed = self._most_bytes - self._most_bytes // _SHARE_BETWEEN_LOOKS
        for used, size, path in sorted(entries, key=lambda entry: entry[0]):
            if total <= allowed or used >= self._began:
                break
            with suppress(OSError):
                path.unlink()
            total -= size
        self._is_full = total > allowed


@contextmanager
def using_input_cache(cache: InputCache | None) -> Iterator[None]:
    """A context in which inputs that are made of pictures are looked up, and kept, in a cache; None: in none."""
    before = _in_use.set(cache)
    try:
        yield
    finally:
        _in_use.reset(before)


def input_cache() -> InputCache | None:
    """The cache that is in use."""
    return _in_use.get()


_in_use: Final[ContextVar[InputCache | None]] = ContextVar("input_cache", default=None)


def _opened(path: Path) -> BufferedReader:
    """A regular file that is no link; raises :class:`OSError` for all else, without waiting for a pipe."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDONLY | flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "no regular file")
    return os.fdopen(descriptor, "rb")


def _content(path: Path) -> bytes:
    """The beginning of a file; empty where another run is about to write it."""
    try:
        with _opened(path) as file:
            return file.read(len(_SIGNATURE) + 1)
    except OSError:
        return b""


def _checksum(body: bytes | bytearray, width: int, height: int) -> int:
    return zlib.crc32(body, zlib.crc32(struct.pack("<II", width, height)))


@lru_cache(maxsize=1)
def _makers() -> str:
    """Changes with the code of this room and with the libraries that decode and compute."""
    code = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        code.update(file.read_bytes())
    return f"{code.hexdigest()} {version('pillow')} {np.__version__}"
