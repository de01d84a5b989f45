"""Commands that go on when the link is cut: a session of their own on the device, looked at from time to time.

The scripts run in every sh: mksh, dash and that of busybox. In the folder of a run: ``command``; ``pid``: process
number and start time of the session's leader, by which it is told from a later process of the same number; ``out``,
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

from evaltools.device.adb.adb import Adb, patiently, rest, stop_if_asked
from evaltools.device.adb.errors import CommandFailed, DeviceError, DeviceStopped, DeviceTimeout
from evaltools.device.adb.process import ShellAnswer

VARIABLE: Final = "EVALTOOLS_RUN"
"""In the environment of a run: its folder, then ``/.``, so that no folder is the beginning of another."""


def start_script(folder: str, command: str, timeout_s: int) -> str:
    """Start ``command`` in ``folder``; it is ended after ``timeout_s`` seconds."""
    own = shlex.quote(folder)
    return f"""\
mkdir -p {own} && cd {own} || exit 1
if [ ! -s pid ]; then
printf %s {shlex.quote(command)} >c.$$ && mv c.$$ command || {{ [ -s pid ] || rm -r {own}; exit 1; }}
setsid true || {{ rm -r {own}; echo no setsid; exit 1; }}
{VARIABLE}={own}/. setsid sh -c {shlex.quote(_run_script(timeout_s))} </dev/null >/dev/null 2>&1 &
n=0
while [ ! -s pid ]; do
if [ $n -gt 50 ]; then echo it does not begin; exit 1; fi
n=$((n+1))
sleep .1
done
fi
"""


def _run_script(timeout_s: int) -> str:
    """The script of the leader of a run's session; if several are started, only the first goes on."""
    return f"""\
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


WORK_FOLDER: Final = "/data/local/tmp"
_POLL_S: Final = 0.5
_PATIENCE_S: Final = 60.0
_PATIENCE_AT_STOP_S: Final = 10.0
_TIMEOUT_S: Final = 3600.0


class DetachedRun(Struct, frozen=True):
    """A command on a device: ``folder`` there holds its pid, exit code, stdout and stderr."""

    serial: str
    folder: str


class RunProgress(Struct, frozen=True):
    """What came since the last look: ``code`` is None while it runs; ``is_gone``: it ended without leaving a code."""

    out: bytes
    err: bytes
    code: int | None
    is_gone: bool


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


def look(adb: Adb, run: DetachedRun, out_offset: int = 0, err_offset: int = 0) -> RunProgress:
    """What the command printed behind these offsets (bytes), and whether it has ended."""
    mark = f"evaltools-{uuid.uuid4().hex}"
    answer = adb.shell(run.serial, look_script(run.folder, out_offset, err_offset, mark))
    parts = answer.out.split(mark.encode())
    if answer.code != 0 or len(parts) != 3:
        raise CommandFailed(
            f"{run.serial}: {run.folder} is gone or cannot be read{answer.quote()}; run it again", run.serial
        )
    out, err, end = parts
    alive, *code = end.split()
    return RunProgress(out, err, int(code[0]) if code else None, not code and alive == b"0")


def wait(
    adb: Adb,
    run: DetachedRun,
    timeout_s: float,
    on_output: Callable[[bytes, bytes], None] | None = None,
    poll_s: float = _POLL_S,
    patience_s: float = _PATIENCE_S,
    stop: threading.Event | None = None,
) -> ShellAnswer:
    """Wait for the end; ``on_output`` gets what is new on stdout and stderr.

    A device that is away is waited for ``patience_s`` seconds at a time. Raises :class:`DeviceTimeout` after
    ``timeout_s`` seconds and :class:`DeviceStopped` where ``stop`` is set, when the command and its children have been
    ended, :class:`CommandFailed` where the command vanished without an exit code (memory or space ran out, or the
    device restarted), and the error of a device that stayed away.
    """
    try:
        return _watch(adb, run, timeout_s, on_output, poll_s, patience_s, stop)
    except DeviceStopped as stopped:
        try:
            patiently(adb, run.serial, partial(end, adb, run), min(patience_s, _PATIENCE_AT_STOP_S))
        except DeviceError as error:
            raise DeviceStopped(
                f"{stopped}. The command in {run.folder} could not be ended: {error}; it ends itself after its time",
                run.serial,
            ) from error
        raise


def _watch(
    adb: Adb,
    run: DetachedRun,
    timeout_s: float,
    on_output: Callable[[bytes, bytes], None] | None,
    poll_s: float,
    patience_s: float,
    stop: threading.Event | None,
) -> ShellAnswer:
    """Wait as :func:`wait` does, but leave the command running on a stop."""
    limit = time.monotonic() + timeout_s
    out, err = bytearray(), bytearray()
    while True:
        is_late = time.monotonic() > limit
        progress = patiently(adb, run.serial, partial(look, adb, run, len(out), len(err)), patience_s, stop)
        out += progress.out
        err += progress.err
        if on_output is not None and (progress.out or progress.err):
            on_output(progress.out, progress.err)
        if progress.code is not None:
            return ShellAnswer(progress.code, bytes(out), bytes(err))
        if progress.is_gone:
            patiently(adb, run.serial, partial(end, adb, run), patience_s)
            raise _why_gone(run, ShellAnswer(0, bytes(out), bytes(err)))
        if is_late:
            patiently(adb, run.serial, partial(end, adb, run), patience_s)
            raise DeviceTimeout(
                f"{run.serial}: the command in {run.folder} did not end within {timeout_s:g} s and was ended"
                f"{ShellAnswer(0, bytes(out), bytes(err)).quote()}; allow more time",
                run.serial,
            )
        rest(max(0.0, min(poll_s, limit - time.monotonic())), stop)
        stop_if_asked(run.serial, stop)


def _why_gone(run: DetachedRun, printed: ShellAnswer) -> CommandFailed:
    return CommandFailed(
        f"{run.serial}: the command in {run.folder} vanished without an exit code{printed.quote()}; memory or space "
        "ran out, its time was over, or the device restarted: see adb logcat and df, then run it again",
        run.serial,
    )


def end(adb: Adb, run: DetachedRun) -> None:
    """End the command and its children, unless they have ended. Raises :class:`CommandFailed` if some stay."""
    _end(adb, run, end_script(run.folder))


def _end(adb: Adb, run: DetachedRun, script: str) -> None:
    answer = adb.shell(run.serial, script)
    if answer.code != 0:
        raise CommandFailed(
            f"{run.serial}: the command in {run.folder} cannot be ended{answer.quote()}; restart the device", run.serial
        )


def remove(adb: Adb, run: DetachedRun) -> None:
    """End the command if it still runs, and delete its folder."""
    _end(adb, run, f"({end_script(run.folder)}) || exit; rm -rf {shlex.quote(run.folder)}; exit 0")
