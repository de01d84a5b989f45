"""Runs of the command on devices that are the real daemon, and what they leave there."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from tests.cli.evaluate import sample_runs
from tests.command import Completed, evaltools_here
from tests.device.fixtures import Devices
from tests.device.real_device import TESTED_BY, Network, RealDevice

ROOT: Final = "evaltools"
"""The folder of evaltools below ``/data/local/tmp``."""
_RUN_VARIABLE: Final = "EVALTOOLS_RUN"
_SOON_S: Final = 300.0
"""A bound for what never comes; nothing is measured by it."""
_HELD: Final = """#!/bin/sh
if [ "$2" != evaltools.device.on_device ] || [ "$3" = --check ]; then
  exec {python} "$@"
fi
{python} "$@"
code=$?
until [ -e {let_go} ]; do sleep 0.05; done
exit $code
"""


class Held:
    """Parts on devices that have begun and do not end, so that a test can disturb them.

    Attributes:
        python: this Python, for :func:`on_devices`
    """

    def __init__(self, folder: Path) -> None:
        self.python = folder / "held_python"
        self._let_go = folder / "let_go"
        paths = {"python": sys.executable, "let_go": self._let_go}
        self.python.write_text(_HELD.format(**{name: shlex.quote(str(path)) for name, path in paths.items()}))
        self.python.chmod(0o755)

    def let_go(self) -> None:
        """All parts end when they are done."""
        self._let_go.touch()


def on_devices(
    network: Network,
    serials: Sequence[str],
    arguments: Sequence[str],
    *more: str,
    python: str | Path = sys.executable,
) -> list[str]:
    """The command that does on devices what ``arguments`` do here, with a Python of this machine, which they see."""
    task, *rest = arguments
    return [
        "device", "run", task, *rest, f"--adb={network.adb}", f"--serials={','.join(serials)}",
        f"--device_python={python}", *more,
    ]  # fmt: skip


def start(arguments: Sequence[str]) -> subprocess.Popen[str]:
    """Start ``evaltools``."""
    return sample_runs.start(arguments, "on devices")


def finish(process: subprocess.Popen[str]) -> Completed:
    """Wait for the end."""
    out, err = process.communicate(timeout=300)
    return Completed(process.returncode, out, err)


def run(arguments: Sequence[str]) -> Completed:
    """Run ``evaltools`` to its end, in this process: those that :func:`start` begins are processes of their own."""
    return evaltools_here(*arguments)


def device_run(output: Path) -> Any:
    """What a result says of devices."""
    return json.loads(output.read_text())["device_run"]


def left_running() -> list[str]:
    """The command lines of processes that runs on the devices of this process have left."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            if _RUN_VARIABLE in environment and environment.get(TESTED_BY) == str(os.getpid()):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def left_runs(devices: Devices) -> list[str]:
    """The folders of runs that are still on devices."""
    return [str(path) for device in devices for path in (device.folder / ROOT / "runs").glob("*")]


def is_running(device: RealDevice) -> bool:
    """Whether a part has begun on a device and has not ended."""
    runs = (device.folder / ROOT / "runs").glob("*")
    return any((folder / "pid").exists() and not (folder / "code").exists() for folder in runs)


def wait_for(is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until something is so while a command runs."""
    end = time.monotonic() + _SOON_S
    while not is_so():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
