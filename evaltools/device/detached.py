"""Commands that go on when the link is cut: a session of their own on the device, looked at from time to time.

The scripts run in every sh: mksh, dash and that of busybox. In the folder of a run: ``command``; ``pid``: process
number and start time of the session's leader, which distinguishes it from a later process of the same number; ``out``,
``err`` and, at the end, ``code``. A run ends itself after its time.
"""

from __future__ import annotations

import math
import posixpath
import shlex
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from evaltools.device.adb import Adb, patiently, rest, stop_if_asked
from evaltools.device.errors import CommandFailed, DeviceError, DeviceStopped, DeviceTimeout
from evaltools.device.process import Answer

VARIABLE: Final = "EVALTOOLS_RUN"
"""In the environment of a run: its folder, then ``/.``, so that no folder is the beginning of another."""
WORK_FOLDER: Final = "/data/local/tmp"
_POLL_S: Final = 0.5
_PATIENCE_S: Final = 60.0
_PATIENCE_AT_STOP_S: Final = 10.0
_TIMEOUT_S: Final = 3600.0


def start_script(folder: str, command: str, timeout_s: int) -> str:
    """Start ``command`` in ``folder``; it is ended after ``timeout_s`` seconds.

    If several leaders of a session are started, only the first goes on.
    """
    own = shlex.quote(folder)
    leader = f"""\
set -- $(cat /proc/$$/stat)
(set -C; echo $$ ${{22}} >pid) || exit
(trap "kill \\$s; exit" TERM
sleep {timeout_s} & s=$!
wait $s
kill -9 0) &
w=$!
sh command >out 2>err </dev/null
c=$?
kill $w
echo $c >code.part
mv code.part code
"""
    return f"""\
mkdir -p {own} && cd {own} || exit 1
if [ ! -s pid ]; then
printf %s {shlex.quote(command)} >c.$$ && mv c.$$ command || {{ [ -s pid ] || rm -r {own}; exit 1; }}
setsid true || {{ rm -r {own}; echo no setsid; exit 1; }}
{VARIABLE}={own}/. setsid sh -c {shlex.quote(leader)} </dev/null >/dev/null 2>&1 &
n=0
while [ ! -s pid ]; do
if [ $n -gt 50 ]; then echo it does not begin; exit 1; fi
n=$((n+1))
sleep .1
done
fi
"""


def look_script(folder: str, out_offset: int, err_offset: int, mark: str) -> str:
    """Print new output, whether the run is alive, and its exit code if it has ended.

    The script asks whether the run is alive before it asks for the code, and for the code before the output. So a code
    always comes with all output.
    """
    return f"""\
cd {shlex.quote(folder)} || exit 1
a=0
if read p b <pid
then set -- $(cat /proc/$p/stat); [ "${{22}}" = "$b" ] && [ "$3" != Z ] && a=1
else a=1
fi 2>/dev/null
c=$(cat code 2>/dev/null)
tail -c +{out_offset + 1} out 2>/dev/null; printf %s {mark}
tail -c +{err_offset + 1} err 2>/dev/null; printf %s {mark}
echo $a $c
"""


def end_script(folder: str) -> str:
    """End the process group of a run; the script fails where some of it stays.

    A run without a pid gets one that no process has, so that a start that arrives late does nothing. If the leader has
    ended, its group is still the run's own; a process with the leader's number but another start time is a stranger.
    """
    return f"""\
exec 2>/dev/null
p=0 b=0 n=0
if cd {shlex.quote(folder)}; then (set -C; echo 0 0 >pid); read p b <pid; fi
[ "$p" -gt 1 ] || exit 0
while [ $n -lt 30 ]; do
set -- $(cat /proc/$p/stat)
[ $# = 0 ] || [ "${{22}}" = "$b" ] || exit 0
kill -9 -$p && [ "$3" != Z ] || exit 0
n=$((n+1))
sleep .2
done
exit 1
"""


class DetachedRun(Struct, frozen=True):
    """A command on a device: ``folder`` there holds its pid, exit code, stdout and stderr."""

    serial: str
    folder: str


