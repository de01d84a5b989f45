"""The processes of a run that goes on, found by the journal that they have open; they are looked at from outside.

What they use over time: resident memory, processor time, threads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
from msgspec import Struct, field

from evaltools.engine.journal import JOURNAL_NAME
from evaltools.engine.trace import Event, Track
from evaltools.errors import UsageError
from evaltools.result.capture import ProcessUse

MB: Final = 1024 * 1024
_CATEGORY: Final = "system"
_COUNTERS: Final = 0
"""The row of a process that its counters belong to."""
_SECONDS_BETWEEN_LOOKS_FOR_NEW_ONES: Final = 1.0


class Sample(Struct, frozen=True):
    """What a process used until a moment, in seconds by a clock of its computer; ``processor_s`` since its start."""

    moment_s: float
    memory_mb: float
    processor_s: float
    threads: int


class UsedOverTime(Struct):
    """The samples of one process, in order of time."""

    process_id: int
    name: str
    samples: list[Sample] = field(default_factory=list)

    @property
    def use(self) -> ProcessUse:
        """The samples summed up; raises :class:`ValueError` without any."""
        memory = [sample.memory_mb for sample in self.samples]
        return ProcessUse(
            process_id=self.process_id,
            name=self.name,
            cores=_cores(self.samples[0], self.samples[-1]),
            mean_memory_mb=sum(memory) / len(memory),
            peak_memory_mb=max(memory),
            threads=max(sample.threads for sample in self.samples),
        )


def sample_of(process: psutil.Process, moment_s: float) -> Sample | None:
    """What a process uses now, None where it has ended or may not be looked at."""
    try:
        with process.oneshot():
            times = process.cpu_times()
            memory_mb = process.memory_info().rss / MB
            return Sample(moment_s, memory_mb, times.user + times.system, process.num_threads())
    except psutil.Error:
        return None


def usage_events(process: int, sample: Sample, before: Sample | None) -> list[Event]:
    """Counters of a process in a trace; processor time is drawn as cores, from the sample ``before`` on."""
    track = Track(process, _COUNTERS, _CATEGORY)
    moment_us = sample.moment_s * 1e6
    events = [
        track.counter("resident memory", moment_us, {"MB": round(sample.memory_mb, 3)}),
        track.counter("threads", moment_us, {"threads": sample.threads}),
    ]
    if before is not None:
        cores = round(_cores(before, sample), 3)
        events.append(track.counter("processor", before.moment_s * 1e6, {"cores": cores}))
    return events


def _cores(first: Sample, last: Sample) -> float:
    passed_s = last.moment_s - first.moment_s
    return (last.processor_s - first.processor_s) / passed_s if passed_s > 0 else 0.0


def process_of_run(folder: Path) -> psutil.Process:
    """The process that carries out the run in a folder.

    Raises :class:`UsageError` where the folder is none of a run, and where no process of this user on this computer has
    its journal open: then the run has ended, was interrupted, or belongs to somebody else.
    """
    if not (folder / JOURNAL_NAME).is_file():
        raise UsageError(f"{folder} is not a run folder: it has no {JOURNAL_NAME}; give the folder of a --run_dir")
    own = filter(_is_own, psutil.process_iter())
    found = [process for process in own if folder.resolve() in run_folders_of(process)]
    if not found:
        raise UsageError(
            f"no process here works on the run in {folder}: it has ended or was interrupted, or goes on elsewhere or "
            f"as another user's. Start it, or go on with evaltools resume {folder}, and capture it meanwhile"
        )
    return min(found, key=_started)


def _is_own(process: psutil.Process) -> bool:
    try:
        return process.uids().real == os.getuid()
    except psutil.Error:
        return False


def run_folders_of(process: psutil.Process) -> list[Path]:
    """The folders of the runs whose journals a process has open; none where it may not be looked at."""
    try:
        files = [Path(entry.path) for entry in process.open_files()]
    except (psutil.Error, OSError):
        return []
    return [file.parent for file in files if file.name == JOURNAL_NAME]


class RunProcesses:
    """The process of a run and all below it, which come and go; ``samples`` collects what they use."""

    def __init__(self, root: psutil.Process) -> None:
        self.used: dict[int, UsedOverTime] = {}
        self._root = root
        self._known: dict[int, psutil.Process] = {}
        self._next_look = 0.0

    @property
    def is_running(self) -> bool:
        """Whether the run has not ended."""
        try:
            return self._root.is_running() and self._root.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def below(self) -> Iterator[psutil.Process]:
        """The process of the run, then all below it that are there now."""
        yield self._root
        try:
            yield from self._root.children(recursive=True)
        except psutil.Error:
            return

    def sample(self) -> None:
        """Look at every process; new ones are looked for once a second, since that takes long."""
        now = time.perf_counter()
        if now >= self._next_look:
            self._next_look = now + _SECONDS_BETWEEN_LOOKS_FOR_NEW_ONES
            self._known |= {each.pid: each for each in self.below()}
        for process_id, process in self._known.items():
            sample = sample_of(process, time.perf_counter())
            if sample is not None:
                used = self.used.setdefault(process_id, UsedOverTime(process_id, _name_of(process)))
                used.samples.append(sample)


def _started(process: psutil.Process) -> float:
    try:
        return process.create_time()
    except psutil.Error:
        return float("inf")


def _name_of(process: psutil.Process) -> str:
    try:
        return f"{process.name()} ({process.pid})"
    except psutil.Error:
        return f"process {process.pid}"
