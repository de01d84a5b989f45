"""Evaltools put on a device that has Python, or what only says so: what is refused, and what can be stopped."""

from __future__ import annotations

import posixpath
import shutil
import sys
import sysconfig
import threading
from pathlib import Path

import pytest

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.errors import CommandFailed, DeviceStopped, ProgramMissing
from evaltools.device.files.store import DeviceStore, clear
from evaltools.device.programs.python_program import Needed, install, read_folder
from evaltools.device.programs.wheel import write_own_wheel
from tests.device.fixtures import Devices

ROOT = "/data/local/tmp/programs-test"
PYTHON = "/data/local/tmp/python"
NEEDED = Needed("imagenet", ("evaltools.tasks.imagenet.evaluation", "scipy.stats"))
_STAND_IN = """\
#!/bin/sh
# As python3 --version, python3 -m zipfile -e WHEEL FOLDER, and
# python3 -m evaltools.device.programs.on_device --check MODULE;
# what it is asked with -c, whether files of a wheel are missing, it denies.
case "$*" in
-c*) exit 0 ;;
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


@pytest.mark.parametrize("printed", ["", "hello", "[1]", "{}", '{"folder": 3}', '{"folder"', "3"])
def test_a_check_that_says_nothing_is_a_missing_program_with_what_it_printed(
    client: Adb, devices: Devices, wheel: Path, printed: str
) -> None:
    put_python(devices, f"echo '{printed}'")
    with pytest.raises(ProgramMissing, match=r"did not say where it imports evaltools from") as caught:
        install(DeviceStore(client, devices[0].serial, ROOT), [wheel], NEEDED, PYTHON)
    assert (f"; it printed last: {printed};" in str(caught.value)) == bool(printed)


def test_a_stop_ends_the_waiting_for_a_check(client: Adb, devices: Devices, wheel: Path) -> None:
    put_python(devices, "sleep 60")
    stop = threading.Event()
    timer = threading.Timer(3.0, stop.set)
    timer.start()
    with pytest.raises(DeviceStopped):
        install(DeviceStore(client, devices[0].serial, ROOT, stop=stop), [wheel], NEEDED, PYTHON)
    timer.join()


@pytest.mark.parametrize("printed", ["", "\n", "{", '["folder"]', "null", "[" * 100_000])
def test_no_text_is_no_folder(printed: str) -> None:
    assert read_folder(printed) is None


def put_real_python(devices: Devices) -> None:
    """This one with its packages, but for those that are not really there, such as an editable evaltools."""
    program = devices[0].folder / "python"
    packages = sysconfig.get_path("purelib")
    program.write_text(f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{packages}"\nexec {sys.executable} -S "$@"\n')
    program.chmod(0o755)


@pytest.mark.parametrize("missing", ["evaltools", "evaltools/tasks", "evaltools/errors.py"])
def test_a_program_of_which_some_was_deleted_is_put_there_again(
    client: Adb, devices: Devices, tmp_path: Path, missing: str
) -> None:
    put_real_python(devices)
    own, store = write_own_wheel(tmp_path), DeviceStore(client, devices[0].serial, ROOT)
    folder = install(store, [own], NEEDED, PYTHON).folder
    part = devices[0].folder / posixpath.relpath(folder, "/data/local/tmp") / missing
    if part.is_dir():
        shutil.rmtree(part)
    else:
        part.unlink()
    assert install(store, [own], NEEDED, PYTHON).folder == folder
    assert part.exists()
    clear(client, devices[0].serial, ROOT)
    assert install(store, [own], NEEDED, PYTHON).folder == folder
    assert [path.name for path in part.parents[missing.count("/")].parent.iterdir()] == [posixpath.basename(folder)]


def test_a_program_that_is_deleted_each_time_it_was_put_there_is_not_what_is_missing(
    client: Adb, devices: Devices, tmp_path: Path
) -> None:
    program = devices[0].folder / "python"
    deletes = 'case "$*" in *--check*) rm -f "$PYTHONPATH/evaltools/errors.py"; exit 1 ;; esac'
    program.write_text(f'#!/bin/sh\n{deletes}\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    store = DeviceStore(client, devices[0].serial, ROOT)
    with pytest.raises(CommandFailed, match=f"{store.serial}: files of .* were deleted, as device clean does, while"):
        install(store, [write_own_wheel(tmp_path)], NEEDED, PYTHON)


def test_a_whole_program_stays_for_other_runs_where_it_cannot_be_started(
    client: Adb, devices: Devices, wheel: Path
) -> None:
    put_python(devices, "echo no module numpy >&2; exit 1")
    store = DeviceStore(client, devices[0].serial, ROOT)
    with pytest.raises(ProgramMissing, match="no module numpy"):
        install(store, [wheel], NEEDED, PYTHON)
    programs = devices[0].folder / "programs-test" / "programs"
    before = {path: path.stat().st_ino for path in programs.iterdir()}
    with pytest.raises(ProgramMissing, match="no module numpy"):
        install(store, [wheel], NEEDED, PYTHON)
    assert {path: path.stat().st_ino for path in programs.iterdir()} == before
