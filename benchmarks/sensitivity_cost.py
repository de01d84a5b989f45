"""What an inference diff spends on saying what its verdict would have noticed.

``python -m benchmarks sensitivity_cost MODEL.tflite ... [--num_runs=50]`` runs the whole command per model, and prints
the wall time of planting and judging faults beside that of all.
"""

from __future__ import annotations

import contextlib
import io
import time
from pathlib import Path
from typing import Any, Final
from unittest import mock

from evaltools.cli.main import main as evaltools_main
from evaltools.tasks.inference_diff.sensitivity import measure_sensitivity

JUDGEMENT: Final = "evaltools.tasks.inference_diff.judgement"


def seconds(model: str, options: list[str]) -> tuple[float, float]:
    """Those of planting and judging, and those of the whole command."""
    spent = 0.0

    def timed(*arguments: Any) -> Any:
        nonlocal spent
        start = time.perf_counter()
        found = measure_sensitivity(*arguments)
        spent += time.perf_counter() - start
        return found

    start = time.perf_counter()
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with mock.patch(f"{JUDGEMENT}.measure_sensitivity", timed), quiet[0], quiet[1]:
        evaltools_main(["diff", f"--model_file={model}", *options])
    return spent, time.perf_counter() - start


def main(arguments: list[str]) -> int:
    """Measure and print."""
    models = [argument for argument in arguments if not argument.startswith("--")]
    options = [argument for argument in arguments if argument.startswith("--")]
    print("model                            sensitivity s   all s   share")
    for model in models:
        spent, total = seconds(model, options)
        print(f"{Path(model).stem:32} {spent:13.2f} {total:7.2f} {100 * spent / total:6.1f} %", flush=True)
    return 0
