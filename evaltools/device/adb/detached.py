"""Commands that go on when the link is cut: a session of their own on the device, looked at from time to time.

All processes of a run carry the variable ``EVALTOOLS_RUN`` with its folder, by which those are found that have left the
run's session. Only one that neither stays in the session nor keeps its environment is lost sight of.

The scripts run in every sh: mksh, dash and that of busybox. In the folder of a run: ``command``; ``pid``: process
number and start time of the session's leader, by which it is told from a later process of the same number; ``boot``:
the boot that they are of; ``out``, ``err`` and, at the end, ``code``; ``end``: the script that ends it; ``unseen``:
made by the watch and deleted by each look; ``abandoned``: the watch has ended the run.
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

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.answer import ShellAnswer
from evaltools.device.adb.errors import CommandFailed, DeviceError, DeviceStopped, DeviceTimeout
from evaltools.device.adb.patience import patiently, rest, stop_if_asked

VARIABLE: Final = "EVALTOOLS_RUN"
"""Marks every process of a run: the folder, then ``/.``, so that no folder is the beginning of another."""

_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_IS_OF_THIS_BOOT: Final = f'[ "$(cat boot)" = "$(cat {_BOOT})" ]'


def start_script(folder: str, command: str, tick_s: int, ticks: int) -> str:
    """Start ``command`` in ``folder``; it ends itself after ``ticks`` times ``tick_s`` seconds without a look."""
    own = shlex.quote(folder)
    return f"""\
mkdir -p {own} && cd {own} || exit 1
if [ ! -s pid ]; then
if cat {_BOOT} >boot && printf %s {shlex.quote(end_script(folder))} >end &&
printf %s {shlex.quote(command)} >c.$$ && mv c.$$ command; then :; else [ -s pid ] || rm -r {own}; exit 1; fi
r=
for t in '' toybox busybox; do
if $t setsid true; then
{VARIABLE}={own}/. $t setsid sh -c {shlex.quote(_run_script(tick_s, ticks))} sh "$t" &
r=1; break
fi
done </dev/null >/dev/null 2>&1
if [ ! $r ]; then rm -r {own}; echo no setsid; exit 1; fi
n=0
while [ ! -s pid ]; do
if [ $n -gt 50 ]; then echo it does not begin; exit 1; fi
n=$((n+1))
sleep .1 2>/dev/null || sleep 1
done
fi
"""


def _run_script(tick_s: int, ticks: int) -> str:
    """The script of the leader of a run's session; if several are started, only the first goes on.

    The watch leaves the session and drops the mark before it ends them, so that it does not end itself.
    """
    return f"""\
t=$1
set -- $(cat /proc/$$/stat)
(set -C; echo $$ ${{22}} >pid) || exit
: >unseen
(unset {VARIABLE}
trap "kill \\$s; exit" TERM
n=0
while [ $n -lt {ticks} ]; do
sleep {tick_s} & s=$!
wait $s
if [ -e unseen ]; then n=$((n+1)); else n=0; : >unseen; fi
done
: >abandoned
exec $t setsid sh end) &
w=$!
sh command >out 2>err </dev/null
c=$?
kill $w
echo $c >code.part
mv code.part code
"""


def look_script(folder: str, out_offset: int, err_offset: int, mark: str) -> str:
    """Print new output, whether the run is alive, whether it was abandoned, and its exit code if it has ended.

    The script asks whether the run is alive before it asks for the code, and for the code before the output. So a code
    always comes with all output.
    """
    return f"""\
cd {shlex.quote(folder)} || exit 1
rm -f unseen
a=0 x=0
if {_IS_OF_THIS_BOOT}; then
if read p b <pid; then set -- $(cat /proc/$p/stat); [ "${{22}}" = "$b" ] && [ "$3" != Z ] && a=1; else a=1; fi
fi 2>/dev/null
[ -e abandoned ] && x=1
c=$(cat code 2>/dev/null)
tail -c +{out_offset + 1} out 2>/dev/null; printf %s {mark}
tail -c +{err_offset + 1} err 2>/dev/null; printf %s {mark}
echo $a $x $c
"""


def end_script(folder: str) -> str:
    """End the session of a run and every process with its mark, until none is left; the script fails where some stay.

    A run without a pid gets one that no process has, so that a start that arrives late does nothing. If the leader has
    ended, its group is still the run's own; a process with the leader's number but another start time is a stranger.
    The grep of busybox finds nothing behind a zero byte.
    """
    return f"""\
