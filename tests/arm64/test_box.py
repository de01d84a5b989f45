"""What is said where ARM64 is not installed or cannot be, and what the box needs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import tomllib

from evaltools.arm64 import install as installing
from evaltools.arm64.box import FOLDER_VARIABLE, Box, Qemu, users_box, version_of
from evaltools.arm64.install import PACKAGES, install, wanted_runtimes
from evaltools.configuration import OUR_RUNTIMES
from evaltools.errors import UsageError
from evaltools.runs import places
from evaltools.runs.places import Place, places_named

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def no_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "box"))
    monkeypatch.setattr(places, "is_arm64", lambda: False)
    return users_box()


def test_wheels_are_those_that_evaltools_needs() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    needed = {re.split(r"[<>=;]", line)[0] for line in stated if "python_version < '3.11'" not in line}
    runtimes = {package.replace("_", "-") for package in OUR_RUNTIMES.values()}
    assert {re.split("[<>=]", each)[0] for each in PACKAGES} == needed - runtimes


def test_without_a_box_the_message_says_how_to_make_one(no_box: Box) -> None:
    with pytest.raises(UsageError, match=r"evaltools doctor --install=arm64 puts one into .*box"):
        places_named(["arm64:cortex-a53"])
    assert places_named(["here", "here"]) == [Place("here")]


def test_a_box_whose_qemu_was_uninstalled_is_made_anew(no_box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the message says; one that runs is left as it is."""
    no_box.folder.mkdir()
    no_box.python.touch()
    (no_box.folder / "made-of.txt").write_text("\n".join(["3.11", *PACKAGES, *wanted_runtimes()]))
    write_qemu(no_box.qemu, "10.0.2")
    said: list[str] = []
    install(no_box, said.append)
    assert said == ["it is there already, with the runtimes that are installed here"]
    no_box.qemu.unlink()
    with pytest.raises(UsageError, match=r"does not run any more; evaltools doctor --install=arm64 installs it anew"):
        places_named(["arm64:max"])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UsageError, match="takes Python for ARM64 from Debian's packages"):
        install(no_box, said.append)


@pytest.mark.parametrize("text", ["x86-64", "", "arm", "here:max", "adb"])
def test_another_place_is_refused_with_those_that_there_are(no_box: Box, text: str) -> None:
    with pytest.raises(UsageError, match=r"no such place; use here, arm64, arm64:CORE"):
        places_named([text])


def test_arm64_on_a_machine_that_is_arm64_is_that_machine(no_box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "is_arm64", lambda: True)
    assert places_named(["arm64"]) == [Place("arm64")]
    with pytest.raises(UsageError, match="this machine is ARM64 itself"):
        places_named(["arm64:max"])
    monkeypatch.setattr(installing, "is_arm64", lambda: True)
    with pytest.raises(UsageError, match="this machine is ARM64 itself: leave --install and --at out"):
        install(no_box, print)


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("apt-get", r"apt-get is not here: do it in a container of Debian"),
        ("apt-get dpkg", r"apt-get and dpkg are not here"),
    ],
)
def test_a_machine_without_the_tools_is_told_where_it_works(
    no_box: Box, monkeypatch: pytest.MonkeyPatch, gone: str, said: str
) -> None:
    found = shutil.which
    monkeypatch.setattr(installing, "is_arm64", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: None if name in gone.split() else found(name) or name)
    with pytest.raises(UsageError, match=said):
        install(no_box, print)
    assert not no_box.folder.exists()


@pytest.mark.parametrize(
    ("version", "is_enough"), [("7.2.22", False), ("9.2.0", False), ("10.0.2", True), ("11.1", True)]
)
def test_a_qemu_that_ends_in_a_segmentation_fault_is_not_taken(version: str, is_enough: bool, tmp_path: Path) -> None:
    program = write_qemu(tmp_path / "qemu-aarch64", version)
    found = version_of(program)
    assert found == Qemu(program, version)
    assert found.is_new_enough == is_enough


def write_qemu(program: Path, version: str) -> Path:
    program.write_text(f"#!/bin/sh\necho 'qemu-aarch64 version {version} (Debian 1:{version})'\n")
    program.chmod(0o755)
    return program


def test_what_is_no_qemu_has_no_version(tmp_path: Path) -> None:
    assert version_of(tmp_path / "nothing") is None
    assert version_of(Path("/bin/true")) is None
