"""What the processes of runs use on a device: memory, processor time, threads, from its /proc."""

from __future__ import annotations

import posixpath
import re
import shlex
import time
from typing import Final

from msgspec import Struct

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.detached import VARIABLE
from evaltools.device.adb.errors import CommandFailed

_TICKS_PER_SECOND: Final = 100
"""Linux tells all programs processor times in these, whatever its own clock is."""
_KB_PER_MB: Final = 1024
_LINE: Final = re.compile(
    r"(?P<stat>\d+ \(.*\) \S(?: -?\d+){10} (?P<user>\d+) (?P<system>\d+) .*) @(?P<threads>\d+) (?P<memory>\d+)@ "
    r"(?P<command>.*)"
)


class DeviceProcess(Struct, frozen=True):
    """A process on a device: its number and command there, and what it used until now.

    ``memory_mb`` is resident, in units of 1024 * 1024 bytes.
    """

    process_id: int
    command: str
    memory_mb: float
    processor_s: float
    threads: int


class DeviceUsage(Struct, frozen=True):
    """The processes of all runs at a moment, by ``time.perf_counter`` of this computer: the middle of the question."""

    moment_s: float
    processes: tuple[DeviceProcess, ...]


def usage_of_runs(adb: Adb, serial: str, runs: str) -> DeviceUsage:
    """Ask a device for the processes of the runs in the folder ``runs``.

    Raises :class:`~evaltools.device.adb.errors.DeviceError` where it does not answer.
    """
    start = time.perf_counter()
    answer = adb.shell(serial, usage_script(runs))
    if answer.code != 0:
        raise CommandFailed(f"{serial}: its processes cannot be listed{answer.quote()}; look at adb shell ps", serial)
    moment_s = (start + time.perf_counter()) / 2
    return DeviceUsage(moment_s, tuple(filter(None, map(read_process, answer.text.splitlines()))))


def usage_script(runs: str) -> str:
    """Print a line for each process whose environment says that it belongs to a run in the folder ``runs``.

    The grep of busybox finds nothing behind a zero byte.
    """
    return f"""\
exec 2>/dev/null
v={shlex.quote(f"{VARIABLE}={posixpath.join(runs, '')}")}
if printf "a\\0b" | grep -qF b; then l=$(grep -lsF "$v" /proc/[0-9]*/environ)
else l=$(for f in /proc/[0-9]*/environ; do tr "\\0" "\\n" <$f | grep -qF "$v" && echo $f; done); fi
for f in $l; do
f=${{f%/*}}
s= t= m=
read -r s <$f/stat || continue
while read -r k n r; do
case $k in Threads:) t=$n;; VmRSS:) m=$n;; esac
done <$f/status
c=$(tr "\\0\\n" "  " <$f/cmdline)
echo "$s @${{t:-0}} ${{m:-0}}@ $c"
done
exit 0
"""


def read_process(line: str) -> DeviceProcess | None:
    """A line of :func:`usage_script`; None for one that is cut off.

    >>> stat = "77 (my (python)) S 1 77 77 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 5 0 9 9 9"
    >>> read_process(f"{stat} @5 20480@ python3 -m evaltools")
    DeviceProcess(process_id=77, command='python3 -m evaltools', memory_mb=20.0, processor_s=3.0, threads=5)
    """
    found = _LINE.fullmatch(line.strip())
    if found is None:
        return None
    return DeviceProcess(
        process_id=int(found["stat"].partition(" ")[0]),
        command=found["command"].strip(),
        memory_mb=int(found["memory"]) / _KB_PER_MB,
        processor_s=(int(found["user"]) + int(found["system"])) / _TICKS_PER_SECOND,
        threads=int(found["threads"]),
    )
