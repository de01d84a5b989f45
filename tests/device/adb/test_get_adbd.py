"""The scripts that unpack adb, adbd and other packages of Debian."""

from __future__ import annotations

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
    return import_module("evaltools.inspection.debian_packages")


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def unpack_stand_ins(folder: Path) -> None:
    """What the packages hold, each program a few lines that say how they were called."""
    client, daemon = folder / "client" / "root", folder / "daemon" / "root"
    write_program(client / PROGRAMS / "adb", 'printf "%s\\n" "$LD_LIBRARY_PATH" "$@"')
    write_program(daemon / PROGRAMS / "adbd", "exit 9")
    write_program(daemon / LIBRARIES / "ld-linux-x86-64.so.2", 'printf "%s\\n" "$@"')
    (client / LIBRARIES / "android").mkdir(parents=True)
    (daemon / LIBRARIES / "android").mkdir()


def test_the_programs_of_a_folder_of_any_name_run_with_their_libraries(tmp_path: Path, script: ModuleType) -> None:
    folder = tmp_path / "it's a b$HOME`date`\""
    unpack_stand_ins(folder)
    script.write_environment(folder)
    shown = {}
    for variable in ("EVALTOOLS_ADB", "EVALTOOLS_ADBD"):
        command = ["sh", "-euc", f'. "$1"; "${variable}" one "t w o"', "sh", str(folder / "env.sh")]
        completed = subprocess.run(command, env={}, capture_output=True, text=True, check=True)
        shown[variable] = completed.stdout.splitlines()
    client, daemon = folder / "client" / "root", folder / "daemon" / "root"
    assert shown["EVALTOOLS_ADB"] == [f"{client / LIBRARIES / 'android'}:{client / LIBRARIES}", "one", "t w o"]
    libraries = f"{daemon / LIBRARIES / 'android'}:{daemon / LIBRARIES}"
    assert shown["EVALTOOLS_ADBD"] == ["--library-path", libraries, str(daemon / PROGRAMS / "adbd"), "one", "t w o"]


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
