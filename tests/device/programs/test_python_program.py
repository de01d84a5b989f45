"""Evaltools put on a device that has Python, or what only says so: what is refused, and what can be stopped."""

from __future__ import annotations

import shutil
import threading

import pytest
from msgspec.structs import replace

from evaltools.adb.client import Adb, DeviceError, DeviceStopped
from evaltools.device.device import Device
from evaltools.device.python_program import python_on
from evaltools.known_tasks import task_command
from tests.device.fixtures import Devices, device_at

ROOT = "/data/local/tmp/programs-test"
PYTHON = "/data/local/tmp/python"
COMMAND = task_command("imagenet")
_STAND_IN = """\
#!/bin/sh
# As python3 --version, python3 -m zipfile -e WHEEL FOLDER, and
# python3 -m evaltools.device.on_device --check MODULE;
case "$*" in
--version) echo Python 3.11.2 ;;
*zipfile*) mkdir -p "$5/evaltools" && : >"$5/evaltools/__init__.py" ;;
*--check*) CHECK ;;
esac
"""


def put_python(devices: Devices, check: str) -> None:
    program = devices[0].folder / "python"
    program.write_text(_STAND_IN.replace("CHECK", check))
    program.chmod(0o755)


@pytest.fixture
def device(client: Adb, devices: Devices) -> Device:
    found = device_at(client, devices[0].serial, root=ROOT)
    found.flags = replace(found.flags, python=PYTHON)
    return found


def test_a_stop_ends_the_waiting_for_a_check(device: Device, devices: Devices) -> None:
    put_python(devices, "sleep 60")
    timer = threading.Timer(3.0, device.link.stop.set)
    timer.start()
    with pytest.raises(DeviceStopped):
        python_on(device, COMMAND)
    timer.join()


def test_a_program_that_cannot_be_started_stays_for_another_try(device: Device, devices: Devices) -> None:
    put_python(devices, "echo no module numpy >&2; exit 1")
    programs = devices[0].folder / "programs-test" / "programs"
    inodes = []
    for _ in range(2):
        with pytest.raises(DeviceError, match="no module numpy"):
            python_on(device, COMMAND)
        inodes.append([path.stat().st_ino for path in programs.iterdir()])
    assert inodes[0] == inodes[1]


def test_what_was_left_half_unpacked_is_unpacked_anew(device: Device, devices: Devices) -> None:
    put_python(devices, "true")
    programs = devices[0].folder / "programs-test" / "programs"
    shutil.rmtree(programs, ignore_errors=True)
    python_on(device, COMMAND)
    assert device.facts.python == "3.11.2"
    (name,) = (path.name for path in programs.iterdir())
    (programs / name).rename(programs / f"{name}.part")
    (programs / f"{name}.part" / "old").touch()
    device.python = ""
    python_on(device, COMMAND)
    assert [path.name for path in programs.iterdir()] == [name]
    assert [path.name for path in (programs / name).iterdir()] == ["evaltools"]
