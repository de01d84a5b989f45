"""Commands that go on when the link is cut: a session of their own on the device, looked at from time to time.

The scripts run in every sh: mksh, dash and that of busybox. In the folder of a run: ``command``; ``pid``: process
number and start time of the session's leader, which distinguishes it from a later process of the same number; ``out``,
``err`` and, at the end, ``code``. ``seen`` is made by whoever looks; a run at which nobody looks ends itself.
"""

from __future__ import annotations

import math
import shlex
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Final

from evaltools.adb.client import Answer, CommandFailed, DeviceError, DeviceStopped, DeviceTimeout, Link

VARIABLE: Final = "EVALTOOLS_RUN"
"""In the environment of a run: its folder, then ``/.``, so that no folder is the beginning of another."""
WORK_FOLDER: Final = "/data/local/tmp"
_POLL_S: Final = 0.5
_AT_THE_END_S: Final = 5.0
"""How long one look waits there for the end, where nobody asks for lines: less than an answer of adb may take."""
_LOOKS_PER_S: Final = 5
_PATIENCE_AT_STOP_S: Final = 10.0
_UNSEEN_S: Final = 3600.0


def start_script(folder: str, command: str, unseen_s: int) -> str:
    """Start ``command`` in ``folder``; it is ended where nobody looks at it for ``unseen_s`` seconds.

    If several leaders of a session are started, only the first goes on.
    """
    own = shlex.quote(folder)
    leader = f"""\
set -- $(cat /proc/$$/stat)
(set -C; echo $$ ${{22}} >pid) || exit
(trap "kill \\$s; exit" TERM
while rm -f seen
do sleep {math.ceil(unseen_s / 2)} & s=$!
wait $s
[ -e seen ] || kill -9 0
done) &
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


def look_script(folder: str, out_offset: int, err_offset: int, mark: str, wait_s: float = 0.0) -> str:
    """Print new output, whether the run is alive, and its exit code if it has ended, for which it waits ``wait_s``.

    The script asks whether the run is alive before it asks for the code, and for the code before the output. So a code
    always comes with all output.
    """
    return f"""\
cd {shlex.quote(folder)} || exit 1
touch seen 2>/dev/null
a=0 n=0
{{ read p b <pid; }} 2>/dev/null
while [ $n -lt {round(wait_s * _LOOKS_PER_S)} ] && [ ! -e code ] && kill -0 "$p" 2>/dev/null
do sleep {1 / _LOOKS_PER_S:g}; n=$((n+1))
done
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


def start(link: Link, command: str, folder: str, unseen_s: float = _UNSEEN_S) -> None:
    """Start a command in a session of its own, in a new ``folder``, which is its work folder.

    To start again in the same folder does nothing, so that a start whose answer was lost can be repeated; one that was
    cut in the middle is completed. It ends itself where nobody looks for ``unseen_s`` seconds; its folder stays. Raises
    :class:`CommandFailed` where the folder cannot be made or the device has no ``setsid``.
    """
    answer = link.shell(start_script(folder, command, math.ceil(unseen_s)))
    if answer.code != 0:
        raise CommandFailed(
            f"{link.serial}: nothing can be started in {folder}{answer.quote()}; it needs a folder that can be "
            "written, space there, and the program setsid"
        )


def wait(link: Link, folder: str, silence_s: float, on_line: Callable[[bytes], None] | None = None) -> Answer:
    """Wait for the end of the command in ``folder``; ``on_line`` gets each line of stderr once it is whole.

    Without it a look waits on the device itself, which costs one command of adb for some seconds.

    Raises :class:`DeviceTimeout` where it prints nothing for ``silence_s`` seconds and :class:`DeviceStopped`, when the
    command and its children have been ended, :class:`CommandFailed` where the command vanished without an exit code
    (memory or space ran out, or the device restarted), and the error of a device that stayed away.
    """
    limit = time.monotonic() + silence_s
    printed, rest = Answer(0, b"", b""), b""
    try:
        while True:
            is_late = time.monotonic() > limit
            wait_s = 0.0 if on_line else max(0.0, min(_AT_THE_END_S, limit - time.monotonic()))
            new, is_alive = link.patiently(partial(_look, link, folder, len(printed.out), len(printed.err), wait_s))
            printed = Answer(new.code, printed.out + new.out, printed.err + new.err)
            if new.out or new.err:
                limit, is_late = time.monotonic() + silence_s, False
                *lines, rest = (rest + new.err).split(b"\n")
                if on_line is not None:
                    for line in lines:
                        on_line(line)
            if new.code >= 0:
                return printed
            if is_late or not is_alive:
                link.patiently(partial(end, link, folder))
                raise _why_ended(link.serial, folder, printed, silence_s if is_alive else None)
            link.stop.wait(max(0.0, min(_POLL_S if on_line else 0.0, limit - time.monotonic())))
            link.require_no_stop()
    except DeviceStopped as stopped:
        last = link.unstoppable(_PATIENCE_AT_STOP_S)
        try:
            last.patiently(partial(end, last, folder))
        except DeviceError as error:
            raise DeviceStopped(
                f"{stopped}. The command in {folder} could not be ended: {error}; it ends itself later"
            ) from error
        raise


def _look(link: Link, folder: str, out_offset: int, err_offset: int, wait_s: float) -> tuple[Answer, bool]:
    """What the command printed behind these offsets (bytes), with its exit code, and whether it is alive.

    The code is -1 where it has not ended.
    """
    mark = f"evaltools-{uuid.uuid4().hex}"
    answer = link.shell(look_script(folder, out_offset, err_offset, mark, wait_s))
    sections = answer.out.split(mark.encode())
    if answer.code != 0 or len(sections) != 3:
        raise CommandFailed(f"{link.serial}: {folder} is gone or cannot be read{answer.quote()}; run it again")
    out, err, end_line = sections
    alive, *code = end_line.split()
    return Answer(int(code[0]) if code else -1, out, err), alive != b"0"


def _why_ended(serial: str, folder: str, printed: Answer, silence_s: float | None) -> DeviceError:
    """The error of a command that was ended after ``silence_s`` seconds; None: that vanished."""
    if silence_s is not None:
        return DeviceTimeout(
            f"{serial}: the command in {folder} printed nothing for {silence_s:g} s and was ended{printed.quote()}"
        )
    return CommandFailed(
        f"{serial}: the command in {folder} vanished without an exit code{printed.quote()}; memory or space "
        "ran out, or the device restarted: see adb logcat and df, then run it again"
    )


def end(link: Link, folder: str, then: str = "") -> None:
    """End the command and its children, unless they have ended, and ``then`` run another one.

    Raises :class:`CommandFailed` if some stay.
    """
    answer = link.shell(f"({end_script(folder)}) || exit; {then}; exit 0" if then else end_script(folder))
    if answer.code != 0:
        raise CommandFailed(
            f"{link.serial}: the command in {folder} cannot be ended{answer.quote()}; restart the device"
        )


def remove(link: Link, folder: str) -> None:
    """End the command if it still runs, and delete its folder."""
    end(link, folder, f"rm -rf {shlex.quote(folder)}")
