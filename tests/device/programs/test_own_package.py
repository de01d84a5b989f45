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

from evaltools.device.programs.python_program import own_package, write_own_package

VERSION = version("evaltools")
INFO = f"evaltools-{VERSION}.dist-info"
PACKAGES = ("evaltools", "evaltools.tasks", "evaltools.datasets")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_own_package(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def contents(package: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(package) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a device unpacks it."""
    folder = tmp_path_factory.mktemp("programs") / "package"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(package), str(folder)], check=True, timeout=60)
    return folder


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A new Python that has the unpacked package, in a folder that has nothing of evaltools."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=120, cwd=folder.parent, env=environment
    )


def test_it_holds_every_file_of_the_packages_and_nothing_else(contents: dict[str, bytes]) -> None:
    expected: dict[str, bytes] = {}
    for package in PACKAGES:
        (folder,) = importlib.import_module(package).__path__
        for parent, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in files:
                path = Path(parent, name)
                expected[f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    found = {name: content for name, content in contents.items() if not name.startswith(f"{INFO}/")}
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []
    for needed in (
        "cli/main.py",
        "tasks/imagenet/task.py",
        "datasets/image_folder.py",
        "py.typed",
        "result/result.schema.json",
    ):
        assert f"evaltools/{needed}" in found
    assert any(name.endswith(".binpb") for name in found)
    assert any(name.endswith(".tflite") for name in found)


def test_the_same_sources_give_the_same_bytes(package: Path, tmp_path: Path) -> None:
    """So that devices keep it under the same name, and get it once: no time of making is in it."""
    own_package.cache_clear()
    assert write_own_package(tmp_path).read_bytes() == package.read_bytes()
    with zipfile.ZipFile(package) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_module_comes_from_the_package(name: str, unpacked: Path) -> None:
    """And not from where evaltools is installed on this computer."""
    asked = python(unpacked, "-c", f"import {name}; print(*{name}.__path__)")
    assert asked.stdout == f"{unpacked / name.replace('.', '/')}\n"


def test_it_has_its_version_where_evaltools_is_not_installed(unpacked: Path) -> None:
    """And runs there. ``-S`` leaves out what names this checkout, and with it the packages of this computer."""
    script = f"""
import importlib.metadata, sys
print(importlib.metadata.version("evaltools"))
sys.path.append({sysconfig.get_path("platlib")!r})
from evaltools.cli.main import main
main(["--version"])
"""
    shown = python(unpacked, "-S", "-c", script)
    assert (shown.stdout, shown.stderr) == (f"{VERSION}\nevaltools {VERSION}\n", "")
