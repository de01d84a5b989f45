"""The commands that run native binaries on a device, here in this machine's shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from evaltools.device.programs.native_program import NativeProgram
from evaltools.device.programs.part import PartWork, SentFiles

_DATE = f"""#!/bin/sh
exec {shutil.which("date")} --date='2024-06-15 12:00:00.5' "$@"
"""
_LOGCAT = """#!/bin/sh
# As Android's: all lines of a process, or those from a time on.
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
    command = NativeProgram(str(programs / "tool"), (("one",), ("two",))).command(
        PartWork(index=0, count=1, examples=1, files={}), SentFiles({}, {}), ""
    )
    variables = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", command], cwd=folder, env=variables, check=True, timeout=60)
    for number, word in enumerate(("one", "two")):
        lines = (folder / f"log-{number}").read_text().splitlines()
        assert [line.partition(" : ")[2] for line in lines] == [f"own {word}", "own end"]
        assert (folder / f"code-{number}").read_text() == "7\n"
