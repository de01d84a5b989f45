"""Looks from time to time, in a thread of its own, at the memory of a run's processes and at how busy the machine is.

The load is its run queue, steal and throttling. Linux states it in files of ``/proc`` and ``/sys``; the environment
variable ``EVALTOOLS_SYSTEM`` names another folder that has both, for a container that sees those of another machine.
Elsewhere psutil says how many cores others use.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct, field

from evaltools.result.execution import ProcessMemory
from evaltools.result.facts import Load

if TYPE_CHECKING:
    import psutil

Own = TypeVar("Own", bound="Sampler")


class Sampler:
    """A context that takes a sample when it begins, one every ``between_s`` seconds, and one when it ends.

    ``between_s`` may change meanwhile. Where the system allows no more threads, there are the first and the last.
    """

    def __init__(self, name: str, between_s: float) -> None:
        self.between_s = between_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)

    def __enter__(self: Own) -> Own:
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Take the first sample, and go on."""
        self.sample()
        with suppress(RuntimeError):
            self._thread.start()

    def stop(self) -> None:
        """Take the last sample."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        self.sample()

    def sample(self) -> None:
        """Take a sample now."""
        raise NotImplementedError

    def _watch(self) -> None:
        while not self._end.wait(self.between_s):
            self.sample()


_SECONDS_BETWEEN_MEMORY: Final = 0.5
_MOST_SAMPLES: Final = 240
_MB: Final = 1024 * 1024


class NamedProcess(Struct, frozen=True):
    """A process of a run: what it is called, and the configuration that it runs, None where it runs none."""

    process_id: int
    name: str
    configuration: str | None = None


class MemoryOverTime(Sampler):
    """A context in which the resident memory of processes is looked at twice a second.

    ``processes`` gives those of now, which may change: a process that was started again goes on under its name. Of a
    long run every second sample is dropped whenever there are 240, and samples are taken half as often from then on.
    """

    def __init__(self, processes: Callable[[], Sequence[NamedProcess]]) -> None:
        super().__init__("memory over time", _SECONDS_BETWEEN_MEMORY)
        self._processes = processes
        self._start = time.monotonic()
        self._known: dict[NamedProcess, psutil.Process] = {}
        self._samples: list[tuple[float, dict[NamedProcess, float]]] = []

    def sample(self) -> None:
        """Look at all processes now; one that has ended is left out."""
        found = {process: memory for process in self._processes() if (memory := self._memory_mb(process)) is not None}
        self._samples.append((round(time.monotonic() - self._start, 3), found))
        if len(self._samples) >= _MOST_SAMPLES:
            self._samples = self._samples[::2]
            self.between_s *= 2

    @property
    def by_process(self) -> list[ProcessMemory]:
        """What was seen, in the order in which the processes were named first."""
        names = dict.fromkeys((each.name, each.configuration) for _, found in self._samples for each in found)
        memories = {place: ProcessMemory(*place, [], []) for place in names}
        for moment, found in self._samples:
            for process, memory in found.items():
                own = memories[process.name, process.configuration]
                own.seconds.append(moment)
                own.mb.append(memory)
        return list(memories.values())

    def _memory_mb(self, process: NamedProcess) -> float | None:
        """None for a process that has ended."""
        import psutil  # which is imported while sessions are opened

        try:
            if process not in self._known:
                self._known[process] = psutil.Process(process.process_id)
            return round(self._known[process].memory_info().rss / _MB, 3)
        except psutil.Error:
            return None


_SYSTEM: Final = "EVALTOOLS_SYSTEM"
_SECONDS_BETWEEN_LOAD: Final = 0.1
_SECONDS_LATER: Final = 0.5
_DENSE_SAMPLES: Final = 100
"""After so many samples they are taken less often."""
_ENOUGH_SAMPLES: Final = 8
_BUSY_FIELDS: Final = (0, 1, 2, 5, 6)
"""user, nice, system, irq and softirq of a line of ``/proc/stat``; guests are in user and nice."""
_STEAL_FIELD: Final = 7
_SAYS_NOTHING: Final = (OSError, ValueError, IndexError)


class Reading(Struct, frozen=True):
    """The machine at one moment; None where it does not say.

    ``running`` processes run or wait for a core, ``own_running`` of them are the run's. ``busy_s`` and ``steal_s`` are
    seconds of all cores since some moment, ``own_s`` those of each of the run's processes, by its number.
    """

    moment_s: float
    running: int | None = None
    own_running: int = 0
    busy_s: float | None = None
    steal_s: float | None = None
    own_s: Mapping[int, float] = field(default_factory=dict)
    throttled: int | None = None


def running_in(loadavg: str) -> int:
    """How many processes run or wait for a core, from ``/proc/loadavg``; raises :class:`ValueError`.

    >>> running_in("3.11 3.26 3.78 5/141 1920")
    5
    """
    return int(loadavg.split()[3].partition("/")[0])


def is_running(stat: str) -> bool:
    """Whether a thread runs or waits for a core, from its ``stat``.

    >>> is_running("812 (tflite (worker)) R 1 812"), is_running("813 (python) S 1 813")
    (True, False)
    """
    return stat.rpartition(")")[2].split()[0] == "R"


def seconds_of_process(stat: str, ticks_per_s: int) -> float:
    """The processor time of a process and of the children that it has waited for, from its ``stat``.

    >>> seconds_of_process("812 (x) S 1 8 8 0 -1 4 0 0 0 0 200 100 50 50 20 0 1", 100)
    4.0
    """
    fields = stat.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / ticks_per_s


def seconds_of_all(stat: str, ticks_per_s: int) -> tuple[float, float | None]:
    r"""What all cores worked, and what a hypervisor took from them, in seconds, from ``/proc/stat``.

    >>> seconds_of_all("cpu  100 0 50 900 3 0 50 40 0 0\ncpu0 1 0", 100)
    (2.0, 0.4)
    """
    fields = [int(each) / ticks_per_s for each in stat.split("\n", 1)[0].split()[1:]]
    return sum(fields[place] for place in _BUSY_FIELDS), fields[_STEAL_FIELD] if len(fields) > _STEAL_FIELD else None


def read_now(processes: Collection[int], system: Path | None = None) -> Reading:
    """The machine now; never an error. ``system`` is the folder that has ``proc`` and ``sys``."""
    stated = os.environ.get(_SYSTEM)
    root = system or Path(stated or "/")
    proc = root / "proc"
    reading = Reading(time.monotonic(), throttled=_throttled(root))
    try:
        running = running_in((proc / "loadavg").read_text())
    except _SAYS_NOTHING:
        return reading if system or stated else _read_elsewhere(reading, processes)
    ticks = os.sysconf("SC_CLK_TCK")
    own = [(number, *_of_process(proc / str(number), ticks)) for number in processes]
    busy_s = steal_s = None
    with suppress(*_SAYS_NOTHING):
        busy_s, steal_s = seconds_of_all((proc / "stat").read_text(), ticks)
    return Reading(
        moment_s=reading.moment_s,
        running=running,
        own_running=max(1, sum(threads for _, threads, _ in own)),
        busy_s=busy_s,
        steal_s=steal_s,
        own_s={number: seconds for number, _, seconds in own if seconds is not None},
        throttled=reading.throttled,
    )


def _of_process(folder: Path, ticks_per_s: int) -> tuple[int, float | None]:
    """How many threads of a process run or wait, and its processor time; 0 and None for one that has ended."""
    running, seconds = 0, None
    with suppress(*_SAYS_NOTHING):
        seconds = seconds_of_process((folder / "stat").read_text(), ticks_per_s)
        for thread in (folder / "task").iterdir():
            with suppress(*_SAYS_NOTHING):
                running += is_running((thread / "stat").read_text())
    return running, seconds


def _throttled(root: Path) -> int | None:
    """How often cores were slowed down for heat since the machine's start; None where it does not say."""
    counts = []
    cores = root / "sys" / "devices" / "system" / "cpu"
    with suppress(*_SAYS_NOTHING):
        for path in cores.glob("cpu[0-9]*/thermal_throttle/core_throttle_count"):
            counts.append(int(path.read_text()))
    return sum(counts) if counts else None


