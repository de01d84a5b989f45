"""Whether ``evaltools locate`` names the operator at fault: faults planted into real models, one operator at a time.

``python -m benchmarks locate_faults [MODEL.tflite ...] [--operators=10] [--delegate=FAULTY.so] [--options="..."]``

Faults are those of ``examples/external_delegate/faulty_delegate.so``, which runs every operator on the CPU's own
kernels and spoils one tensor. Some operators of each model, spread over it, get an error of each of :data:`SIZES`.
Named right is the planted operator and no other; named wrong is any other answer that names operators. Without a fault
nothing may be named.

How the command is called is in :func:`command_line`, how its answer is read in :func:`read_answer`, and nowhere else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.model import read_model
from evaltools.model.contents import Graph, Operation, read_contents
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

DELEGATE: Final = Path(__file__).resolve().parents[1] / "examples" / "external_delegate" / "faulty_delegate.so"
MODELS: Final = (
    "ad01_fp32", "ad01_int8", "kws_ref_model_float32", "kws_ref_model", "mobilenet_v1_0.25_224_float",
    "mobilenet_v1_0.25_128_quant", "tf2_mobilenet_v2_1.0_224_ptq", "vww_96_int8", "micro_speech_quantized",
    "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29",
)  # fmt: skip
"""Of ``$EVALTOOLS_REALDATA/realdata/zoo``, where no models are given."""
PARAMETERS: Final = (
    Parameter(
        "model", "A model; those of EVALTOOLS_REALDATA without one.", default="", positional=True, repeatable=True
    ),
    Parameter("delegate", "The faulty delegate; that of examples, built, if empty.", default=""),
    Parameter("operators", "Operators of each model that get a fault, spread over it.", default=10),
    Parameter("options", "Further flags of evaltools locate, with blanks between.", default=""),
    Parameter("at_once", "Commands at once.", default=1),
    Parameter("seconds", "A command that takes longer is given up.", default=600),
    Parameter("list", "Print each answer.", default=False),
)
SPOILED_TYPES: Final = ("float32", "int8", "uint8", "int16", "int32", "int64")
_RUNS_GRAPHS: Final = ("IF", "WHILE", "CALL_ONCE")


class Size(Struct, frozen=True):
    """How large an error is: of floats a share of the largest value, of whole numbers steps.

    It is in each so manieth run, and in each so manieth value.
    """

    floats: float
    steps: float
    every: int = 1
    stride: int = 1


SIZES: Final = {
    "small": Size(0.003, 2),
    "middle": Size(0.03, 8),
    "large": Size(0.3, 32),
    "large, 1 of 20": Size(0.3, 32, 20),
    "half a step": Size(0.003, -1, stride=2),
}
"""Above what is no fault: CPU kernels differ by a step, but not to one side on average."""


class Planted(Struct, frozen=True):
    """An operator that gets a fault, by its index and the tensor that it gives; none for a run without a fault."""

    model: Path
    operator: int | None
    tensor: str
    dtype: str
    size: str


class Answer(Struct, frozen=True):
    """What the command says: the kind of its verdict, and the operators that it names."""

    kind: str
    operators: tuple[int, ...]
    seconds: float = 0.0


Ask = Callable[[Planted], Answer | None]
"""Gives no answer where the command gives none."""


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("locate_faults", "", "", {"flags": PARAMETERS}, arguments)
    delegate = Path(flags.text("delegate") or DELEGATE)
    models = [Path(text) for text in flags.texts("model") if text] or default_models()
    if not delegate.exists() or not models:
        print(f"there must be models, and {delegate} (make -C examples/external_delegate)")
        return 2

    def ask(planted: Planted) -> Answer | None:
        return answer_of(planted, delegate.resolve(), flags.text("options").split(), flags.number("seconds"))

    entries = [each for model in models for each in faults_of(model, flags.number("operators"))]
    answers = answered(entries, ask, flags.number("at_once"), print_answer if flags.is_on("list") else None)
    print_tables(entries, answers)
    return 0


def default_models() -> list[Path]:
    """Those of :data:`MODELS` that are there."""
    folder = Path(os.environ.get("EVALTOOLS_REALDATA", "")) / "realdata" / "zoo"
    return [path for path in (folder / f"{name}.tflite" for name in MODELS) if path.exists()]


# ---- What is planted ------------------------------------------------------------------------


def faults_of(model: Path, count: int) -> list[Planted]:
    """None first, then each size in each of ``count`` operators."""
    graph = read_contents(read_model(model)).main
    found = [Planted(model, None, "", "float32", "none")]
    for node in spread([node for node in graph.nodes if can_be_spoiled(graph, node)], count):
        output = graph.tensors[node.outputs[0]]
        found += [Planted(model, node.index, output.name, output.dtype, size) for size in SIZES]
    return found


def can_be_spoiled(graph: Graph, node: Operation) -> bool:
    """Whether the faulty delegate takes it over, and knows it by the name of what it gives."""
    if not node.outputs or node.operator in _RUNS_GRAPHS or all(is_constant(graph, index) for index in node.inputs):
        return False
    output = graph.tensors[node.outputs[0]]
    alike = [other for other in graph.tensors if other.name == output.name]
    return bool(output.name) and len(alike) == 1 and output.dtype in SPOILED_TYPES


def is_constant(graph: Graph, index: int) -> bool:
    """Whether a tensor is a constant of the model, or left out."""
    tensor = graph.tensor(index)
    return tensor is None or tensor.constant is not None


def spread(nodes: Sequence[Operation], count: int) -> list[Operation]:
    """So many of them, the first and the last among them, the others evenly between."""
    if not nodes:
        return []
    places = np.linspace(0, len(nodes) - 1, count).round().astype(int).tolist()
    return [nodes[place] for place in sorted(set(places))]


def delegate_options(planted: Planted) -> str:
    """What the faulty delegate is told."""
    if planted.operator is None:
        return "tensor:nothing;fault:none"
    size = SIZES[planted.size]
    amount = size.floats if planted.dtype == "float32" else size.steps
    name = planted.tensor.replace('"', '""')
    return f'tensor:"{name}";fault:step;amount:{amount:g};every:{size.every};stride:{size.stride}'


# ---- What is answered -----------------------------------------------------------------------


def command_line(planted: Planted, delegate: Path, options: Sequence[str], result: Path) -> list[str]:
    """The command that is asked."""
    return [
        sys.executable, "-m", "evaltools.cli.main", "locate", str(planted.model), "--use_xnnpack=false",
        f"--external_delegate_path={delegate}", f"--external_delegate_options={delegate_options(planted)}",
        f"--output_file_path={result}", *options,
    ]  # fmt: skip


def read_answer(result: Path) -> Answer:
    """What stands in the command's JSON file."""
    configuration, *operators = json.loads(result.read_text())["rows"]
    (verdict,) = configuration["verdicts"]
    at_fault = verdict["output"].split(", ")
    return Answer(verdict["kind"], tuple(row["counts"]["index"] for row in operators if row["name"] in at_fault))


