"""Files kept on a device by their content, so that each is sent only once.

Archives are of many: the same files give the same bytes, so that they are sent once, too.
"""

from __future__ import annotations

import hashlib
import io
import json
import posixpath
import shlex
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.device.adb import Link
from evaltools.device.detached import end
from evaltools.device.errors import DeviceError
from evaltools.device.lock import MARKER, OTHERS_FILES
from evaltools.device.transfer import sha256_of, size_of
from evaltools.errors import DataError, OutputError
from evaltools.file_content import MODEL_BYTES, Unreadable, content_of

STORE: Final = "store"
PROGRAMS: Final = "programs"
RUNS: Final = "runs"
_LONGEST_NAME: Final = 200
"""Bytes; a name of 255 leaves no room for what is behind it while it is sent."""
_CLEAR_S: Final = 120.0
ARCHIVE: Final = ".tar"
"""The ending of archives that are sent; before it stands what is in them."""
MOST_BYTES: Final = 32 << 20
"""The size of an archive: a cut link costs the sending of one."""


def remote_path(root: str, local: Path) -> str:
    """The path of a file on every device, below ``root``; raises :class:`DataError` where the file cannot be read."""
    return stored_path(root, sha256_of(local), _remote_name(local))


def stored_path(root: str, digest: str, name: str) -> str:
    """The path of a file on every device, below ``root``, in a folder that is named after a digest."""
    return posixpath.join(root, STORE, digest, name)


def stored_folder(root: str, folder: Path) -> tuple[str, dict[Path, str]]:
    """The path of a folder on every device, named after all that is in it, and its files with their paths there.

    Raises :class:`DataError` for a file that cannot be read.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path: path.relative_to(folder).as_posix() for path in files}
    digest = sum_of(names)
    return posixpath.join(root, STORE, digest), {path: stored_path(root, digest, name) for path, name in names.items()}


def sum_of(names: Mapping[Path, str]) -> str:
    """The sha256 of files with their names and contents, as hexadecimal digits."""
    checksum = hashlib.sha256()
    for path, name in names.items():
        checksum.update(f"{name}\0{sha256_of(path)}\0".encode("utf-8", "surrogateescape"))
    return checksum.hexdigest()


def runs_on(link: Link, root: str) -> list[str]:
    """The folders of all runs that are there."""
    folder = posixpath.join(root, RUNS)
    found = link.shell(f"ls {shlex.quote(folder)} 2> /dev/null || true").text.splitlines()
    return [posixpath.join(folder, name) for name in found]


def is_there(link: Link, root: str) -> bool:
    """Whether the folder ``root`` exists on a device; raises :class:`DeviceError` if it is not evaltools' own."""
    own = shlex.quote(root)
    found = link.shell(
        f"[ -e {own} ] || exit 1; cd {own} || exit {OTHERS_FILES}; [ ! -f {MARKER} ] || exit 0; "
        f'[ -r . ] && [ -z "$(ls -A)" ] && exit 1; exit {OTHERS_FILES}',
    )
    if found.code not in (0, 1):
        raise DeviceError(
            f"{link.serial}: {root} is not a folder that evaltools has made, so that nothing is deleted in it; give "
            "the --device_folder of a run",
            link.serial,
        )
    return found.code == 0


def clear(link: Link, root: str) -> int:
    """End all runs in the folder ``root``, whose lock is held, and delete evaltools' files there.

    Returns how many KiB were deleted. Raises :class:`DeviceError` where some of them stay.
    """
    for run in runs_on(link, root):
        end(link, run)
    folders = f"{PROGRAMS} {STORE} {RUNS}"
    answer = link.shell(
        f"cd {shlex.quote(root)} && mkdir -p {folders} && du -skc {folders} | tail -n 1 && rm -rf {folders}", _CLEAR_S
    )
    if answer.code != 0:
        raise DeviceError(
            f"{link.serial}: what is in {root} cannot be deleted{answer.quote()}; look at it with adb shell ls -l "
            f"{root}",
            link.serial,
        )
    return int(answer.text.split()[0])


def _remote_name(local: Path) -> str:
    r"""The file's own name; only its ending where the name is longer than one line or too long.

    >>> _remote_name(Path("a/my model.tflite")), _remote_name(Path("a/two\nlines.tflite"))
    ('my model.tflite', 'file.tflite')
    """
    if local.name.isprintable() and len(local.name.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME:
        return local.name
    return f"file{local.suffix}" if local.suffix.isprintable() else "file"


def write_archive(path: Path, folder: Path, files: Sequence[Path]) -> None:
    """Write a tar archive of ``files`` below ``folder``, without times and owners.

    Pictures do not become smaller, so it is not compressed. Raises :class:`DataError` for a file that cannot be read,
    :class:`OutputError` where ``path`` cannot be written.
    """
    try:
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
            for file in files:
                entry = tarfile.TarInfo(file.relative_to(folder).as_posix())
                content = content_of(file, MODEL_BYTES)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    except Unreadable as error:
        raise DataError(f"{file} cannot be read: {error}") from error
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


def write_manifest(path: Path, folder: Path, files: Sequence[Path]) -> None:
    """Write the names below ``folder`` and the sizes in bytes of all files, as JSON ``[[name, size], ...]``.

    A part gets the content of some files only. The manifest names all, so that examples have the same numbers in every
    part. Names that are no Unicode are kept.
    """
    path.write_text(json.dumps([[file.relative_to(folder).as_posix(), size_of(file)] for file in files]))
