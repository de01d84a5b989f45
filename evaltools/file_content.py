"""The door for files from elsewhere: opened once, only regular files, read and unpacked up to a size.

Whatever is wrong with a file is :class:`Unreadable`, whose text is only the reason; callers name file and flag.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

TEXT_BYTES: Final = 64 << 20
"""The most of a file that people write: labels, lists, YAML, TOML."""
DATA_BYTES: Final = 1 << 30
"""The most of a file of annotations, a result, a list of rows."""
MODEL_BYTES: Final = 4 << 30
"""The most of a model, or of a file of arrays; a flatbuffer ends at 2 GiB, weights may lie behind it."""
_FREELY: Final = 256 << 20
"""Bytes that anything may unpack to."""
_MOST_TIMES: Final = 20
"""What unpacks to more may be so many times as large as its file."""
_READ: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_DO_NOT_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED: Final = 1
_PART_BYTES: Final = 1 << 16
_HASHED_BYTES: Final = 1 << 20
_NO_FILE: Final = "it is not a regular file; save what it gives to one first"
_NO_MEMORY: Final = "there is not enough memory to read it"


class Unreadable(ValueError):
    """A file is not there, no regular file, too large, damaged, or packed in a way that is not read."""


@contextmanager
def opened(path: Path, may_be_pipe: bool = False) -> Iterator[io.FileIO]:
    """A regular file to be read; raises :class:`Unreadable`, also for what goes wrong while it is read.

    A pipe without a writer, or a device without an end, is refused. What ``may_be_pipe`` may be one that is open
    already, as ``/dev/stdin`` and a shell's ``<(command)`` are.
    """
    may_be_pipe = may_be_pipe and (path.is_relative_to("/dev") or path.is_relative_to("/proc"))
    try:
        with os.fdopen(os.open(path, _READ | (0 if may_be_pipe else _DO_NOT_WAIT)), "rb", buffering=0) as file:
            if not may_be_pipe and not _is_regular(file):
                raise Unreadable(_NO_FILE)
            yield file
    except OSError as error:
        raise Unreadable(str(error.strerror or error)) from error
    except MemoryError as error:
        raise Unreadable(_NO_MEMORY) from error
    except ValueError as error:  # a NUL character in the name; or Unreadable itself
        raise error if isinstance(error, Unreadable) else Unreadable(str(error)) from error


def _is_regular(file: io.FileIO) -> bool:
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def content_of(path: Path, most_bytes: int = TEXT_BYTES, may_be_pipe: bool = False) -> bytes:
    """All of a file, which is regular or ``may_be_pipe``; raises :class:`Unreadable`.

    >>> content_of(Path("nowhere.txt"))
    Traceback (most recent call last):
    evaltools.file_content.Unreadable: No such file or directory
    """
    with opened(path, may_be_pipe) as file:
        return b"".join(_parts_of(file, most_bytes if _is_regular(file) else min(most_bytes, TEXT_BYTES)))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, of which one part at a time is held, in hexadecimal digits; raises :class:`Unreadable`."""
    digest = hashlib.sha256()
    with opened(path) as file:
        while part := file.read(_HASHED_BYTES):
            digest.update(part)
    return digest.hexdigest()


def _parts_of(file: io.FileIO, most_bytes: int) -> Iterator[bytes]:
    """The content; what the system says of its size is asked first, and may be another by now."""
    size, total = os.fstat(file.fileno()).st_size, 0
    while size <= most_bytes and total <= most_bytes:
        part = file.read(max(size - total + 1, _PART_BYTES))
        if not part:
            return
        total += len(part)
        yield part
    raise Unreadable(f"it is too large: more than {most_bytes} bytes")


def text_of(path: Path, most_bytes: int = TEXT_BYTES) -> str:
    """All of a text file in UTF-8, without a byte order mark; raises :class:`Unreadable`."""
    try:
        return content_of(path, most_bytes).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not a text in UTF-8: {error}") from error


def require_unpacked(size: int, packed: int) -> None:
    """Raise :class:`Unreadable` where so many ``packed`` bytes claim to unpack to too many.

    >>> require_unpacked(100 << 20, 1000)
    >>> require_unpacked(2 << 30, 34_000)
    Traceback (most recent call last):
    evaltools.file_content.Unreadable: it unpacks from 34000 bytes to 2147483648; 268435456, or 20 times, are read
    """
    if size > max(_FREELY, _MOST_TIMES * packed):
        raise Unreadable(f"it unpacks from {packed} bytes to {size}; {_FREELY}, or {_MOST_TIMES} times, are read")


@contextmanager
def zip_members(packed: bytes | BinaryIO) -> Iterator[zipfile.ZipFile]:
    """A zip archive whose members together unpack to what is read; raises :class:`Unreadable`, also while it is read.

    Nothing is unpacked before the sizes of all members are known. Encrypted members, and methods other than deflate,
    are refused.
    """
    stream = io.BytesIO(packed) if isinstance(packed, bytes) else packed
    try:
        with zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                if member.flag_bits & _ENCRYPTED:
                    raise Unreadable(f"{member.filename!r} in it is encrypted")
                if member.compress_type not in _METHODS:
                    raise Unreadable(
                        f"{member.filename!r} in it is packed by method {member.compress_type}; deflate is read"
                    )
            require_unpacked(sum(member.file_size for member in archive.infolist()), _size_of(stream))
            yield archive
    except (Unreadable, KeyError):
        raise
    except Exception as error:  # BadZipFile, zlib.error, NotImplementedError, EOFError, struct.error, TokenError, ...
        raise Unreadable(_reason(error)) from error


def _size_of(stream: BinaryIO) -> int:
    place = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(place)
    return size


def _reason(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return _NO_MEMORY
    return str(error) or type(error).__name__
