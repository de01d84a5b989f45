"""The running evaltools as a zip of its packages, for Pythons that it is not installed in."""

from __future__ import annotations

import hashlib
import importlib
import io
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from evaltools.extensions import package_version

_PACKAGES: Final = ("evaltools", "evaltools.tasks", "evaltools.datasets")


@cache
def own_package() -> bytes:
    """The running evaltools, however it was installed, as a zip of its packages; the same sources give the same."""
    own_version = package_version("evaltools")
    contents = dict(sorted(_package_files()))
    metadata = f"Metadata-Version: 2.1\nName: evaltools\nVersion: {own_version}\n"
    contents[f"evaltools-{own_version}.dist-info/METADATA"] = metadata.encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _package_files() -> Iterator[tuple[str, bytes]]:
    for package in _PACKAGES:
        for root in importlib.import_module(package).__path__:
            for file in Path(root).rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    yield f"{package.replace('.', '/')}/{file.relative_to(root).as_posix()}", file.read_bytes()


def own_package_name() -> str:
    """A name for the zip: the same sources have the same one."""
    return hashlib.sha256(own_package()).hexdigest()[:16]