exec 2>/dev/null
p=0 b=0 n=0 v={shlex.quote(f"{VARIABLE}={folder}/.")}
if cd {shlex.quote(folder)} && {_IS_OF_THIS_BOOT}; then (set -C; echo 0 0 >pid); read p b <pid; fi
while [ $n -lt 30 ]; do
if printf "a\\0b" | grep -qF b; then l=$(grep -lsF "$v" /proc/[0-9]*/environ)
else l=$(for f in /proc/[0-9]*/environ; do tr "\\0" "\\n" <$f | grep -qF "$v" && echo $f; done); fi
g=
if [ "$p" -gt 1 ]; then
set -- $(cat /proc/$p/stat)
if [ $# = 0 ] || [ "${{22}}" = "$b" ]; then kill -9 -$p && [ "$3" != Z ] && g=1; fi
fi
for f in $l; do f=${{f%/*}}; kill -9 ${{f#/proc/}}; done
[ "$l$g" ] || exit 0
n=$((n+1))
sleep .2 || sleep 1
done
exit 1
"""


WORK_FOLDER: Final = "/data/local/tmp"
ABANDONED_AFTER_S: Final = 900.0
_POLL_S: Final = 0.5
_PATIENCE_S: Final = 60.0
_PATIENCE_AT_STOP_S: Final = 10.0
_LONGEST_TICK_S: Final = 60


class DetachedRun(Struct, frozen=True):
    """A command on a device: ``folder`` there holds its pid, exit code, stdout and stderr."""

    serial: str
    folder: str


class RunProgress(Struct, frozen=True):
    """What came since the last look: ``code`` is None while it runs; ``is_gone``: it ended without leaving a code.

    ``is_abandoned``: it ended itself, because nobody looked.
    """

    out: bytes
    err: bytes
    code: int | None
    is_gone: bool
    is_abandoned: bool = False


def start(
    adb: Adb,
    serial: str,
    command: str,
    parent: str = WORK_FOLDER,
    name: str = "",
    abandoned_after_s: float = ABANDONED_AFTER_S,
) -> DetachedRun:
    """Start a command in a session of its own, in a new folder ``name`` below ``parent``, which is its work folder.

    To start again under the same name does nothing, so that a start whose answer was lost can be repeated; one that
    was cut in the middle is completed. A run that nobody looks at for ``abandoned_after_s`` seconds (and up to a tenth
    more) ends itself with all its processes; its folder stays. Raises :class:`CommandFailed` where the folder cannot
    be made or the device has no ``setsid``. Devices of before Android 7 may take 2000 bytes of ``command`` and no more.
    """
    folder = posixpath.join(parent, name or f"evaltools-{uuid.uuid4().hex[:12]}")
    tick_s = min(_LONGEST_TICK_S, max(1, int(abandoned_after_s / 10)))
    ticks = max(1, math.ceil(abandoned_after_s / tick_s))
    answer = adb.shell(serial, start_script(folder, command, tick_s, ticks))
    if answer.code != 0:
        raise CommandFailed(
            f"{serial}: nothing can be started in {folder}{answer.quote()}; it needs a folder that can be written, "
            "space there, and the program setsid, which every Android from 6 on has",
            serial,
        )
    return DetachedRun(serial, folder)


def look(adb: Adb, run: DetachedRun, out_offset: int = 0, err_offset: int = 0) -> RunProgress:
    """What the command printed behind these offsets (bytes), and whether it has ended; it is not abandoned then."""
    mark = f"evaltools-{uuid.uuid4().hex}"
    answer = adb.shell(run.serial, look_script(run.folder, out_offset, err_offset, mark))
    parts = answer.out.split(mark.encode())
    if answer.code != 0 or len(parts) != 3:
        raise CommandFailed(
            f"{run.serial}: {run.folder} is gone or cannot be read{answer.quote()}; run it again", run.serial
        )
    out, err, end = parts
    alive, abandoned, *code = end.split()
    is_gone = not code and alive == b"0"
    return RunProgress(out, err, int(code[0]) if code else None, is_gone, is_gone and abandoned == b"1")


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
    ended, :class:`CommandFailed` where the command vanished without an exit code (memory or space ran out, the device
    restarted, or nobody looked at it), and the error of a device that stayed away.
    """
    try:
        return _watch(adb, run, timeout_s, on_output, poll_s, patience_s, stop)
    except DeviceStopped as stopped:
        try:
            patiently(adb, run.serial, partial(end, adb, run), min(patience_s, _PATIENCE_AT_STOP_S))
        except DeviceError as error:
            raise DeviceStopped(
                f"{stopped}. The command in {run.folder} could not be ended: {error}; it ends itself when nobody "
                "looks at it any more",
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
            raise _why_gone(run, progress, ShellAnswer(0, bytes(out), bytes(err)))
        if is_late:
            patiently(adb, run.serial, partial(end, adb, run), patience_s)
            raise DeviceTimeout(
                f"{run.serial}: the command in {run.folder} did not end within {timeout_s:g} s and was ended"
                f"{ShellAnswer(0, bytes(out), bytes(err)).quote()}; allow more time",
                run.serial,
            )
        rest(max(0.0, min(poll_s, limit - time.monotonic())), stop)
        stop_if_asked(run.serial, stop)


def _why_gone(run: DetachedRun, progress: RunProgress, printed: ShellAnswer) -> CommandFailed:
    if progress.is_abandoned:
        return CommandFailed(
            f"{run.serial}: the command in {run.folder} ended itself, because nobody had looked at it for its time; "
            "run it again",
            run.serial,
        )
    return CommandFailed(
        f"{run.serial}: the command in {run.folder} vanished without an exit code{printed.quote()}; memory or space "
        "ran out, or the device restarted: see adb logcat and df, then run it again",
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