def answer_of(planted: Planted, delegate: Path, options: Sequence[str], limit_s: float) -> Answer | None:
    """What the command answers; None where it fails, takes too long or writes no result."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        started = time.perf_counter()
        try:
            command = command_line(planted, delegate, options, result)
            subprocess.run(command, check=False, capture_output=True, timeout=limit_s)
        except subprocess.TimeoutExpired:
            return None
        if not result.exists():
            return None
        found = read_answer(result)
        return Answer(found.kind, found.operators, time.perf_counter() - started)


def answered(
    entries: Sequence[Planted], ask: Ask, at_once: int, told: Callable[[Planted, Answer | None], None] | None
) -> list[Answer | None]:
    """The answer to each, told as soon as it is there."""
    found = []
    with ThreadPoolExecutor(at_once) as pool:
        for planted, answer in zip(entries, pool.map(ask, entries), strict=True):
            found.append(answer)
            if told is not None:
                told(planted, answer)
    return found


def judged(planted: Planted, answer: Answer | None) -> str:
    """How an answer is counted: right, wrong, missed, or no answer."""
    if answer is None:
        return "no answer"
    if planted.operator is None:
        return "wrong" if answer.operators else "right"
    if not answer.operators:
        return "missed"
    return "right" if answer.operators == (planted.operator,) else "wrong"


# ---- Tables ---------------------------------------------------------------------------------


def print_answer(planted: Planted, answer: Answer | None) -> None:
    """A line: what was planted, and what was named."""
    named = "no answer" if answer is None else f"{answer.kind} {list(answer.operators)}, {answer.seconds:.1f} s"
    where = "no fault" if planted.operator is None else f"operator {planted.operator}, {planted.size}"
    print(f"{planted.model.stem}: {where}: {judged(planted, answer)}: {named}", flush=True)


def print_tables(entries: Sequence[Planted], answers: Sequence[Answer | None]) -> None:
    """A row for each size over all models, then one for each model over all sizes."""
    pairs = list(zip(entries, answers, strict=True))
    print_table("fault", ("none", *SIZES), pairs, lambda planted: planted.size)
    print()
    models = list(dict.fromkeys(planted.model.stem for planted in entries))
    print_table("model", models, pairs, lambda planted: planted.model.stem)


def print_table(
    title: str, rows: Iterable[str], pairs: Sequence[tuple[Planted, Answer | None]], row_of: Callable[[Planted], str]
) -> None:
    """What was planted and named, and what a command took."""
    print(f"{title:44} planted  named right  named wrong  missed  no answer  seconds")
    for row in rows:
        own = [(planted, answer) for planted, answer in pairs if row_of(planted) == row]
        counts = Counter(judged(planted, answer) for planted, answer in own)
        taken = [answer.seconds for _, answer in own if answer is not None]
        print(
            f"{row:44} {len(own):7}  {counts['right']:11}  {counts['wrong']:11}  {counts['missed']:6}  "
            f"{counts['no answer']:9}  {median(taken) if taken else float('nan'):7.1f}"
        )
