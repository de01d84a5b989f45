"""Writes result files without ever leaving half of one behind, and no folder that holds anything already."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaltools.errors import OutputError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

_FIRST_BYTES: Final = 4096


def require_writable(path: Path, flag: str) -> None:
    """Raise :class:`UsageError` where ``path`` cannot be written, before any long work."""
    if os.path.isdir(path):
        raise UsageError(f"{flag}={path} is a folder; give a file name")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"{flag}={path}: the folder {folder} does not exist, or cannot be entered; create it first")
    if os.path.islink(path) and os.path.islink(os.path.realpath(path)):
        raise UsageError(f"{flag}={path} is a symbolic link that leads to itself; give another name")
    if os.path.exists(path) and not os.path.isfile(path) and not is_written_in_place(path):
        raise UsageError(f"{flag}={path} is not a regular file; give another name")
    target = path if is_written_in_place(path) else folder
    if not os.access(target, os.W_OK):
        raise UsageError(f"{flag}={path}: no permission to write to {target}")


def require_output_file(path: Path, flag: str, inputs: Iterable[Path]) -> None:
    """Refuse a file that cannot be written, is read by this run (``inputs``), or is stdout, before any long work.

    In a folder of ``inputs`` only what evaltools wrote is written anew.
    """
    require_writable(path, flag)
    for source in inputs:
        if _same_file(path, source) or (_lies_in(path, source) and not is_of_evaltools(path)):
            raise UsageError(f"{flag}={path} would overwrite an input of this run; give another name")
    if _same_file(path, 1) and not path.samefile(os.devnull):
        raise UsageError(f"{flag}={path} is stdout, which carries the native lines; give a file")


def is_of_evaltools(path: Path) -> bool:
    """Whether a file may be replaced: it is not there yet, or was written by evaltools, as its first words say."""
    try:
        return b"evaltools" in first_bytes(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def first_bytes(path: Path) -> bytes:
    """How a file that may be replaced begins; raises :class:`OSError`."""
    with open(path, "rb") as file:
        return file.read(_FIRST_BYTES)


def _lies_in(path: Path, folder: Path) -> bool:
    return os.path.isdir(folder) and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _same_file(path: Path, other: Path | int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.stat(other))
    except OSError:
        return False


def write_file(path: Path, content: bytes) -> None:
    """Replace a file in one step, through symbolic links; raises :class:`OutputError`.

    What is below /dev or /proc is written as it is.
    """
    try:
        if is_written_in_place(path):
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from error
    except ValueError as error:
        raise OutputError(f"{str(path)!a} cannot be written: {error}") from error


def is_written_in_place(path: Path) -> bool:
    """Devices, and names such as /dev/stdout that stand for an open file."""
    return path.is_relative_to("/dev") or path.is_relative_to("/proc")


def _replace(path: Path, content: bytes) -> None:
    mode = path.stat().st_mode if path.exists() else None
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name[:40]}.") as folder:
        draft = Path(folder) / "draft"
        draft.write_bytes(content)
        if mode is not None:
            draft.chmod(mode)
        draft.replace(path)


def write_measured(contents: Mapping[str, bytes], files: Mapping[str, Path], console: Console) -> list[OutputError]:
    """Write the content of each file by what it holds, and say which are left out; returns what cannot be written."""
    failed = []
    for name, path in files.items():
        if name not in contents:
            console.print(f"{path} is not written: {name} was not measured")
            continue
        try:
            write_file(path, contents[name])
        except OutputError as error:
            failed.append(error)
    return failed


def require_new_folder(folder: Path, flag: str) -> None:
    """Make the folder that a flag names; raises :class:`UsageError` where it cannot be made, or holds files already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        raise UsageError(f"--{flag}={folder} cannot be made: {error.strerror}") from error
    if taken:
        raise UsageError(f"--{flag}={folder} is not empty; give a new folder")
