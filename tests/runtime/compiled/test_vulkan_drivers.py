"""What is said of Vulkan drivers that a loader finds, or does not find."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evaltools.runtime.compiled.gpu import LOADED_LATER, describe_drivers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="manifests and libraries of Linux")


def write_manifest(path: Path, library: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": library}}))
    return path


def nowhere(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing is found but what a test adds, and what lies in /etc."""
    names = ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS")
    return {name: str(tmp_path / "nothing") for name in names}


def test_a_library_that_is_not_there_is_named_with_the_manifest(tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path / "icd.json", "libGLX_of_nobody.so.0")
    assert describe_drivers({"VK_DRIVER_FILES": str(manifest)}) == (
        f"{manifest} names libGLX_of_nobody.so.0, which cannot be loaded: libGLX_of_nobody.so.0: cannot open shared "
        "object file: No such file or directory; install what is missing"
    )


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ("libof_nobody.so.1", "needs libof_nobody.so.1 to find a GPU, and it is missing: install libof-nobody1"),
        ("libm.so.6", "can be loaded and finds no GPU that will do"),
    ],
)
def test_a_library_that_a_driver_loads_only_when_it_looks_for_a_gpu(
    later: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = write_manifest(tmp_path / "icd.json", "libm.so.6")
    monkeypatch.setitem(LOADED_LATER, "libm", (later, "libof-nobody1"))
    told = describe_drivers({"VK_DRIVER_FILES": str(manifest)})
    assert told.startswith(f"libm.so.6, which {manifest} names, {said}")


def test_every_driver_of_a_folder_and_of_those_that_are_added(tmp_path: Path) -> None:
    first = write_manifest(tmp_path / "data" / "vulkan" / "icd.d" / "first.json", "libnobody1.so")
    second = write_manifest(tmp_path / "data" / "vulkan" / "icd.d" / "second.json", "libnobody2.so")
    added = write_manifest(tmp_path / "added.json", "libnobody3.so")
    environment = {
        **nowhere(tmp_path),
        "XDG_DATA_DIRS": f"{tmp_path / 'nothing'}:{tmp_path / 'data'}",
        "VK_ADD_DRIVER_FILES": str(added),
    }
    told = describe_drivers(environment)
    assert [told.count(str(manifest)) for manifest in (first, second, added)] == [1, 1, 1]
    of_folder = describe_drivers({**environment, "VK_DRIVER_FILES": str(first.parent)})
    assert [of_folder.count(str(manifest)) for manifest in (first, second, added)] == [1, 1, 0]


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"ICD": {"library": "x"}}', '{"ICD": 3}'])
def test_a_file_that_is_no_manifest(content: str, tmp_path: Path) -> None:
    manifest = tmp_path / "icd.json"
    manifest.write_text(content)
    told = describe_drivers({"VK_DRIVER_FILES": str(manifest)})
    assert told.startswith(f"{manifest} is not a manifest of a driver (")


@pytest.mark.skipif(Path("/etc/vulkan/icd.d").exists(), reason="this machine has a driver in /etc")
def test_no_driver_at_all(tmp_path: Path) -> None:
    assert describe_drivers(nowhere(tmp_path)).startswith("none has a manifest in /usr/share/vulkan/icd.d ")
