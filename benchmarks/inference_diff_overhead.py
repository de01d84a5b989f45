"""How much the inference diff costs beyond the work itself.

The work is: generating the inputs of all runs, and a bare ``invoke()`` of reference and test for each, in one process.
It is compared with the pass of ``evaltools inference-diff`` over the same inputs and configurations (sessions in
processes of their own, outputs read and compared), without loading and noise_floor.

    python -m benchmarks inference_diff_overhead [MODEL.tflite ...]
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import numpy as np

from evaltools.configuration import Configuration
from evaltools.datasets.sample import MODELS, model_file
from evaltools.model import ModelFile, read_model
from evaltools.request import Options, Request
from evaltools.runs.evaluate import evaluate
from evaltools.runtime import open_session
from evaltools.tasks.framework import read
from evaltools.tasks.framework.observer import Observer
from evaltools.tasks.inference_diff import COMMAND
from evaltools.tasks.inference_diff.input_options import InputOptions
from evaltools.tasks.inference_diff.inputs import plan_inputs

RUNS = 50
REPEATS = 11
REFERENCE = Configuration("reference", kernels="builtin")
TEST = Configuration("test")


def bare_seconds(model: ModelFile) -> tuple[float, float]:
    """Seconds for generating the inputs of all runs, and for the invocations alone."""
    source = plan_inputs(model, model.inputs, InputOptions(num_runs=RUNS)).source
    sessions = [open_session(model, configuration) for configuration in (REFERENCE, TEST)]
    for session in sessions:
        session.run([np.zeros(spec.shape, spec.dtype) for spec in session.inputs])
    generating = invoking = 0.0
    for run in range(RUNS):
        start = time.perf_counter()
        inputs = source.inputs(run)
        generating += time.perf_counter() - start
        invoking += sum(session.run(inputs).invokes_us[0] for session in sessions) / 1e6
    return generating, invoking


def diff_seconds(model: ModelFile) -> float:
    """Seconds of the pass of an inference diff."""
    options = {"model_file": model.path, "num_runs": RUNS, "noise_floor_runs": 0}
    request = Request("inference_diff", Options.of(options, COMMAND.parameters), REFERENCE, (TEST,))
    return evaluate(read(COMMAND, request), Observer()).environment.elapsed_s


def main(arguments: list[str]) -> int:
    """Print a line per model: medians over repetitions in which bare work and diff take turns."""
    paths = [Path(argument) for argument in arguments] or [model_file(name) for name in MODELS]
    print(f"{'model':<36} {'inputs':>9} {'invoke':>9} {'diff':>9} {'ratio':>6}   ({RUNS} runs, reference and test)")
    for path in paths:
        model = read_model(path)
        measured = [(*bare_seconds(model), diff_seconds(model)) for _ in range(REPEATS)]
        generating, invoking, total = (statistics.median(values) for values in zip(*measured, strict=True))
        ratio = statistics.median(entry[2] / (entry[0] + entry[1]) for entry in measured)
        figures = " ".join(f"{1000 * seconds:6.0f} ms" for seconds in (generating, invoking, total))
        print(f"{path.name:<36} {figures} {ratio:6.2f}")
    return 0
