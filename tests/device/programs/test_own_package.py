"""The package that is sent to devices: the packages that run here, whole, and usable by a Python without pip."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from evaltools.own_package import own_package

VERSION = version("evaltools")
INFO = f"evaltools-{VERSION}.dist-info"
PACKAGES = ("evaltools", "evaltools.tasks", "evaltools.datasets")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("package") / "evaltools.zip"
    path.write_bytes(own_package())
    return path


def test_it_holds_every_file_of_the_packages_and_nothing_else(package: Path) -> None:
    expected: dict[str, bytes] = {}
    for name in PACKAGES:
        (folder,) = importlib.import_module(name).__path__
        for parent, folders, files in os.walk(folder):
            folders[:] = [each for each in folders if each != "__pycache__"]
            for file in files:
                path = Path(parent, file)
                expected[f"{name.replace('.', '/')}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    with zipfile.ZipFile(package) as archive:
        found = {name: archive.read(name) for name in archive.namelist() if not name.startswith(f"{INFO}/")}
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []
    for needed in ("cli/main.py", "tasks/imagenet/data.py", "datasets/image_folder.py", "result/result.schema.json"):
        assert f"evaltools/{needed}" in found
    assert {".py", ".typed", ".json", ".binpb", ".tflite"} <= {Path(name).suffix or Path(name).name for name in found}


def test_the_same_sources_give_the_same_bytes(package: Path) -> None:
    """So that devices keep it under the same name, and get it once: no time of making is in it."""
    own_package.cache_clear()
    assert own_package() == package.read_bytes()
    with zipfile.ZipFile(package) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_python_that_unpacks_it_runs_that_evaltools(package: Path, tmp_path: Path) -> None:
    """With its version. ``-S`` leaves out what names this checkout, and with it the packages of this computer."""
    unpacked = tmp_path / "package"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(package), str(unpacked)], check=True, timeout=60)
    script = f"""
import importlib.metadata, sys
print(importlib.metadata.version("evaltools"))
sys.path.append({sysconfig.get_path("platlib")!r})
from evaltools.cli.main import main
main(["--version"])
"""
    shown = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert (shown.stdout, shown.stderr) == (f"{VERSION}\nevaltools {VERSION}\n", "")
