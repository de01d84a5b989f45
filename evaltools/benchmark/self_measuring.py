"""A session that measures itself, in the process that runs the model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.benchmark.conditions import sample_conditions, set_affinity
from evaltools.benchmark.footprint import PeakMonitor, anonymous_kb, peak_kb, resident_kb
from evaltools.benchmark.loop import PhaseLimits, RunPace, run_phase
from evaltools.configuration import Configuration
from evaltools.metrics.op_profile import OpProfile
from evaltools.model import ModelFile
from evaltools.result.benchmark import Conditions, Memory, Phase
from evaltools.runtime import Delegation, Inference, RuntimeFacts, Session, TensorSpec, open_session
from evaltools.runtime.session import Array, Opening, TimedSession


class Regular(Struct, frozen=True):
    """The regular runs, with the state of the process and the machine before and after them."""

    phase: Phase
    before: Conditions
    after: Conditions
    memory: Memory


class MeasuredSession:
    """A session with the times and the memory of its opening.

    It is what the functions of this module take as ``session``.
    """

    def __init__(self, session: TimedSession, begun_ns: int, memory: Memory, monitor: PeakMonitor | None) -> None:
        self.facts: Final[RuntimeFacts] = session.facts
        self.delegation: Final[Delegation] = session.delegation
        self.inputs: Final[tuple[TensorSpec, ...]] = session.inputs
        self.outputs: Final[tuple[TensorSpec, ...]] = session.outputs
        self.opening: Final[Opening] = session.opening
        self.begun_ns: Final = begun_ns
        self.memory: Final = memory
        self.monitor: Final = monitor
        self.session: Final = session
        self.last_outputs: tuple[Array, ...] = ()

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run the session, and remember its outputs."""
        inference = self.session.run(inputs, invocations)
        self.last_outputs = inference.outputs
        return inference

    def close(self) -> None:
        """Close the session."""
        self.session.close()


def open_measured(
    model: ModelFile,
    configuration: Configuration,
    affinity: tuple[int, ...] = (),
    memory_interval_ms: int | None = None,
) -> MeasuredSession:
    """Open a session in this process, which runs nothing else; raises what the opening raises.

    The process is bound to the CPUs in ``affinity``, and its memory is read every ``memory_interval_ms``. The
    ``starts_us`` of the runs count from this call.
    """
    begun_ns = time.perf_counter_ns()
    if affinity:
        set_affinity(affinity)
    monitor = PeakMonitor(memory_interval_ms) if memory_interval_ms is not None else None
    if monitor is not None:
        monitor.start()
    start_kb, peak_start_kb = resident_kb(), peak_kb()
    session = open_session(model, configuration)
    assert isinstance(session, TimedSession)
    memory = Memory(start_kb, resident_kb(), None, None, peak_start_kb, peak_kb(), None)
    return MeasuredSession(session, begun_ns, memory, monitor)


def opening_of(session: Session) -> Opening:
    """Times and memory of the opening."""
    return _measured(session).opening


def run_warm_up(session: Session, inputs: Sequence[Array], limits: PhaseLimits, pace: RunPace) -> Phase:
    """Run the warm-up; returns its times."""
    return run_phase(_measured(session).session, inputs, limits, pace, _measured(session).begun_ns)


def run_regular(session: Session, inputs: Sequence[Array], limits: PhaseLimits, pace: RunPace) -> Regular:
    """Run the regular runs; returns their times and conditions."""
    measured = _measured(session)
    before = sample_conditions()
    phase = run_phase(measured, inputs, limits, pace, measured.begun_ns)
    after = sample_conditions()
    if measured.monitor is not None:
        measured.monitor.stop()
    memory = replace(
        measured.memory,
        steady_kb=resident_kb(),
        anonymous_kb=anonymous_kb(),
        peak_kb=peak_kb(),
        monitored_peak_kb=measured.monitor.peak_kb if measured.monitor is not None else None,
    )
    return Regular(phase, before, after, memory)


def outputs_of(session: Session) -> tuple[Array, ...]:
    """The outputs of the last regular run, empty where nothing was run."""
    return _measured(session).last_outputs


def profile_of(
    session: Session, model: ModelFile, configuration: Configuration, inputs: Sequence[Array], runs: int
) -> OpProfile:
    """Profile the operators in this process; raises what the profiler raises."""
    from evaltools.runtime.profiler.opening import profile_operators

    session.close()
    return profile_operators(model, configuration, inputs, runs)


def _measured(session: Session) -> MeasuredSession:
    assert isinstance(session, MeasuredSession)
    return session
