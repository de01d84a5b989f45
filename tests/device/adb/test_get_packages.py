"""The scripts that unpack adb, adbd and a GPU in software from packages of Debian."""

from __future__ import annotations

import json
import subprocess
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from evaltools.arm64 import debian_packages

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
LIBRARIES = "usr/lib/x86_64-linux-gnu"


@pytest.fixture
def packages() -> ModuleType:
    return debian_packages


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
