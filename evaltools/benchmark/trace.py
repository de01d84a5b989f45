"""The rounds of a benchmark as a trace for ui.perfetto.dev and chrome://tracing (Trace Event Format, JSON)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from evaltools.engine.trace import Event, Track, whole_trace
from evaltools.metrics.op_profile import Opening, OpProfile
from evaltools.report.words.facts import label
from evaltools.result.result import Result
from evaltools.result.rounds import Measured, Memory, Phase, Round

_CATEGORY: Final = "benchmark"
_THREAD: Final = 1


def trace_events(names: Sequence[str], measured: Sequence[Measured]) -> list[Event]:
    """What was measured of the rows of these names as events, times in microseconds.

    Each round is a process of its own, whose time begins with it, and so are the profiled runs of a row. What opening
    took stands at the beginning, runs where they began; a run that would reach into the one before, for times are
    rounded, is put behind it. Operators of a profiled run follow each other in the order in which they were first seen.
    Memory is shown before and after opening, and after the last run.
    """
    events: list[Event] = []
    processes = 0
    for name, each in zip(names, measured, strict=True):
        for number, found in enumerate(each.rounds, 1):
            processes += 1
            track = Track(processes, _THREAD, _CATEGORY)
            events += _named(track, f"{name}, round {number}", "runs") + _round_events(track, found)
        if each.profile is not None and each.profile.ops:
            processes += 1
            track = Track(processes, _THREAD, _CATEGORY)
            events += _named(track, f"{name}, operators", "profiled runs") + _operator_events(track, each.profile)
    return events


def trace_json(result: Result, measured: Sequence[Measured]) -> bytes:
    """The content of a trace file, of what each row of a result was concluded from."""
    return whole_trace(trace_events([label(result.models, row) for row in result.rows], measured))


def _named(track: Track, name: str, thread_name: str) -> list[Event]:
    """The events that name a process and its thread; the processes keep their order."""
    return [track.process_name(name), track.process_place(track.process), track.thread_name(thread_name)]


def _round_events(track: Track, measured: Round) -> list[Event]:
    opening = measured.opening
    import_us = max(0, opening.import_us)
    stages = _stages(opening)
    opened_us = import_us + max(opening.total_us, sum(duration for _, duration in stages))
    events = [
        track.complete("import", 0, import_us, {}),
        track.complete("open", import_us, opened_us - import_us, {}),
        *_in_turn(track, stages, import_us),
    ]
    end_us: float = opened_us
    for name, phase in (("warm-up run", measured.warm_up), ("run", measured.regular)):
        for event in _phase_events(track, name, phase, end_us):
            events.append(event)
            end_us = _end(event)
    return events + _memory_events(track, measured.memory, (import_us, opened_us, end_us))


def _stages(opening: Opening) -> list[tuple[str, int]]:
    """The parts of opening that are known, with their microseconds."""
    known = {"load": opening.load_us, "delegates": opening.delegates_us, "allocate": opening.allocate_us}
    return [(name, max(0, duration)) for name, duration in known.items() if duration is not None]


def _phase_events(track: Track, name: str, phase: Phase, free_us: float) -> Iterator[Event]:
    """An event for each run and for the reading of its outputs; none begins before ``free_us``."""
    times = zip(phase.starts_us, phase.invokes_us, phase.reads_us, strict=True)
    for number, (start_us, invoke_us, read_us) in enumerate(times, 1):
        begin_us = max(start_us, free_us)
        yield track.complete(name, begin_us, invoke_us, {"number": number})
        yield track.complete("read outputs", begin_us + invoke_us, read_us, {"number": number})
        free_us = begin_us + invoke_us + read_us


def _memory_events(track: Track, memory: Memory, moments_us: tuple[float, float, float]) -> list[Event]:
    """Counters of what is known, at the start, after opening, and after the last run."""
    counters = {
        "resident memory": (memory.start_kb, memory.init_kb, memory.steady_kb),
        "peak memory": (memory.peak_start_kb, memory.peak_init_kb, memory.peak_kb),
    }
    return [
        track.counter(name, moment_us, {"KB": value})
        for name, values in counters.items()
        for moment_us, value in zip(moments_us, values, strict=True)
        if value is not None
    ]


def _operator_events(track: Track, profile: OpProfile) -> list[Event]:
    """One profiled run after the other, with its operators in it."""
    events: list[Event] = []
    start_us = 0
    for run in range(max(len(op.times_us) for op in profile.ops)):
        ops = [op for op in profile.ops if run < len(op.times_us)]
        whole_us = profile.invoke_us[run] if run < len(profile.invoke_us) else 0
        duration_us = max(whole_us, sum(op.times_us[run] for op in ops))
        facts: Event = {"number": run + 1, "invoke_us": whole_us}
        events.append(track.complete("profiled run", start_us, duration_us, facts))
        op_us = start_us
        for op in ops:
            facts = {"name": op.name, "node": op.node, "calls": op.calls_per_run}
            events.append(track.complete(op.type, op_us, op.times_us[run], facts))
            op_us += op.times_us[run]
        start_us += duration_us
    return events


def _in_turn(track: Track, stages: Sequence[tuple[str, int]], start_us: int) -> list[Event]:
    events = []
    for name, duration_us in stages:
        events.append(track.complete(name, start_us, duration_us, {}))
        start_us += duration_us
    return events


def _end(event: Event) -> float:
    start_us, duration_us = event["ts"], event["dur"]
    assert isinstance(start_us, int | float)
    assert isinstance(duration_us, int | float)
    return start_us + duration_us
