"""A folder that is written to, and must not hold anything of somebody else's."""

from __future__ import annotations

from pathlib import Path

from evaltools.errors import UsageError


def require_new_folder(folder: Path, flag: str) -> None:
    """Make the folder that a flag names; raises :class:`UsageError` where it cannot be made, or holds files already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        raise UsageError(f"--{flag}={folder} cannot be made: {error.strerror}") from error
    if taken:
        raise UsageError(f"--{flag}={folder} is not empty; give a new folder")
