"""A folder on a device that several desks use."""

from __future__ import annotations

import posixpath
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.device.fixtures import Devices

SHARED: Final = "shared"
SHARED_ROOT: Final = f"/data/local/tmp/{SHARED}"


@pytest.fixture
def shared(devices: Devices) -> Path:
    """The same folder as the outside sees it; there is none at first."""
    folder = devices[0].folder / SHARED
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def inside(shared: Path, remote: str) -> Path:
    return shared / posixpath.relpath(remote, SHARED_ROOT)
