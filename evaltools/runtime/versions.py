"""Other versions of a runtime, which venv and pip put into an environment in the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

from evaltools.configuration import OUR_RUNTIMES, Configuration
from evaltools.errors import ConfigurationUnavailable
from evaltools.runtime.registry import installed_version

_NO_INDEX: Final = "from versions: none"
_LONGEST_REASON: Final = 400


def packages_of(configuration: Configuration) -> Path | None:
    """The folder with the packages of a configuration's runtime version, which is made where it is not there yet.

    None for the version that is installed beside evaltools. Raises :class:`ConfigurationUnavailable` with pip's reason
    where it cannot be installed.
    """
    version = configuration.runtime_version
    if version in ("", installed_version(configuration.runtime)):
        return None
    requirement = f"{OUR_RUNTIMES[configuration.runtime].replace('_', '-')}=={version}"
    place = _cache() / f"{requirement}-{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
    if not place.exists():
        try:
            _make(place, requirement)
        except OSError as error:
            raise ConfigurationUnavailable(
                f"no environment for {requirement} can be made in {place.parent}: {error}"
            ) from error
    return _site_packages(place)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "evaltools" / "runtimes"


def _make(place: Path, requirement: str) -> None:
    """Make an environment; where another process was faster, its own stays."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as scratch:
        draft = Path(scratch, "environment")
        python = draft / "bin/python"
        _run([sys.executable, "-m", "venv", str(draft)], requirement)
        _run(
            [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", requirement], requirement
        )
        try:
            draft.rename(place)
        except OSError:
            if not place.is_dir():
                raise


def _site_packages(place: Path) -> Path:
    return next(place.glob("lib/python*/site-packages"))


def _run(command: list[str], requirement: str) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode == 0:
        return
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    said = next(
        (line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")), (lines or ["no reason"])[-1]
    )
    offline = "; no package index was reached, so perhaps this computer is offline" if _NO_INDEX in said else ""
    raise ConfigurationUnavailable(f"{requirement} cannot be installed: {said[:_LONGEST_REASON]}{offline}")
