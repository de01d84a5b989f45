"""The evaltools that is running, as a wheel, however it was installed."""

from __future__ import annotations

import base64
import hashlib
import importlib
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

_PACKAGES: Final = {
    "evaltools": "evaltools",
    "evaltools.tasks": "evaltools/tasks",
    "evaltools.datasets": "evaltools/datasets",
}
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_WHEEL: Final = "Wheel-Version: 1.0\nGenerator: evaltools\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_own_wheel(folder: Path) -> Path:
    """Write ``evaltools-VERSION-py3-none-any.whl``; the same sources give the same bytes."""
    own = distribution("evaltools")
    path = folder / f"evaltools-{own.version}-py3-none-any.whl"
    info = f"evaltools-{own.version}.dist-info"
    contents = dict(sorted(_package_files()))
    contents[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: evaltools\nVersion: {own.version}\n".encode()
    contents[f"{info}/WHEEL"] = _WHEEL.encode()
    record = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, content)
    return path


def _package_files() -> Iterator[tuple[str, bytes]]:
    for package in _PACKAGES:
        prefix = package.replace(".", "/")
        for root in importlib.import_module(package).__path__:
            for file in Path(root).rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    yield f"{prefix}/{file.relative_to(root).as_posix()}", file.read_bytes()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
