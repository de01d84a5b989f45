"""The commands that run native binaries on a device, here in this machine's shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaltools.adb.client import Answer, CommandFailed
from evaltools.device.native_program import ProgramRun, native_script, read_runs, run_binary
from evaltools.result.device import DeviceConditions, DeviceFacts, DeviceWork, LostAttempt

_DATE = f"""#!/bin/sh
exec {shutil.which("date")} --date='2024-06-15 12:00:00.5' "$@"
"""
_LOGCAT = """#!/bin/sh
# As Android's: all lines of a process, or those from a time on.
[ "$*" = "-d -b crash -v threadtime -T $7" ] && echo "of the crash buffer, since $7" && exit
since= process=
while [ $# -gt 0 ]; do
  case $1 in
  -d) ;;
  -v) [ "$2" = threadtime ] || exit 1; shift ;;
  -T) since=$2; shift ;;
  --pid=*) process=${1#--pid=} ;;
  *) exit 1 ;;
  esac
  shift
done
awk -v since="$since" -v process="$process" '($1 " " $2) >= since && $3 == process' log
"""
_BINARY = """#!/bin/sh
# Android's log, which knows an earlier process of the same number, and one beside this.
cat >>log <<END
06-14 12:00:01.000 $$ $$ I tflite  : of yesterday
06-15 11:59:59.999 $$ $$ I tflite  : of before
06-15 12:00:00.510 $$ $$ I tflite  : own $1
06-15 12:00:00.520 1 1 I tflite  : of another
06-15 12:01:00.000 $$ $$ I tflite  : own end
END
exit 7
"""


def test_the_log_of_a_step_has_nothing_of_an_earlier_process_of_the_same_number(tmp_path: Path) -> None:
    """A line of another process would pass for proof that a delegate took nodes."""
    programs, folder = tmp_path / "bin", tmp_path / "run"
    programs.mkdir()
    folder.mkdir()
    for name, text in (("date", _DATE), ("logcat", _LOGCAT), ("tool", _BINARY)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    command = native_script(str(programs / "tool"), (("one",), ("two",)))
    variables = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", command], cwd=folder, env=variables, check=True, timeout=60)
    since = "06-15 12:00:00.000"
    for number, word in enumerate(("one", "two")):
        lines = (folder / f"log-{number}").read_text().splitlines()
        assert [line.partition(" : ")[2] for line in lines] == [f"own {word}", "own end"]
        assert (folder / f"code-{number}").read_text().split()[0] == "7"
        assert (folder / f"crash-{number}").read_text() == f"of the crash buffer, since {since}\n"


NOTHING = DeviceConditions()
WORK = DeviceWork("A", "", 0.0, 1.0, NOTHING, NOTHING)
PHONE = DeviceFacts("A")


def leave(folder: Path, *codes: int) -> None:
    """What steps leave that ended with these codes; each printed a word and wrote its file."""
    for number, code in enumerate(codes):
        (folder / f"code-{number}").write_text(f"{code}\n")
        (folder / f"out-{number}").write_text("a word\n")
        (folder / f"proto-{number}").write_bytes(b"proto")


@pytest.mark.parametrize("code", [0, 1, 134, 137, 139])
def test_a_crash_of_a_binary_is_a_result(code: int, tmp_path: Path) -> None:
    leave(tmp_path, code)
    found = read_runs(tmp_path, 1, PHONE)
    assert found == [ProgramRun("a word\n", code=code, output=b"proto")]


def test_work_in_which_a_device_killed_the_binary_is_lost_once_and_then_a_result(tmp_path: Path) -> None:
    def do(_prepare: object, _results: object, folder: Path) -> tuple[DeviceWork, Answer]:
        leave(folder, 0, 137, 0)
        return WORK, Answer(0, b"", b"")

    device: Any = SimpleNamespace(serial="A", facts=PHONE, do=do, lost=[])
    for lost in ("the link broke", ""):
        with pytest.raises(CommandFailed, match=r"^A: run 2 was killed there \(SIGKILL\), as Android does") as caught:
            run_binary(device, tmp_path, [["one"]] * 3, {})
        device.lost.append(LostAttempt("", lost or str(caught.value), 1.0))
    work, found = run_binary(device, tmp_path, [["one"]] * 3, {})
    assert (work, [run.code for run in found]) == (WORK, [0, 137, 0])


def test_a_run_without_an_exit_code_is_lost(tmp_path: Path) -> None:
    leave(tmp_path, 0)
    with pytest.raises(CommandFailed, match=r"^A: run 2 left no exit code"):
        read_runs(tmp_path, 2, PHONE)
