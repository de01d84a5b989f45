"""What runs on a device around a detached command, for every sh: mksh, dash and that of busybox.

In the folder of a run: ``command``; ``pid``: process number and start time of the session's leader, by which it is told
from a later process of the same number; ``boot``: the boot that they are of; ``out``, ``err`` and, at the end,
``code``; ``end``: the script that ends it; ``unseen``: made by the watch and deleted by each look; ``abandoned``: the
watch has ended the run.
"""

from __future__ import annotations

import shlex
from typing import Final

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
    """The leader of a run's session: of several only the first goes on.

    The watch leaves the session before it ends it, and the mark, so that it does not end itself.
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
    """Print what is new, and how it goes: is it alive, was it abandoned, and its exit code if it has ended.

    Alive is asked before the code, and that before the output: so a code comes with all that was printed.
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
    """End the session of a run and every process with its mark, until none is left; it fails where some stay.

    A run without a pid gets one that no process has, so that a start that comes late does nothing. A leader that has
    ended leaves a group that is still its own; a process of its number with another start time is a stranger. The grep
    of busybox sees nothing behind a zero byte.
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
