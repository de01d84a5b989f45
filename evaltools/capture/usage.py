"""What processes use over time: resident memory, processor time, threads."""

from __future__ import annotations

from typing import Final

import psutil
from msgspec import Struct, field

from evaltools.engine.trace import Event, Track
from evaltools.result.capture import ProcessUse

MB: Final = 1024 * 1024
_CATEGORY: Final = "system"
_COUNTERS: Final = 0
"""The row of a process that its counters belong to."""


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
    place: str = ""
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
            place=self.place,
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
