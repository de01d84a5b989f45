"""The commands in docs/devices.md, on real devices."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.benchmark_model import write_benchmark_model
from tests.command import evaltools_here
from tests.device.android_programs import add_android
from tests.device.fixtures import Devices
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
        device.add_program("python3", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    serial = devices[0].serial
    if "--device_program=app" in command:
        add_android(devices[0], "org.tensorflow.lite.benchmark/.BenchmarkModelActivity")
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    write_benchmark_model(tmp_path)
    command = command.replace("SERIAL", serial)
    words = shlex.split(command)
    assert words[0] == "evaltools"
    if {"imagenet", "coco"} & {*words} and not any(word.startswith("--num_images=") for word in words):
        words.append("--num_images=4")
    if "locate" in words:
        words += ["--num_inputs=1", "--max_compiles=3"]
    monkeypatch.setenv("ADB", str(network.adb))
    monkeypatch.setenv("ANDROID_SERIAL", serial)
    done = evaltools_here(*words[1:], cwd=tmp_path)
    assert done.code == (3 if "use_gpu" in command else 0), done.err
    assert "Traceback" not in done.err
