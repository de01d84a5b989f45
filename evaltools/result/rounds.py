"""What a benchmark measures round by round, before it concludes: the facts of a round, of a log, of a row."""

from __future__ import annotations

from msgspec import Struct, field

from evaltools.metrics.op_profile import Opening, OpProfile
from evaltools.result.facts import Load
from evaltools.result.result import Row


class StatFigures(Struct, frozen=True):
    """What a stat line says, in microseconds. With no sample at all everything is 0.

    The percentiles are None where the line does without, as in releases of TensorFlow and in reports about operators.
    """

    count: int
    first_us: int
    last_us: int
    min_us: int
    max_us: int
    avg_us: float
    std_us: int
    p5_us: int | None = None
    median_us: int | None = None
    p95_us: int | None = None


class LoggedMemory(Struct, frozen=True):
    """Growth of resident memory until the session was initialized, and overall; the monitored peak.

    All in units of 1024 * 1024 bytes.
    """

    init_mb: float
    overall_mb: float
    peak_mb: float | None


class Phase(Struct, frozen=True):
    """Warm-up or regular runs in order; all lists are of the same length.

    ``invokes_us`` are only the times of ``invoke()``, ``reads_us`` those of copying the outputs afterwards, in
    microseconds to the nanosecond; ``starts_us`` is the whole microsecond in which each invocation began, since the
    opening of the session began. ``failed_runs`` of them failed; ``failure`` is the reason of the last.
    """

    invokes_us: list[float] = field(default_factory=list)
    reads_us: list[float] = field(default_factory=list)
    starts_us: list[int] = field(default_factory=list)
    failed_runs: int = 0
    failure: str | None = None


class Memory(Struct, frozen=True):
    """Resident memory of the process that ran, in units of 1024 bytes; null where the platform does not say.

    ``start_kb`` before the model was loaded, ``init_kb`` after, ``steady_kb`` after the regular runs; of that,
    ``anonymous_kb`` belongs to no file. ``peak_start_kb``, ``peak_init_kb`` and ``peak_kb`` are the peaks so far at the
    same three moments, which the native tool subtracts. ``monitored_peak_kb`` is the largest value that
    ``report_peak_memory_footprint`` saw.
    """

    start_kb: int | None
    init_kb: int | None
    steady_kb: int | None
    anonymous_kb: int | None
    peak_start_kb: int | None
    peak_init_kb: int | None
    peak_kb: int | None
    monitored_peak_kb: int | None = None


class Conditions(Struct, frozen=True):
    """The machine at one moment; null or empty where the platform does not say.

    ``frequencies_mhz`` and ``governors`` are of the CPUs in ``affinity``, in that order; ``temperatures`` in degrees
    Celsius by sensor. What other processes do stands in ``load`` of a round.
    """

    affinity: list[int]
    frequencies_mhz: list[float]
    governors: list[str]
    temperatures: dict[str, float]


class Round(Struct, frozen=True):
    """One measurement in a fresh process: opening, warm-up, regular runs.

    ``turn`` is its place among all rounds of the benchmark, from 0. ``disturbances`` says in words what was not quiet.
    ``process_start_us`` is what starting the process took, and where delegates were left out, what was tried with them.
    ``load`` is what else the machine did during the regular runs, null where nobody looked.
    """

    opening: Opening
    warm_up: Phase
    regular: Phase
    memory: Memory
    before: Conditions
    after: Conditions
    disturbances: list[str]
    process_start_us: int
    turn: int = 0
    load: Load | None = None


class LoggedRound(Struct, frozen=True):
    """One start of another program, as its log sums it up, in microseconds; null where the log does not say.

    ``regular`` is of the runs after the warm-up.
    """

    init_us: int | None
    first_inference_us: int | None
    warm_up: StatFigures | None
    regular: StatFigures
    memory: LoggedMemory | None


class Measured(Struct, frozen=True):
    """A model with a configuration: ``row`` says what ran it, without figures.

    Where another program measured, ``logged`` stands for ``rounds``. A row that is not measured may have rounds, those
    before it failed.
    """

    row: Row
    rounds: list[Round] = field(default_factory=list)
    logged: list[LoggedRound] = field(default_factory=list)
    profile: OpProfile | None = None
    profile_failure: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether all of its rounds came to their end."""
        return self.row.status == "measured"

    @property
    def has_times(self) -> bool:
        """Whether a round came to its end."""
        return bool(self.rounds or self.logged)


class Records(Struct, frozen=True):
    """All that was measured at one place, in the order in which it was asked for."""

    measured: list[Measured]
    warnings: list[str] = field(default_factory=list)
    stopped: str = ""
