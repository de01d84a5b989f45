"""What it costs that native code runs in a process of its own, behind a supervisor and a framed channel, per run.

Processor time of all processes taken together, beyond that of the same runs in one process, so that other work on the
machine changes little; and wall time, which it does change.

    python -m benchmarks process_cost [MODEL.tflite ...]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

from evaltools.configuration import Configuration
from evaltools.datasets.sample import model_file
from evaltools.model import ModelFile, read_model
from evaltools.runtime import open_session
from evaltools.runtime.process.isolated import open_isolated

RUNS = 2000
ROUNDS = 5
WARM_UP = 50
CONFIGURATION = Configuration("test")


def cost_per_run(model: ModelFile) -> dict[str, tuple[float, float]]:
    """Processor and wall time in microseconds per run, by how it is run: the medians of rounds taken in turns."""
    bare, isolated = open_session(model, CONFIGURATION), open_isolated(model, CONFIGURATION)
    inputs = [np.zeros(spec.shape, spec.dtype) for spec in bare.inputs]
    block = [inputs] * isolated.longest_block
    child = psutil.Process(isolated.process_id)
    processes = (psutil.Process(), child, child.parent())
    blocks = max(1, RUNS // len(block))
    ways: dict[str, tuple[int, Callable[[], object]]] = {
        "in one process": (RUNS, lambda: [bare.run(inputs) for _ in range(RUNS)]),
        "apart, one by one": (RUNS, lambda: [isolated.run(inputs) for _ in range(RUNS)]),
        f"apart, {len(block)} at a time": (
            blocks * len(block),
            lambda: [isolated.run_block(block) for _ in range(blocks)],
        ),
    }
    for _ in range(WARM_UP):
        bare.run(inputs)
        isolated.run(inputs)
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, (runs, run) in ways.items():
            before, start = _processor_seconds(processes), time.perf_counter()
            run()
            spent = time.perf_counter() - start
            found[way].append(((_processor_seconds(processes) - before) / runs * 1e6, spent / runs * 1e6))
    isolated.close()
    return {way: _medians(times) for way, times in found.items()}


def _processor_seconds(processes: tuple[psutil.Process | None, ...]) -> float:
    times = [process.cpu_times() for process in processes if process is not None]
    return sum(each.user + each.system for each in times)


def _medians(times: list[tuple[float, float]]) -> tuple[float, float]:
    processor, wall = zip(*times, strict=True)
    return statistics.median(processor), statistics.median(wall)


def main(arguments: list[str]) -> int:
    """Print a line per model and way."""
    for path in [Path(argument) for argument in arguments] or [model_file("float32")]:
        for way, (processor_us, wall_us) in cost_per_run(read_model(path)).items():
            print(f"{path.name:24} {way:20} {processor_us:8.1f} us of processors {wall_us:8.1f} us in all")
    return 0
