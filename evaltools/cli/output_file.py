"""Writes result files without ever leaving half of one behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from evaltools.errors import UsageError


def require_writable(path: Path, flag: str) -> None:
    """Raise :class:`UsageError` where ``path`` cannot be written, before any long work."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{flag}={path} is a folder; give a file name")
    if not folder.is_dir():
        raise UsageError(f"{flag}={path}: the folder {folder} does not exist; create it first")
    target = path if path.exists() else folder
    if not os.access(target, os.W_OK):
        raise UsageError(f"{flag}={path}: no permission to write {target}")


def write_file(path: Path, content: bytes) -> None:
    """Replace a file in one step; a device or pipe is written as it is."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
            draft.write(content)
        os.chmod(draft.name, 0o666 & ~_umask())
        os.replace(draft.name, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
