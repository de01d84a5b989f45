"""What a capture found: the models that ran in this process, or the processes of a run that goes on."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

LONGEST_S: Final = 600.0
"""No capture of a run is longer, in seconds."""


class CallFigures(Struct, frozen=True):
    """Calls of one kind, times in milliseconds; ``failed`` of them raised an error."""

    calls: int
    failed: int
    total_ms: float
    first_ms: float
    median_ms: float
    min_ms: float
    max_ms: float


class ModelCalls(Struct, frozen=True):
    """A model that ran: its file's name, the runtime's package, and what was called, by kind.

    At its first run ``delegated_nodes`` of its ``nodes`` were a delegate's, and ``cpu_operators`` counts the others by
    operator. They are null where the runtime does not say, as for a CompiledModel, and where it did not run.
    """

    name: str
    runtime: str
    calls: dict[str, CallFigures]
    nodes: int | None = None
    delegated_nodes: int | None = None
    cpu_operators: dict[str, int] | None = None


class ProcessUse(Struct, frozen=True):
    """What a process used over the time of a capture.

    ``cores`` is the processor time per second of clock time. Memory is resident, in units of 1024 * 1024 bytes.
    ``threads`` is the largest number of them.
    """

    process_id: int
    name: str
    cores: float
    mean_memory_mb: float
    peak_memory_mb: float
    threads: int


class ModelsCapture(Struct, frozen=True):
    """What ``evaltools.profile`` recorded in ``seconds``; ``process`` is the one that it was called in."""

    seconds: float
    models: list[ModelCalls]
    process: ProcessUse


class RunCapture(Struct, frozen=True):
    """What a run did during ``seconds``.

    ``examples_done`` is their number at the end, null where the journal does not say. ``examples_per_second`` is how
    fast they were finished meanwhile, and ``stage_seconds`` the work by stage, of all workers; null and empty where the
    run did not say. ``notes`` are about what could not be seen, and why.
    """

    seconds: float
    examples_done: int | None
    examples_per_second: float | None
    stage_seconds: dict[str, float]
    processes: list[ProcessUse]
    notes: list[str] = field(default_factory=list)
