"""A session that measures itself and its memory, in units of 1024 bytes, in the process that runs the model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil
from msgspec import Struct
from msgspec.structs import replace

from evaltools.benchmark.conditions import sample_conditions
from evaltools.benchmark.loop import PhaseLimits, RunPace, run_phase
from evaltools.configuration import Configuration
from evaltools.engine.sampling import Sampler
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.metrics.op_profile import Opening, OpProfile
from evaltools.model import ModelFile
from evaltools.result.rounds import Conditions, Memory, Phase
from evaltools.runtime import Delegation, Inference, RuntimeFacts, Session, TensorSpec, open_session
from evaltools.runtime.memory import peak_memory_kb
from evaltools.runtime.session import Array, TimedSession

_NO_LATENCY: Final = "no latency; evaltools diff compares its outputs, and the chip itself has the latency"
_BYTES_PER_KB: Final = 1024
_STATUS: Final = Path("/proc/self/status")
_OWN_PEAK: Final = "VmHWM:"


def resident_kb() -> int | None:
    """Memory that is in RAM now, pages shared with other processes included; None where the platform does not say.

    ``VmRSS`` of Linux, the working set of Windows.
    """
    try:
        return int(psutil.Process().memory_info().rss // _BYTES_PER_KB)
    except (OSError, psutil.Error):
        return None


def anonymous_kb() -> int | None:
    """Of the memory in RAM, what belongs to no file and is not shared; None on other platforms than Linux.

    As the native tool has it: resident minus shared pages of ``/proc/self/statm``, which is ``RssAnon``.
    """
    try:
        memory = psutil.Process().memory_info()
    except (OSError, psutil.Error):
        return None
    shared = getattr(memory, "shared", None)
    return None if shared is None else int((memory.rss - shared) // _BYTES_PER_KB)


def peak_kb() -> int | None:
    """The largest resident memory of this process so far; None where the platform does not say.

    ``VmHWM`` on Linux, so that it is never that of the process that started this one, as ``ru_maxrss`` may be.
    Measured, and as the kernel has it (``dup_mm``, ``exec_mmap`` and ``vfork``):

    ========================================  =================================  ======================================
    this process was                          ``ru_maxrss`` starts with          ``VmHWM`` starts with
    ========================================  =================================  ======================================
    forked, as by a server of children        what the parent held at that time  the same, which this process does hold
    forked, then another program was loaded   what the parent held at that time  nothing
    started by ``posix_spawn`` or ``vfork``   the parent's peak                  nothing
    ========================================  =================================  ======================================

    In a child forked from a server it includes the pages it shares with the server, Python and what the server had
    imported, as resident memory does too: only what is added to the peak at the start is the model's. Growth of
    ``ru_maxrss`` is 0 until the memory of somebody else is exceeded.
    """
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        lines = []
    own = [int(line.split()[1]) for line in lines if line.startswith(_OWN_PEAK)]
    return own[0] if own else peak_memory_kb() or None


class PeakMonitor(Sampler):
    """Looks at the resident memory at the start, then every ``interval_ms``, and at the stop.

    ``peak_kb`` is the largest value seen, None where the platform does not say; a shorter peak is not seen.
    Raises :class:`UsageError` for an interval that is not positive. It can be started once.

    >>> monitor = PeakMonitor(interval_ms=10)
    >>> monitor.start()
    >>> work = bytes(1000)
    >>> monitor.stop()
    >>> monitor.peak_kb is None or monitor.peak_kb > 1000
    True
    """

    def __init__(self, interval_ms: int = 50) -> None:
        if interval_ms <= 0:
            raise UsageError(f"memory cannot be looked at every {interval_ms} ms; give an interval of 1 ms or more")
        self.peak_kb: int | None = None
        super().__init__("peak memory", interval_ms / 1000)

    def sample(self) -> None:
        """Look now."""
        now = resident_kb()
        if now is not None:
            self.peak_kb = max(now, self.peak_kb or 0)


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
    memory_interval_ms: int | None = None,
) -> MeasuredSession:
    """Open a session in this process, which runs nothing else; raises what the opening raises.

    Its memory is read every ``memory_interval_ms``. The ``starts_us`` of the runs count from this call.
    """
    begun_ns = time.perf_counter_ns()
    monitor = PeakMonitor(memory_interval_ms) if memory_interval_ms is not None else None
    if monitor is not None:
        monitor.start()
    start_kb, peak_start_kb = resident_kb(), peak_kb()
    session = open_session(model, configuration)
    if session.facts.emulator:
        raise ConfigurationUnavailable(f"emulated by {session.facts.emulator}: {_NO_LATENCY}")
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