def _read_elsewhere(reading: Reading, processes: Collection[int]) -> Reading:
    """What psutil says where there is no ``/proc``."""
    import psutil

    own_s = {}
    try:
        times = psutil.cpu_times()
    except (psutil.Error, OSError):
        return reading
    for number in processes:
        with suppress(psutil.Error, OSError):
            used = psutil.Process(number).cpu_times()
            own_s[number] = used.user + used.system
    return Reading(reading.moment_s, busy_s=times.user + times.system, own_s=own_s, throttled=reading.throttled)


class LoadOverTime(Sampler):
    """A context in which the machine is looked at ten times a second, of long runs twice.

    ``processes`` gives the numbers of the run's own ones, which may change.
    """

    def __init__(self, processes: Callable[[], Collection[int]], cpu_count: int | None = None) -> None:
        super().__init__("load over time", _SECONDS_BETWEEN_LOAD)
        self._processes = processes
        self._cpu_count = cpu_count or os.cpu_count() or 1
        self._first: Reading | None = None
        self._last: Reading | None = None
        self._others = 0
        self._looks = 0
        self._samples = 0
        self._own_s = 0.0

    @property
    def has_seen_enough(self) -> bool:
        """Whether there were looks enough for a mean."""
        return self._samples >= _ENOUGH_SAMPLES

    def sample(self) -> None:
        """Look at the machine now."""
        self.add(read_now(self._processes()))
        if self._samples >= _DENSE_SAMPLES:
            self.between_s = _SECONDS_LATER

    def add(self, reading: Reading) -> None:
        """Count one more reading."""
        if reading.running is not None:
            self._others += max(0, reading.running - reading.own_running)
            self._looks += 1
        if self._last is not None:
            before = self._last.own_s
            self._own_s += sum(max(0.0, now - before.get(number, 0.0)) for number, now in reading.own_s.items())
        self._first = self._first or reading
        self._last = reading
        self._samples += 1

    @property
    def load(self) -> Load:
        """The means of what was seen until now.

        >>> seen = LoadOverTime(list, cpu_count=2)
        >>> seen.add(Reading(0.0, running=13, own_running=2, busy_s=10.0, own_s={7: 1.0}))
        >>> seen.add(Reading(2.0, running=12, own_running=1, busy_s=14.0, own_s={7: 3.0}))
        >>> seen.load.others_running, seen.load.others_cores
        (11.0, 1.0)
        """
        first, last = self._first, self._last
        if first is None or last is None:
            return Load(self._cpu_count)
        elapsed = last.moment_s - first.moment_s
        busy, steal = _growth(first.busy_s, last.busy_s), _growth(first.steal_s, last.steal_s)
        throttled = _growth(first.throttled, last.throttled)
        return Load(
            cpu_count=self._cpu_count,
            others_running=round(self._others / self._looks, 2) if self._looks else None,
            others_cores=None if busy is None or elapsed <= 0 else round(max(0.0, busy - self._own_s) / elapsed, 2),
            steal=None if steal is None or elapsed <= 0 else round(steal / elapsed / self._cpu_count, 4),
            throttled=None if throttled is None else int(throttled),
            seconds=round(max(0.0, elapsed), 3),
            samples=self._samples,
        )


def _growth(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)
