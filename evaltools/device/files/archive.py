"""Archives of files for a device: the same files give the same bytes, so that they are sent once."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from evaltools.errors import DataError, OutputError

MOST_BYTES: Final = 32 << 20
"""The size of an archive: a cut link costs the sending of one."""
_ORDINARY_FILE: Final = 0o644


def write_archive(path: Path, folder: Path, files: Sequence[Path]) -> None:
    """Write a tar archive of ``files`` below ``folder``, without times and owners.

    Pictures do not become smaller, so it is not compressed. Raises :class:`DataError` for a file that cannot be read,
    :class:`OutputError` where ``path`` cannot be written.
    """
    try:
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
            for file in files:
                _add(archive, folder, file)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}; make room, or set TMPDIR") from error


def chunks(files: Sequence[Path], most_bytes: int = MOST_BYTES) -> Iterator[list[Path]]:
    """Files in their order, in groups of at most so many bytes, or of one larger file.

    Raises :class:`DataError` for a file that cannot be read.
    """
    group: list[Path] = []
    size = 0
    for file in files:
        own = size_of(file)
        if group and size + own > most_bytes:
            yield group
            group, size = [], 0
        group.append(file)
        size += own
    if group:
        yield group


def _add(archive: tarfile.TarFile, folder: Path, file: Path) -> None:
    entry = tarfile.TarInfo(file.relative_to(folder).as_posix())
    entry.mode = _ORDINARY_FILE
    try:
        with open(file, "rb") as content:
            entry.size = file.stat().st_size
            archive.addfile(entry, content)
    except OSError as error:
        if error.errno is not None and error.filename != str(file):
            raise
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from error


def size_of(file: Path) -> int:
    """The size of a file in bytes; raises :class:`DataError` where it cannot be read."""
    try:
        return file.stat().st_size
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from error


def write_manifest(path: Path, folder: Path, files: Sequence[Path]) -> None:
    """Write the names below ``folder`` and the sizes in bytes of all files, as JSON ``[[name, size], ...]``.

    A part gets the content of some files only. The manifest names all, so that examples have the same numbers in every
    part. Names that are no Unicode are kept.
    """
    path.write_text(json.dumps([[file.relative_to(folder).as_posix(), size_of(file)] for file in files]))
