"""The scripts that unpack adb, adbd and a GPU in software from packages of Debian."""

from __future__ import annotations

import json
import subprocess
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
PROGRAMS = "usr/lib/android-sdk/platform-tools"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return import_module("get_adbd")


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return import_module("debian_packages")


def test_the_sources_are_the_machines_own_with_another_release(tmp_path: Path, packages: ModuleType) -> None:
    known = [packages.Repository("mirror/security", "one-security"), packages.Repository("mirror", "one")]
    packages.write_sources(tmp_path, [packages.of_suite(known, "two")])
    (line,) = (tmp_path / "sources.list").read_text().splitlines()
    assert line.startswith("deb ")
    assert line.endswith("mirror two main")
    with pytest.raises(FileNotFoundError, match="only one-security"):
        packages.of_suite(known[:1], "two")


def test_a_package_that_is_left_out_is_not_unpacked(
    tmp_path: Path, packages: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages.make_folders(tmp_path)
    archives = tmp_path / "cache" / "archives"
    for name in ("libc6_1_any.deb", "libc6x_1_any.deb"):
        (archives / name).touch()
    unpacked = []
    monkeypatch.setattr(packages, "run", lambda *command: unpacked.append(Path(command[2]).name))
    packages.unpack_archives(tmp_path, leave_out="libc6")
    assert unpacked == ["libc6x_1_any.deb"]
    assert list(archives.glob("*.deb")) == []


@pytest.mark.parametrize("name", ["plain", "it's here", 'a b$HOME`date`"'])
def test_a_driver_is_found_from_a_folder_of_any_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    folder = tmp_path / name
    libraries = folder / "root" / LIBRARIES
    libraries.mkdir(parents=True)
    (libraries / "libvulkan_lvp.so").touch()
    (folder / "root" / "lvp_icd.x86_64.json").write_text(json.dumps({"ICD": {"library_path": "libvulkan_lvp.so"}}))
    (folder / "env.sh").write_text(import_module("get_vulkan").environment_of(folder))
    shown = 'printf "%s\\n" "$VK_DRIVER_FILES" "$LD_LIBRARY_PATH" "$XDG_RUNTIME_DIR"'
    done = subprocess.run(
        ["sh", "-euc", f'. "$1"; {shown}', "sh", str(folder / "env.sh")],
        env={"LD_LIBRARY_PATH": "/before"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [str(folder / "icd.json"), f"{libraries}:/before", str(folder / "run")]
    assert json.loads((folder / "icd.json").read_text())["ICD"]["library_path"] == str(libraries / "libvulkan_lvp.so")
