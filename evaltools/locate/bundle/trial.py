"""Runs the script of a bundle as anybody would, and says what came of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.runtime.compiled.gpu import (
    MANIFEST,
    VARIABLE,
    default_folder,
    has_drivers,
    installed_driver,
    library_folders,
)

_WRONG, _RIGHT = 1, 0
_LONGEST: Final = 4000
REPRODUCED: Final = "reproduced"


class Trial(Struct, frozen=True):
    """``reproduced``: the script found the fault. ``crashed``: its process died. ``printed`` is what it said."""

    reproduced: bool
    crashed: bool
    printed: str


def try_script(script: Path, timeout_s: float) -> Trial:
    """Run it in its folder with this Python."""
    command = [sys.executable, script.name]
    try:
        done = subprocess.run(
            command, cwd=script.parent, env=_environment(), capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        return Trial(False, False, _shown(script, error.stdout, error.stderr, f"(ended after {timeout_s:g} seconds)"))
    said = (done.stdout or b"").decode("utf-8", "replace").splitlines()
    if done.returncode == _WRONG and REPRODUCED in said:
        return Trial(True, False, "\n".join(said))
    if done.returncode == _RIGHT:
        return Trial(False, False, "\n".join(said))
    end = f"(its process was ended by {_signal(-done.returncode)})" if done.returncode < 0 else ""
    return Trial(False, done.returncode < 0, _shown(script, done.stdout, done.stderr, end))


def _environment() -> Mapping[str, str]:
    """That of this process; a GPU in software, which evaltools loads by itself, is one that the script has to find."""
    environment = dict(os.environ) | {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
    return environment | software_gpu(environment)


def software_gpu(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables with which a program finds the software GPU that evaltools would take; empty for none."""
    folder = default_folder(environment)
    manifest = str(folder / MANIFEST)
    if installed_driver(folder) is None or (environment.get(VARIABLE) != manifest and has_drivers(environment)):
        return {}
    libraries = [*map(str, library_folders(folder)), environment.get("LD_LIBRARY_PATH", "")]
    return {VARIABLE: manifest, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries))}


def _shown(script: Path, stdout: bytes | None, stderr: bytes | None, end: str) -> str:
    """The end of what was printed, without where on this machine the bundle lies."""
    parts = [(part or b"").decode("utf-8", "replace").strip() for part in (stdout, stderr)]
    text = "\n".join(filter(None, [*parts, end])).replace(str(script.resolve().parent), ".")
    return text[-_LONGEST:]


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
