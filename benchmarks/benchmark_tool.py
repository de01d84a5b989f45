"""What ``evaltools benchmark`` adds to ``invoke()``, and LiteRT's own benchmark from the same package.

``python -m benchmarks benchmark_tool [--graph=... --configuration="runtime=compiled use_gpu=true" ...]``

* bare: a Python loop of ``invoke()`` on inputs that were set once, its whole time divided by the number of runs;
* evaltools: the average of the regular runs, which are the same session's; bare and ours take turns in one process;
* ``litert-benchmark``, in a process of its own, beside ``evaltools benchmark --runtime=compiled``, taking turns.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from evaltools.benchmark.inputs import make_inputs
from evaltools.benchmark.loop import PhaseLimits, run_phase
from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.errors import DataError
from evaltools.model import ModelFile, read_model
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from evaltools.runtime import Session, open_session
from evaltools.runtime.process.isolated import open_isolated

PARAMETERS: Final = (
    Parameter("graph", "A .tflite model; without it, the sample's.", repeatable=True),
    Parameter("configuration", "Flags of the configuration to measure."),
    Parameter("rounds", "Turns of bare loop and evaltools.", default=15),
    Parameter("runs", "Runs in each turn.", default=100),
    Parameter("litert_rounds", "Turns of litert-benchmark and evaltools; 0: none.", default=3),
)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("benchmark_tool", "", "", {"flags": PARAMETERS}, arguments)
    paths = [Path(text) for text in flags.texts("graph")] or [sample.model_file("int8"), sample.model_file("float32")]
    configuration = Configuration.from_text("measured", flags.text("configuration"))
    print(f"{'model':<44} {'bare':>9} {'evaltools':>10} {'ratio':>7} {'of rounds':>16}")
    for path in paths:
        model = read_model(path)
        with_process = open_isolated(model, configuration, 300.0, open_session)
        try:
            found = with_process.call(in_turns, model, flags.number("rounds"), flags.number("runs"), timeout_s=3600.0)
        finally:
            with_process.close()
        bare, ours = (statistics.median(values) for values in zip(*found, strict=True))
        ratios = sorted(mine / theirs for theirs, mine in found)
        spread = f"{ratios[0]:.3f} .. {ratios[-1]:.3f}"
        print(f"{path.name:<44} {bare:6.0f} us {ours:7.0f} us {statistics.median(ratios):7.3f} {spread:>16}")
    for path in paths if flags.number("litert_rounds") else ():
        print_litert(path, configuration, flags.number("litert_rounds"))
    return 0


def in_turns(session: Session, model: ModelFile, rounds: int, runs: int) -> list[tuple[float, float]]:
    """Average microseconds of a bare loop and of ours, per round; which goes first changes."""
    inputs, _ = make_inputs(model, ())
    invoke = bare_invoke(session)
    limits = PhaseLimits(runs, 0.0, 600.0)
    session.run(inputs)
    run_phase(session, inputs, limits)
    found = []
    for number in range(rounds):
        first = bare_average(invoke, runs) if number % 2 == 0 else 0.0
        phase = run_phase(session, inputs, limits)
        bare = first or bare_average(invoke, runs)
        found.append((bare, sum(phase.invokes_us) / runs))
    return found


def bare_invoke(session: Any) -> Any:
    """The runtime's own function, without anything of ours around it."""
    if hasattr(session, "_interpreter"):
        return session._interpreter.invoke
    compiled, arguments = session._compiled, (session._signature, session._input_buffers, session._output_buffers)
    return lambda: compiled.run_by_index(*arguments)


def bare_average(invoke: Any, runs: int) -> float:
    """Microseconds per run."""
    start = time.perf_counter()
    for _ in range(runs):
        invoke()
    return (time.perf_counter() - start) / runs * 1e6


def print_litert(path: Path, configuration: Configuration, rounds: int) -> None:
    """Averages in milliseconds of both commands on CompiledModel, and their ratio."""
    accelerators = [name for name in ("use_gpu", "use_npu") if configuration.delegates.value(name)]
    theirs, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            theirs.append(litert_average(path, accelerators, Path(folder) / "theirs.json"))
            ours.append(evaltools_average(path, configuration, Path(folder) / "ours.json"))
    ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
    print(
        f"{path.name:<44} litert-benchmark {statistics.median(theirs):.3f} ms, "
        f"evaltools benchmark --runtime=compiled {statistics.median(ours):.3f} ms, ratio {ratio:.3f}"
    )


def litert_average(path: Path, accelerators: list[str], output: Path) -> float:
    """What the package's own benchmark says, in milliseconds; it rounds to hundredths in its file."""
    flags = [f"--model={path}", "--num_runs=200", f"--result_json={output}", *(f"--{name}" for name in accelerators)]
    command = [sys.executable, "-m", "ai_edge_litert.tools.benchmark_litert_model", *flags]
    subprocess.run(command, check=True, capture_output=True)
    return average_in(json.loads(output.read_text()))


def average_in(document: Any) -> float:
    """``latency.avg_ms`` of what the package's own benchmark writes; raises :class:`DataError` where it lacks."""
    latency = document.get("latency", {})
    if "avg_ms" not in latency:
        message = f"the JSON of litert-benchmark has no latency.avg_ms; it has {', '.join(document)}"
        inside = f", and in latency {', '.join(latency)}" if latency else ""
        raise DataError(f"{message}{inside}: look at what this version of ai-edge-litert writes, or --litert_rounds=0")
    return float(latency["avg_ms"])


def evaltools_average(path: Path, configuration: Configuration, output: Path) -> float:
    """What ours says, in milliseconds."""
    own = [flag for flag in configuration.to_flags() if not flag.startswith("--runtime=")]
    flags = [f"--graph={path}", "--num_runs=200", "--min_secs=0", "--warmup_runs=5", "--warmup_min_secs=0"]
    command = ["evaltools", "benchmark", *flags, "--runtime=compiled", f"--output_file_path={output}", *own]
    subprocess.run([sys.executable, "-m", "evaltools.cli.main", *command[1:]], check=True, capture_output=True)
    return float(json.loads(output.read_text())["rows"][0]["figures"]["inference"]["avg_us"]) / 1000
