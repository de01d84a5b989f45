"""The wheel that is sent to devices: the packages that run here, whole, and usable by a Python without pip."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib
import io
import os
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from evaltools.device.programs.wheel import write_own_wheel

VERSION = version("evaltools")
INFO = f"evaltools-{VERSION}.dist-info"
PACKAGES = ("evaltools", "evaltools.tasks", "evaltools.datasets")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_own_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a device unpacks it."""
    folder = tmp_path_factory.mktemp("programs") / "wheel"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(folder)], check=True, timeout=60)
    return folder


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A new Python that has the unpacked wheel, in a folder that has nothing of evaltools."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=120, cwd=folder.parent, env=environment
    )


def test_its_name_is_that_of_a_wheel_for_every_python(wheel: Path) -> None:
    assert wheel.name == f"evaltools-{VERSION}-py3-none-any.whl"


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


def test_it_says_what_it_is(contents: dict[str, bytes]) -> None:
    assert sorted(name for name in contents if name.startswith(f"{INFO}/")) == [
        f"{INFO}/METADATA",
        f"{INFO}/RECORD",
        f"{INFO}/WHEEL",
    ]
    assert f"\nVersion: {VERSION}\n" in contents[f"{INFO}/METADATA"].decode()
    assert "\nTag: py3-none-any\n" in contents[f"{INFO}/WHEEL"].decode()


def test_its_record_has_the_sum_and_the_size_of_every_file(contents: dict[str, bytes]) -> None:
    rows = list(csv.reader(io.StringIO(contents[f"{INFO}/RECORD"].decode())))
    assert sorted(name for name, _, _ in rows) == sorted(contents)
    for name, digest, size in rows:
        if name == f"{INFO}/RECORD":
            assert (digest, size) == ("", "")
            continue
        algorithm, _, text = digest.partition("=")
        assert algorithm == "sha256"
        assert not text.endswith("="), "wheels leave the padding out"
        assert base64.urlsafe_b64decode(f"{text}=") == hashlib.sha256(contents[name]).digest()
        assert int(size) == len(contents[name])


def test_the_same_sources_give_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    """So that devices keep it under the same name, and get it once: no time of making is in it."""
    assert write_own_wheel(tmp_path).read_bytes() == wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_everybody_may_read_what_is_unpacked(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o644}


def test_a_python_that_unpacks_it_runs_that_evaltools(unpacked: Path) -> None:
    shown = python(unpacked, "-m", "evaltools.cli.main", "--version")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"evaltools {VERSION}\n", "")
    (unpacked / "evaltools" / "cli" / "own.py").write_text("print('the one that was unpacked')")
    assert python(unpacked, "-m", "evaltools.cli.own").stdout == "the one that was unpacked\n"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_comes_from_the_wheel(package: str, unpacked: Path) -> None:
    """And not from where evaltools is installed on this computer."""
    asked = python(unpacked, "-c", f"import {package}; print(*{package}.__path__)")
    assert asked.stdout == f"{unpacked / package.replace('.', '/')}\n"


def test_it_has_its_version_where_evaltools_is_not_installed(unpacked: Path) -> None:
    """``-S`` leaves out this computer's packages, as on a board that has only the standard library."""
    script = "from importlib.metadata import version; print(version('evaltools'))"
    assert python(unpacked, "-S", "-c", script).stdout == f"{VERSION}\n"
    shown = python(unpacked, "-S", "-m", "evaltools.cli.main", "--version")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"evaltools {VERSION}\n", "")


@pytest.mark.once
def test_pip_takes_it_for_a_wheel(wheel: Path, contents: dict[str, bytes], tmp_path: Path) -> None:
    """pip holds every file against the record."""
    pytest.importorskip("pip", reason="this environment has no pip")
    words = ["install", "--no-index", "--no-deps", "--no-compile", "--target", str(tmp_path / "there"), str(wheel)]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [
        name for name in contents if name.startswith("evaltools/") and not (tmp_path / "there" / name).is_file()
    ] == []
