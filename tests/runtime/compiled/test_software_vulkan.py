"""The script that unpacks a software Vulkan driver: folders with odd names, and what is no folder."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
SCRIPT = SCRIPTS / "get_software_vulkan.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return import_module("get_software_vulkan")


@pytest.mark.parametrize("name", ["plain", "it's here", 'a b$HOME`date`"'])
def test_the_environment_is_set_from_a_folder_of_any_name(name: str, tmp_path: Path, script: ModuleType) -> None:
    folder = tmp_path / name
    libraries = folder / "root" / "usr" / "lib" / "x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    (libraries / "libvulkan.so.1").touch()
    (libraries / "libvulkan_lvp.so").touch()
    (folder / "root" / "lvp_icd.x86_64.json").write_text(json.dumps({"ICD": {"library_path": "libvulkan_lvp.so"}}))
    script.write_environment(folder, "lavapipe")
    shown = 'printf "%s\\n" "$VK_DRIVER_FILES" "$LD_LIBRARY_PATH" "$XDG_RUNTIME_DIR"'
    completed = subprocess.run(
        ["sh", "-euc", f'. "$1"; {shown}', "sh", str(folder / "env.sh")],
        env={"LD_LIBRARY_PATH": "/before"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.splitlines() == [str(folder / "icd.json"), f"{libraries}:/before", str(folder / "run")]


@pytest.mark.parametrize("below", ["", "below"])
def test_a_file_is_no_folder(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    completed = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "file" / below)], capture_output=True, text=True, check=False
    )
    if "apt-get and dpkg are needed" in completed.stderr:
        pytest.skip("this system has no apt")
    assert completed.returncode == 2
    assert "cannot be made a folder: Not a directory" in completed.stderr
    assert "Traceback" not in completed.stderr
