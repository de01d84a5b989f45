"""The commands about devices in docs/devices.md and docs/locate.md, on real devices."""

from __future__ import annotations

import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.command import evaltools_here
from tests.device.android_programs import add_android
from tests.device.fixtures import Devices
from tests.device.native_stand_in import write_stand_in
from tests.device.real_device import Network

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "devices.md"
_FENCE = "```"


def shown() -> list[str]:
    """The lines in the blocks of the page that need devices."""
    blocks = PAGE.read_text().split(f"{_FENCE}sh\n")[1:]
    return [line for block in blocks for line in block.partition(_FENCE)[0].splitlines()]


@pytest.mark.parametrize("command", shown(), ids=lambda command: " ".join(command.split()[1:5]))
def test_a_command_of_the_page_runs(
    command: str, network: Network, devices: Devices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for device in devices:
        device.add_program("python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    serial = devices[0].serial
    if "--device_program=app" in command:
        add_android(devices[0], "org.tensorflow.lite.benchmark/.BenchmarkModelActivity")
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    write_stand_in(tmp_path, "imagenet").rename(tmp_path / "run_eval")
    words = shlex.split(command)
    assert words[0] == "evaltools"
    if "--serials=all" in words and "--split=each" not in words:
        words.append("--parts=1")
    if "imagenet" in words and not any(word.startswith("--num_images=") for word in words):
        words.append("--num_images=20")
    monkeypatch.setenv("ADB", str(network.adb))
    monkeypatch.setenv("ANDROID_SERIAL", serial)
    done = evaltools_here(*words[1:], cwd=tmp_path)
    assert done.code == (3 if "use_gpu" in command else 0), done.err
    assert "Traceback" not in done.err


WHEELS = {
    "tflite_runtime": "2.14.0-cp311-cp311-manylinux_2_34_aarch64",
    "ai_edge_litert": "2.3.0-cp311-cp311-manylinux_2_27_aarch64",
    "numpy": "1.26.4-cp311-cp311-manylinux_2_17_aarch64.manylinux2014_aarch64",
    "scipy": "1.17.1-cp311-cp311-manylinux_2_27_aarch64.manylinux_2_28_aarch64",
    "psutil": "7.2.2-cp36-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64.manylinux_2_28_aarch64",
    "rich": "15.0.0-py3-none-any",
}
"""Packages of evaltools as they are published for such a board: version and tags."""


def test_pip_takes_the_wheels_of_a_board_by_the_flags_of_the_page(tmp_path: Path) -> None:
    """The tags that packages are published with are those that the command asks for."""
    pytest.importorskip("pip")
    (command,) = (line for line in PAGE.read_text().splitlines() if " -m pip download " in line)
    python, *words = shlex.split(command)
    assert (python, words[-1]) == ("python3.11", ".")
    published = tmp_path / "published"
    published.mkdir()
    for name, tagged in WHEELS.items():
        version = tagged.partition("-")[0]
        with zipfile.ZipFile(published / f"{name}-{tagged}.whl", "w") as wheel:
            folder = f"{name}-{version}.dist-info"
            wheel.writestr(f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            wheel.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
            wheel.writestr(f"{folder}/RECORD", "")
    offline = [*words[:-1], "--isolated", "--no-index", f"--find-links={published}", *WHEELS]
    done = subprocess.run([sys.executable, *offline], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert {wheel.name for wheel in (tmp_path / "wheels").iterdir()} == {wheel.name for wheel in published.iterdir()}


def test_the_page_shows_every_task() -> None:
    for task in ("imagenet", "coco", "inference-diff", "benchmark"):
        assert any(line.startswith(f"evaltools device run {task} ") for line in shown())
