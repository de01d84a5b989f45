"""Results of benchmarks made by hand."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import summarise_latency
from evaltools.metrics.op_profile import Opening, OpProfile, OpTimes
from evaltools.result.benchmark import (
    BENCHMARK_SCHEMA_VERSION,
    AccuracyGiven,
    BenchmarkFigures,
    BenchmarkResult,
    BenchmarkRow,
    Conditions,
    Memory,
    Phase,
    Round,
)
from evaltools.result.evaluation import Environment, Load, Model

QUIET = Conditions([0, 1], [], [], {})
PROFILE = OpProfile(
    "litert",
    2,
    [OpTimes("CONV_2D", "[conv]:0", 0, False, [70, 60]), OpTimes("SOFTMAX", "[out]:1", 1, False, [5, 0])],
    [80, 55],
)


def a_round(warm_up: Phase, regular: Phase, load_us: int | None = 100) -> Round:
    """The three parts of opening take 100, 20 and 30 us, or are not told apart."""
    parts = (load_us, 20, 30) if load_us is not None else (None, None, None)
    memory = Memory(1000, 1500, 1600, 700, 1000, 1700, 1800)
    return Round(Opening(40, 155, *parts), warm_up, regular, memory, QUIET, QUIET, [], 2000)


def row(
    name: str, median_us: int, accuracy: float | None = None, model: int = 0, metric: str = "top-1"
) -> BenchmarkRow:
    """The interval of the median reaches 10 % to both sides."""
    latency = summarise_latency([median_us])
    interval = Interval(0.9 * median_us, 1.1 * median_us)
    figures = BenchmarkFigures(latency, latency, latency, latency, latency, {}, interval, None)
    given = None if accuracy is None else AccuracyGiven(metric, accuracy, "run.json")
    return BenchmarkRow(model, name, [], 1, "measured", None, figures=figures, accuracy=given)


def on_front(entry: BenchmarkRow) -> BenchmarkRow:
    return replace(entry, on_latency_front=True)


def benchmark(*rows: BenchmarkRow, sizes: tuple[int, ...] = (4_000_000,)) -> BenchmarkResult:
    """Of models a.tflite, b.tflite and so on."""
    environment = Environment("0", "3", "p", "m", "c", 2, {}, "now", 1.0, [], load=Load(2, 0.0, 0.0))
    models = [Model(f"models/{'abcdef'[number]}.tflite", "00", size, 1, [], []) for number, size in enumerate(sizes)]
    return BenchmarkResult(BENCHMARK_SCHEMA_VERSION, environment, {}, models, list(rows))
