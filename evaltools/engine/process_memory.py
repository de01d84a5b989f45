"""The memory of a run's processes over time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import psutil
from msgspec import Struct

from evaltools.engine.sampling import Sampler
from evaltools.result.evaluation import ProcessMemory

_SECONDS_BETWEEN_SAMPLES: Final = 0.5
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
        super().__init__("memory over time", _SECONDS_BETWEEN_SAMPLES)
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
        try:
            if process not in self._known:
                self._known[process] = psutil.Process(process.process_id)
            return round(self._known[process].memory_info().rss / _MB, 3)
        except psutil.Error:
            return None
