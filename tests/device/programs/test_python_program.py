"""Evaltools put on a device that has Python, or what only says so: what is refused, and what can be stopped."""

from __future__ import annotations

import posixpath
import threading
from pathlib import Path

import pytest

from evaltools.device.adb import Adb
from evaltools.device.errors import DeviceError, DeviceStopped
from evaltools.device.python_program import install, read_folder
from tests.device.fixtures import Devices, device_at

ROOT = "/data/local/tmp/programs-test"
PYTHON = "/data/local/tmp/python"
NEEDED = ("imagenet", ("evaltools.tasks.imagenet.evaluation", "scipy.special"))
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


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "evaltools-1-py3-none-any.whl"
    path.write_bytes(b"a wheel")
    return path


def put_python(devices: Devices, check: str) -> None:
    program = devices[0].folder / "python"
    program.write_text(_STAND_IN.replace("CHECK", check))
    program.chmod(0o755)


@pytest.mark.parametrize("printed", ["", '{"folder": 3}'])
def test_a_check_that_says_nothing_is_a_missing_program_with_what_it_printed(
    client: Adb, devices: Devices, wheel: Path, printed: str
) -> None:
    put_python(devices, f"echo '{printed}'")
    with pytest.raises(DeviceError, match=r"did not say where it imports evaltools from") as caught:
        install(device_at(client, devices[0].serial, root=ROOT), [wheel], *NEEDED, PYTHON)
    assert (f"; it printed last: {printed};" in str(caught.value)) == bool(printed)


def test_a_stop_ends_the_waiting_for_a_check(client: Adb, devices: Devices, wheel: Path) -> None:
    put_python(devices, "sleep 60")
    stop = threading.Event()
    timer = threading.Timer(3.0, stop.set)
    timer.start()
    with pytest.raises(DeviceStopped):
        install(device_at(client, devices[0].serial, root=ROOT, stop=stop), [wheel], *NEEDED, PYTHON)
    timer.join()


@pytest.mark.parametrize("printed", ["", "\n", "hello", "{", "{}", "3", '["folder"]', "null", "[" * 100_000])
def test_no_text_is_no_folder(printed: str) -> None:
    assert read_folder(printed) is None


def test_a_program_that_cannot_be_started_stays_for_another_try(client: Adb, devices: Devices, wheel: Path) -> None:
    put_python(devices, "echo no module numpy >&2; exit 1")
    store = device_at(client, devices[0].serial, root=ROOT)
    programs = devices[0].folder / "programs-test" / "programs"
    inodes = []
    for _ in range(2):
        with pytest.raises(DeviceError, match="no module numpy"):
            install(store, [wheel], *NEEDED, PYTHON)
        inodes.append([path.stat().st_ino for path in programs.iterdir()])
    assert inodes[0] == inodes[1]


def test_what_was_left_half_unpacked_is_unpacked_anew(client: Adb, devices: Devices, wheel: Path) -> None:
    put_python(devices, 'echo "{\\"folder\\": \\"$PYTHONPATH/evaltools\\"}"')
    store = device_at(client, devices[0].serial, root=ROOT)
    name = posixpath.basename(install(store, [wheel], *NEEDED, PYTHON).folder)
    programs = devices[0].folder / "programs-test" / "programs"
    (programs / name).rename(programs / f"{name}.part")
    (programs / f"{name}.part" / "old").touch()
    assert posixpath.basename(install(store, [wheel], *NEEDED, PYTHON).folder) == name
    assert [path.name for path in programs.iterdir()] == [name]
    assert [path.name for path in (programs / name).iterdir()] == ["evaltools"]
