"""Files kept on a device by their content, so that each is sent only once.

Archives are of many: the same files give the same bytes, so that they are sent once, too.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import shlex
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.device.adb import Adb
from evaltools.device.detached import DetachedRun, end
from evaltools.device.errors import CommandFailed
from evaltools.device.lock import MARKER, OTHERS_FILES, DeviceLock
from evaltools.device.transfer import local_sum
from evaltools.errors import DataError, OutputError

STORE: Final = "store"
PROGRAMS: Final = "programs"
RUNS: Final = "runs"
_DIGITS: Final = "[0-9a-f]"
_OWN_NAMES: Final = {
    PROGRAMS: f"{_DIGITS}{{16}}([.]part)?",
    STORE: f"{_DIGITS}{{64}}",
    RUNS: f"[0-9]+-of-[0-9]+-{_DIGITS}{{16}}",
}
"""The names that evaltools makes in each of its folders, as expressions of grep -E."""
_LONGEST_NAME: Final = 200
"""Bytes; a name of 255 leaves no room for what is behind it while it is sent."""
_CLEAR_S: Final = 120.0
ARCHIVE: Final = ".tar"
"""The ending of archives that are sent; before it stands what is in them."""
MOST_BYTES: Final = 32 << 20
"""The size of an archive: a cut link costs the sending of one."""
_ORDINARY_FILE: Final = 0o644


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


def runs_on(adb: Adb, serial: str, root: str) -> list[DetachedRun]:
    """All runs that are there, by evaltools' own names."""
    folder = posixpath.join(root, RUNS)
    found = adb.shell(serial, f"ls {shlex.quote(folder)} 2> /dev/null || true").text.splitlines()
    named = (name for name in found if re.fullmatch(_OWN_NAMES[RUNS], name))
    return [DetachedRun(serial, posixpath.join(folder, name)) for name in named]


def is_there(adb: Adb, serial: str, root: str) -> bool:
    """Whether the folder ``root`` exists on a device; raises :class:`CommandFailed` if it is not evaltools' own."""
    own = shlex.quote(root)
    found = adb.shell(
        serial,
        f"[ -e {own} ] || exit 1; cd {own} || exit {OTHERS_FILES}; [ ! -f {MARKER} ] || exit 0; "
        f'[ -r . ] && [ -z "$(ls -A)" ] && exit 1; exit {OTHERS_FILES}',
    )
    if found.code not in (0, 1):
        raise CommandFailed(
            f"{serial}: {root} is not a folder that evaltools has made, so that nothing is deleted in it; give the "
            "--device_folder of a run",
            serial,
        )
    return found.code == 0


def clear(adb: Adb, serial: str, lock: DeviceLock) -> int:
    """End all runs in the folder of a ``lock`` that is held, and delete evaltools' files there.

    Returns how many KiB were deleted.
    It deletes only names that evaltools gives. Raises :class:`CommandFailed` where some of them stay.
    """
    root = lock.root
    for run in runs_on(adb, serial, root):
        end(adb, run)
    answer = adb.shell(serial, _deleting(root), _CLEAR_S)
    if answer.code != 0 or not answer.text.strip().isdigit():
        raise CommandFailed(
            f"{serial}: what is in {root} cannot be deleted{answer.quote()}; look at it with adb shell ls -l {root}",
            serial,
        )
    return int(answer.text)


def sha256_of(path: Path) -> str:
    """The sha256 of a file, as hexadecimal digits; raises :class:`DataError` where it cannot be read."""
    return local_sum(path)[1]


def _deleting(root: str) -> str:
    """A script that deletes evaltools' files in its folders, then the folders that are empty.

    It prints how many KiB the files had.
    """
    folders = "\n".join(f"delete {folder} {shlex.quote(f'^({names})$')}" for folder, names in _OWN_NAMES.items())
    return f"""\
delete() {{
[ -e $1 ] || return 0
for name in $(ls -A $1 | grep -E "$2"); do
set -- $1 "$2" $(du -sk $1/$name 2> /dev/null)
size=$((size + ${{3:-0}}))
rm -rf $1/$name || failed=1
done
[ -n "$(ls -A $1)" ] || rmdir $1 || failed=1
}}
cd {shlex.quote(root)} || exit 1
size=0 failed=0
{folders}
echo $size
exit $failed
"""


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
