"""``evaltools doctor --install=software-gpu``: what it unpacks, who takes it, what is said where it cannot be had."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaltools.errors import ConfigurationUnavailable
from evaltools.inspection.software_gpu import install, is_complete, write_environment
from evaltools.runtime.compiled.gpu import default_folder, installed_driver, take_software_gpu
from tests.command import evaltools, evaltools_here

ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Vulkan's loader is looked for on Linux only")


def unpack_stand_ins(folder: Path) -> Path:
    """What the packages hold, every library empty; returns the libraries' folder."""
    libraries = folder / "root" / "usr" / "lib" / "x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    (libraries / "libvulkan.so.1").touch()
    (libraries / "libvulkan_lvp.so").touch()
    (folder / "root" / "lvp_icd.x86_64.json").write_text(json.dumps({"ICD": {"library_path": "libvulkan_lvp.so"}}))
    return libraries


@pytest.fixture
def nothing_else(tmp_path: Path) -> dict[str, str]:
    """An environment in which Vulkan finds no driver but that of the cache, if there is one."""
    empty = str(tmp_path / "empty")
    homes = ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS")
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), **dict.fromkeys(homes, empty)}


@pytest.fixture
def no_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An apt that reaches nothing."""
    for name, text in {"apt-get": "echo E: no such mirror >&2; exit 100", "dpkg": "exit 0"}.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")


@pytest.mark.parametrize("name", ["plain", "it's here", 'a b$HOME`date`"'])
def test_the_environment_is_set_from_a_folder_of_any_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    libraries = unpack_stand_ins(folder)
    write_environment(folder)
    shown = 'printf "%s\\n" "$VK_DRIVER_FILES" "$LD_LIBRARY_PATH" "$XDG_RUNTIME_DIR"'
    completed = subprocess.run(
        ["sh", "-euc", f'. "$1"; {shown}', "sh", str(folder / "env.sh")],
        env={"LD_LIBRARY_PATH": "/before"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.splitlines() == [str(folder / "icd.json"), f"{libraries}:/before", str(folder / "run")]


def test_what_was_moved_or_is_not_whole_is_not_taken_for_complete(tmp_path: Path) -> None:
    before = tmp_path / "before"
    assert not is_complete(before)
    libraries = unpack_stand_ins(before)
    write_environment(before)
    assert not is_complete(before.rename(tmp_path / "after"))
    (tmp_path / "after").rename(before)
    assert is_complete(before)
    (libraries / "libvulkan.so.1").unlink()
    assert installed_driver(before) is None


@ONLY_LINUX
def test_the_driver_of_the_cache_is_taken_where_there_is_no_other(nothing_else: dict[str, str]) -> None:
    folder = default_folder(nothing_else)
    unpack_stand_ins(folder)
    write_environment(folder)
    environment = dict(nothing_else)
    take_software_gpu(environment)
    assert environment == {**nothing_else, "VK_DRIVER_FILES": str(folder / "icd.json")}


@ONLY_LINUX
def test_a_driver_of_the_machine_comes_first(nothing_else: dict[str, str], tmp_path: Path) -> None:
    folder = default_folder(nothing_else)
    unpack_stand_ins(folder)
    write_environment(folder)
    machine = tmp_path / "data" / "vulkan" / "icd.d"
    machine.mkdir(parents=True)
    (machine / "nvidia_icd.json").write_text("{}")
    for before in (
        {**nothing_else, "XDG_DATA_DIRS": str(tmp_path / "data")},
        {**nothing_else, "VK_DRIVER_FILES": "/another.json"},
        {**nothing_else, "VK_ICD_FILENAMES": "/another.json"},
    ):
        environment = dict(before)
        take_software_gpu(environment)
        assert environment == before


@pytest.mark.usefixtures("no_packages")
@pytest.mark.parametrize("below", ["", "below"])
def test_a_file_is_no_folder(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    completed = evaltools_here("doctor", "--install=software-gpu", f"--folder={tmp_path / 'file' / below}")
    assert completed.code == 2
    assert "cannot be made a folder: Not a directory" in completed.err


@pytest.mark.usefixtures("no_packages")
def test_packages_that_cannot_be_had_are_said_in_a_sentence_with_the_next_step(tmp_path: Path) -> None:
    completed = evaltools_here("doctor", "--install=software-gpu", f"--folder={tmp_path / 'new'}")
    assert (completed.code, completed.out) == (3, "")
    for fact in ("lavapipe", "E: no such mirror", "apt-get update", "24 or newer"):
        assert fact in completed.err
    assert completed.err.count("\n") == 1


def test_without_apt_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ConfigurationUnavailable, match=r"apt-get and dpkg, which only Debian .* install Mesa's lavapipe"
    ):
        install(tmp_path / "new")


@pytest.mark.skipif("EVALTOOLS_EXPECT_GPU" not in os.environ, reason="packages of a software GPU are not expected here")
def test_what_was_installed_is_found_by_itself_and_called_software(
    nothing_else: dict[str, str], tmp_path: Path
) -> None:
    environment = {**nothing_else, "VK_DRIVER_FILES": "", "VK_ICD_FILENAMES": "", "LD_LIBRARY_PATH": ""}
    installed = evaltools("doctor", "--install=software-gpu", environment=environment)
    assert installed.code == 0, installed.err
    assert "next: evaltools doctor" in installed.out
    found = tmp_path / "found.json"
    assert evaltools("doctor", f"--output={found}", environment=environment).code == 0
    states = {entry["name"]: entry for entry in json.loads(found.read_text())}
    for name in ("gpu fp32", "gpu fp16"):
        assert states[name]["state"] == "works", states[name]
        assert "[software: this is the CPU]" in states[name]["proof"]
