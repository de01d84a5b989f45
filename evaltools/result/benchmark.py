"""The result of a benchmark: what was measured, raw, and what follows from it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, field

from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import Drift, Latency, LatencyRatio
from evaltools.metrics.op_profile import Opening, OpProfile
from evaltools.result.device import DeviceRun
from evaltools.result.evaluation import DelegateUsed, DelegationProof, Environment, Load, Model, RuntimeUsed
from evaltools.result.json_file import json_of_version, read_content

BENCHMARK_SCHEMA_VERSION: Final = "3"
_WHAT: Final = "evaltools benchmark result"


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


class AccuracyGiven(Struct, frozen=True):
    """An accuracy, 0..1, from a result of ours: ``metric`` names it, ``source`` is the file."""

    metric: str
    value: float
    source: str


class BenchmarkFigures(Struct, frozen=True):
    """What the rounds of one configuration say together, in microseconds.

    ``percentiles`` maps 1, 5, 10, 25, 50, 75, 90, 95, 99 to the native tool's percentile, which is always one of the
    times; ``inference.p50_us`` lies between two where their number is even. ``median_interval`` is the 95 % interval of
    the median of ``invoke()``: of one round, for its process; of several, for such processes.
    """

    init: Latency
    first_run: Latency
    warm_up: Latency
    inference: Latency
    run_and_read: Latency
    percentiles: dict[str, float]
    median_interval: Interval | None
    drift: Drift | None


class LoggedRound(Struct, frozen=True):
    """One start of another program, as its log sums it up, in microseconds; null where the log does not say.

    ``regular`` is of the runs after the warm-up.
    """

    init_us: int | None
    first_inference_us: int | None
    warm_up: StatFigures | None
    regular: StatFigures
    memory: LoggedMemory | None


class LoggedFigures(Struct, frozen=True):
    """What the logs of another program say together, in microseconds. They have no single times, only their sums.

    ``count``, ``min_us``, ``max_us`` and ``avg_us`` are of all runs; the averages in logs have six digits.
    ``median_us`` is the median of the rounds' medians, of a single round its own, null where a log has none.
    ``median_interval`` is its 95 % interval, for such processes, where there are several rounds.
    """

    rounds: list[LoggedRound]
    count: int
    min_us: int
    max_us: int
    avg_us: float
    median_us: float | None
    median_interval: Interval | None


class BenchmarkRow(Struct, frozen=True):
    """A model with a configuration. ``model`` is an index into the result's models.

    ``versus_first`` says how many times as long it takes as the first row of this model that was measured. Where
    another program measured, ``logged`` stands for ``rounds`` and ``figures``.
    """

    model: int
    name: str
    flags: list[str]
    num_threads: int
    status: Literal["measured", "failed"]
    reason: str | None
    cannot_exist: bool = False
    runtime: RuntimeUsed | None = None
    delegates: list[DelegateUsed] = field(default_factory=list)
    delegation: DelegationProof | None = None
    fallback: str | None = None
    rounds: list[Round] = field(default_factory=list)
    figures: BenchmarkFigures | None = None
    profile: OpProfile | None = None
    profile_failure: str | None = None
    versus_first: LatencyRatio | None = None
    accuracy: AccuracyGiven | None = None
    on_latency_front: bool | None = None
    logged: LoggedFigures | None = None


class BenchmarkResult(Struct, frozen=True):
    """A benchmark.

    ``options`` are the flags that shape the runs, by name, in force; ``warnings`` are about them. ``device_run`` says
    which devices it was done on; of several, each has rows of its own, named ``NAME@SERIAL``.
    """

    schema_version: str
    environment: Environment
    options: dict[str, bool | int | float | str]
    models: list[Model]
    rows: list[BenchmarkRow]
    warnings: list[str] = field(default_factory=list)
    stopped: str | None = None
    device_run: DeviceRun | None = None

    def __post_init__(self) -> None:
        for row in self.rows:
            if not 0 <= row.model < len(self.models):
                raise ValueError(f"a row is of model {row.model}, and there are {len(self.models)}")


def read_benchmark(path: Path) -> BenchmarkResult:
    """Read and check the result of a benchmark; raises :class:`~evaltools.errors.DataError` for a file that is none."""
    return benchmark_in(read_content(path), path)


def benchmark_in(content: bytes, path: Path) -> BenchmarkResult:
    """The same from the content of a file that was read already."""
    return json_of_version(content, path, BenchmarkResult, _WHAT, BENCHMARK_SCHEMA_VERSION)
