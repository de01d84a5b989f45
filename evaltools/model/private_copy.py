"""A private copy of a file that a run opens again and again: somebody may change or delete the file meanwhile."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final


class HeldFile:
    """A file without a name, which other processes of this machine open by ``path`` while this object lives here."""

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        self.path: Final = path
        self._file = file

    def __reduce__(self) -> tuple[Callable[..., HeldFile], tuple[Path]]:
        return HeldFile, (self.path,)


def hold(content: bytes) -> HeldFile | None:
    """Hold a content, None where the platform cannot open a file without a name, or there is no room for it."""
    if sys.platform != "linux":
        return None
    try:
        file = tempfile.TemporaryFile(prefix="evaltools-")  # noqa: SIM115 - it is closed with the object that holds it
        file.write(content)
        file.flush()
    except OSError:
        return None
    return HeldFile(Path(f"/proc/{os.getpid()}/fd/{file.fileno()}"), file)
