"""Writes result files without ever leaving half of one behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from evaltools.errors import OutputError, UsageError


def require_writable(path: Path, flag: str) -> None:
    """Raise :class:`UsageError` where ``path`` cannot be written, before any long work."""
    if os.path.isdir(path):
        raise UsageError(f"{flag}={path} is a folder; give a file name")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"{flag}={path}: the folder {folder} does not exist, or cannot be entered; create it first")
    if os.path.islink(path) and os.path.islink(os.path.realpath(path)):
        raise UsageError(f"{flag}={path} is a symbolic link that leads to itself; give another name")
    target = path if _is_written_in_place(path) else folder
    if not os.access(target, os.W_OK):
        raise UsageError(f"{flag}={path}: no permission to write to {target}")


def write_file(path: Path, content: bytes) -> None:
    """Replace a file in one step, through symbolic links; raises :class:`OutputError`.

    Devices and pipes are written as they are.
    """
    try:
        if _is_written_in_place(path):
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from error
    except ValueError as error:
        raise OutputError(f"{str(path)!a} cannot be written: {error}") from error


def _is_written_in_place(path: Path) -> bool:
    """Devices, pipes, and names such as /dev/stdout that stand for an open file."""
    return (
        path.is_relative_to("/dev")
        or path.is_relative_to("/proc")
        or (os.path.exists(path) and not os.path.isfile(path))
    )


def _replace(path: Path, content: bytes) -> None:
    mode = path.stat().st_mode if path.exists() else None
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name[:40]}.") as folder:
        draft = Path(folder) / "draft"
        draft.write_bytes(content)
        if mode is not None:
            draft.chmod(mode)
        draft.replace(path)