def start(
    adb: Adb,
    serial: str,
    command: str,
    parent: str = WORK_FOLDER,
    name: str = "",
    timeout_s: float = _TIMEOUT_S,
) -> DetachedRun:
    """Start a command in a session of its own, in a new folder ``name`` below ``parent``, which is its work folder.

    To start again under the same name does nothing, so that a start whose answer was lost can be repeated; one that
    was cut in the middle is completed. It ends itself after ``timeout_s`` seconds; its folder stays. Raises
    :class:`CommandFailed` where the folder cannot be made or the device has no ``setsid``.
    """
    folder = posixpath.join(parent, name or f"evaltools-{uuid.uuid4().hex[:12]}")
    answer = adb.shell(serial, start_script(folder, command, math.ceil(timeout_s)))
    if answer.code != 0:
        raise CommandFailed(
            f"{serial}: nothing can be started in {folder}{answer.quote()}; it needs a folder that can be written, "
            "space there, and the program setsid",
            serial,
        )
    return DetachedRun(serial, folder)


def wait(
    adb: Adb,
    run: DetachedRun,
    timeout_s: float,
    on_output: Callable[[bytes, bytes], None] = lambda _out, _err: None,
    poll_s: float = _POLL_S,
    patience_s: float = _PATIENCE_S,
    stop: threading.Event | None = None,
) -> Answer:
    """Wait for the end; ``on_output`` gets what is new on stdout and stderr.

    A device that is away is waited for ``patience_s`` seconds at a time. Raises :class:`DeviceTimeout` after
    ``timeout_s`` seconds and :class:`DeviceStopped` where ``stop`` is set, when the command and its children have been
    ended, :class:`CommandFailed` where the command vanished without an exit code (memory or space ran out, or the
    device restarted), and the error of a device that stayed away.
    """
    serial, limit = run.serial, time.monotonic() + timeout_s
    printed = Answer(0, b"", b"")
    try:
        while True:
            is_late = time.monotonic() > limit
            look = partial(_look, adb, run, len(printed.out), len(printed.err))
            new, code, is_alive = patiently(adb, serial, look, patience_s, stop)
            printed = Answer(0, printed.out + new.out, printed.err + new.err)
            if new.out or new.err:
                on_output(new.out, new.err)
            if code is not None:
                return Answer(code, printed.out, printed.err)
            if is_late or not is_alive:
                patiently(adb, serial, partial(end, adb, run), patience_s)
                raise _why_ended(run, printed, timeout_s if is_alive else None)
            rest(max(0.0, min(poll_s, limit - time.monotonic())), stop)
            stop_if_asked(serial, stop)
    except DeviceStopped as stopped:
        try:
            patiently(adb, serial, partial(end, adb, run), min(patience_s, _PATIENCE_AT_STOP_S))
        except DeviceError as error:
            raise DeviceStopped(
                f"{stopped}. The command in {run.folder} could not be ended: {error}; it ends itself after its time",
                serial,
            ) from error
        raise


def _look(adb: Adb, run: DetachedRun, out_offset: int, err_offset: int) -> tuple[Answer, int | None, bool]:
    """What the command printed behind these offsets (bytes), its exit code if it has ended, and whether it is alive."""
    mark = f"evaltools-{uuid.uuid4().hex}"
    answer = adb.shell(run.serial, look_script(run.folder, out_offset, err_offset, mark))
    sections = answer.out.split(mark.encode())
    if answer.code != 0 or len(sections) != 3:
        raise CommandFailed(
            f"{run.serial}: {run.folder} is gone or cannot be read{answer.quote()}; run it again", run.serial
        )
    out, err, end_line = sections
    alive, *code = end_line.split()
    return Answer(0, out, err), int(code[0]) if code else None, alive != b"0"


def _why_ended(run: DetachedRun, printed: Answer, timeout_s: float | None) -> DeviceError:
    """The error of a command that was ended after ``timeout_s`` seconds; None: that vanished."""
    if timeout_s is not None:
        return DeviceTimeout(
            f"{run.serial}: the command in {run.folder} did not end within {timeout_s:g} s and was ended"
            f"{printed.quote()}; allow more time",
            run.serial,
        )
    return CommandFailed(
        f"{run.serial}: the command in {run.folder} vanished without an exit code{printed.quote()}; memory or space "
        "ran out, its time was over, or the device restarted: see adb logcat and df, then run it again",
        run.serial,
    )


def end(adb: Adb, run: DetachedRun, script: str = "") -> None:
    """End the command and its children, unless they have ended. Raises :class:`CommandFailed` if some stay."""
    answer = adb.shell(run.serial, script or end_script(run.folder))
    if answer.code != 0:
        raise CommandFailed(
            f"{run.serial}: the command in {run.folder} cannot be ended{answer.quote()}; restart the device", run.serial
        )


def remove(adb: Adb, run: DetachedRun) -> None:
    """End the command if it still runs, and delete its folder."""
    end(adb, run, f"({end_script(run.folder)}) || exit; rm -rf {shlex.quote(run.folder)}; exit 0")
