"""The processes of a run on devices, looked at over adb."""

from __future__ import annotations

import posixpath
import re
import shlex
import threading
import time
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.capture.running import Sample, UsedOverTime
from evaltools.device.adb import USABLE, Adb
from evaltools.device.detached import VARIABLE
from evaltools.device.errors import CommandFailed, DeviceError
from evaltools.device.flags import DeviceFlags, read_device_flags
from evaltools.device.store import RUNS
from evaltools.errors import EvaltoolsError
from evaltools.request import Options

_SECONDS_BETWEEN_SAMPLES: Final = 0.5
_FIRST_NUMBER: Final = 10_000_000
"""Processes of devices are numbered in a trace from here on, so that they are told from those of this computer."""
_TICKS_PER_SECOND: Final = 100
"""Linux tells all programs processor times in these, whatever its own clock is."""
_KB_PER_MB: Final = 1024
_LINE: Final = re.compile(
    r"(?P<stat>\d+ \(.*\) \S(?: -?\d+){10} (?P<user>\d+) (?P<system>\d+) .*) @(?P<threads>\d+) (?P<memory>\d+)@ "
    r"(?P<command>.*)"
)


class DeviceSampler:
    """Looks at the processes of runs on one device, in a thread of its own, until it is stopped."""

    def __init__(self, adb: Adb, serial: str, root: str, number: int) -> None:
        self.serial: Final = serial
        self.used: dict[int, UsedOverTime] = {}
        self.failure: DeviceError | None = None
        self._adb = adb
        self._runs = posixpath.join(root, RUNS)
        self._first_number = _FIRST_NUMBER * (number + 1)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"capture of {serial}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the answer that is waited for."""
        self._end.set()
        self._thread.join()

    def sample(self) -> None:
        """Ask once."""
        usage = usage_of_runs(self._adb, self.serial, self._runs)
        for process in usage.processes:
            number = self._first_number + process.process_id
            name = f"{self.serial}: {_program(process.command)} ({process.process_id})"
            used = self.used.setdefault(number, UsedOverTime(number, name, self.serial))
            used.samples.append(Sample(usage.moment_s, process.memory_mb, process.processor_s, process.threads))

    def _watch(self) -> None:
        while True:
            start = time.monotonic()
            try:
                self.sample()
            except DeviceError as error:
                self.failure = error
                return
            if self._end.wait(max(0.0, _SECONDS_BETWEEN_SAMPLES - (time.monotonic() - start))):
                return


def samplers_of(devices: Options) -> tuple[list[DeviceSampler], list[str]]:
    """One for each device of a run that can be asked, by its options, and notes about those that cannot."""
    try:
        flags = read_device_flags(devices)
        adb = Adb(flags.adb, flags.port)
        serials = _serials(adb, flags)
    except EvaltoolsError as error:
        return [], [f"the devices are not seen: {error}"]
    return [DeviceSampler(adb, serial, flags.root, number) for number, serial in enumerate(serials)], []


def _serials(adb: Adb, flags: DeviceFlags) -> list[str]:
    if flags.serials:
        return list(flags.serials)
    if flags.all_devices:
        return [device.serial for device in adb.devices() if device.state == USABLE]
    return [adb.choose()]


def _program(command: str) -> str:
    return Path(command.partition(" ")[0]).name or "process"


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

    Raises :class:`~evaltools.device.errors.DeviceError` where it does not answer.
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
