"""What ``evaltools locate`` costs beside a linear search: one growing prefix of the model for each operator.

``python -m benchmarks locate_time [MODEL.tflite ...] [--test="use_xnnpack=true"] [--num_inputs=5]`` times both on the
same inputs, and counts compiles, and operators in all that was compiled. Models have fixed sizes.

The linear search does the least that one can do: it cuts, opens and runs each prefix on each input once, and compares
its last tensor with the CPU's. The search of evaltools is the whole one, with floors, checks on the CPU and repeated
runs (``--num_runs``); 1 leaves the repeating out.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

import evaltools as et
from benchmarks.detector import detector
from evaltools.configuration import Configuration
from evaltools.locate.command import COMMAND as LOCATE
from evaltools.model import read_model
from evaltools.model.contents import read_contents
from evaltools.model.cut import Cut, CuttableModel, Form
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from evaltools.runtime.registry import open_session
from evaltools.runtime.session import Array

MODELS: Final = ("tf2_mobilenet_v2_1.0_224_ptq", "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29")
"""Of ``$EVALTOOLS_REALDATA/realdata/zoo``, beside a detector that is drawn, where no models are given."""
PARAMETERS: Final = (
    Parameter(
        "model",
        "A model; a drawn detector without one, and two of EVALTOOLS_REALDATA.",
        default="",
        positional=True,
        repeatable=True,
    ),
    Parameter("test", "The configuration that is looked into.", default="use_xnnpack=true"),
    Parameter("num_inputs", "Different inputs.", default=5),
    Parameter("num_runs", "Runs of each part in evaltools locate.", default=LOCATE.parameters["num_runs"].default),
)
_REFERENCE: Final = Configuration.from_text("reference", "kernels=builtin num_threads=1")
_SEED: Final = 1


class Cost(Struct, frozen=True):
    """What a search took: seconds, models opened with the delegate, and operators in all of them together."""

    seconds: float
    compiles: int
    operators: int


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("locate_time", "", "", {"flags": PARAMETERS}, arguments)
    folder = Path(os.environ.get("EVALTOOLS_REALDATA", "")) / "realdata" / "zoo"
    models = [Path(text) for text in flags.texts("model") if text]
    test, count = flags.text("test"), flags.number("num_inputs")
    print(f"{'model':44} search          seconds  compiles  operators compiled")
    with tempfile.TemporaryDirectory() as temporary:
        if not models:
            drawn = Path(temporary) / "detector.tflite"
            drawn.write_bytes(detector())
            models = [path for path in (folder / f"{name}.tflite" for name in MODELS) if path.exists()] + [drawn]
        for model in models:
            linear = linear_search(model, Configuration.from_text("test", test), count)
            print_row(model, "linear", linear)
            print_row(model, "evaltools", whole_search(model, test, count, flags.number("num_runs")))
    return 0


def print_row(model: Path, name: str, cost: Cost) -> None:
    """A line of the table."""
    print(f"{model.stem:44} {name:14} {cost.seconds:8.1f} {cost.compiles:9} {cost.operators or '':>19}", flush=True)


def whole_search(model: Path, test: str, inputs: int, runs: int) -> Cost:
    """That of evaltools, in all it does; it does not say how many operators its parts had."""
    found = et.locate(model, test=test, num_inputs=inputs, num_runs=runs).result
    return Cost(found.environment.elapsed_s, found.rows[0].counts["compiles"], 0)


def linear_search(model: Path, tested: Configuration, count: int) -> Cost:
    """Every prefix, from the first operator alone to the whole model."""
    file = read_model(model)
    parts = CuttableModel(file.read())
    graph = read_contents(file).main
    forms = {tensor.index: Form(tensor.shape, tensor.dtype) for tensor in graph.tensors}
    places = [place for place in range(len(parts.operators)) if place not in parts.folded]
    every = [tensor for place in places for tensor in parts.made_by(place)]
    inputs = [_noise(parts, forms, seed) for seed in range(_SEED, _SEED + count)]
    start = time.perf_counter()
    reference = _run(parts.cut(0, places[-1], forms, exposed=every), _REFERENCE, inputs)
    operators = 0
    for place in places:
        cut = parts.cut(0, place, forms)
        operators += sum(other <= place for other in places)
        for given, expected in zip(_run(cut, tested, inputs), reference, strict=True):
            _ = {tensor: np.abs(given[tensor] - expected[tensor].astype(np.float64)).max() for tensor in given}
    return Cost(time.perf_counter() - start, len(places), operators)


def _run(cut: Cut, configuration: Configuration, inputs: Sequence[dict[int, Array]]) -> list[dict[int, Array]]:
    """The outputs of a part by tensor, once for each input."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.tflite"
        path.write_bytes(cut.content)
        session = open_session(read_model(path), configuration)
        try:
            runs = [session.run([given[tensor] for tensor in cut.inputs]).outputs for given in inputs]
        finally:
            session.close()
    return [dict(zip(cut.outputs, outputs, strict=True)) for outputs in runs]


def _noise(parts: CuttableModel, forms: dict[int, Form], seed: int) -> dict[int, Array]:
    random = np.random.default_rng(seed)
    found: dict[int, Array] = {}
    for tensor in parts.graph_inputs:
        form = forms[tensor]
        kind = np.dtype(form.dtype)
        if kind.kind == "f":
            found[tensor] = random.uniform(-1, 1, form.shape).astype(kind)
        else:
            limits = np.iinfo(kind)
            found[tensor] = random.integers(limits.min, limits.max, form.shape, kind, endpoint=True)
    return found
