"""Which operators a delegate computes wrongly, and whether ``evaltools inspect`` names them, by random models of one.

``python -m benchmarks operators [--configuration="use_gpu=true ..."] [--models=600] [--seed=1]``

Shapes, types, windows, strides, paddings and constants are drawn; the reference is the runtime's builtin kernels. An
answer is wrong that is more than a thousandth of the largest value, or 2 steps, away. Named are models in which one of
:data:`~evaltools.model.gpu_faults.GPU_FAULTS` is. Of each operator the models are counted; those that are right though
named, or wrong and not named, are printed first.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.errors import EvaltoolsError
from evaltools.model import ModelFile, read_model
from evaltools.model.contents import read_contents
from evaltools.model.gpu_faults import GPU_FAULTS
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from evaltools.runtime import open_session
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.registry import Open
from evaltools.runtime.session import Array
from tests.tflite_writer import Graph, Quantization

PARAMETERS: Final = (
    Parameter(
        "configuration",
        "Flags of the configuration to look at.",
        default="use_gpu=true gpu_precision_loss_allowed=false",
    ),
    Parameter("models", "Models in all.", default=600),
    Parameter("seed", "Seed of what is drawn.", default=1),
)
REFERENCE: Final = Configuration("reference", kernels="builtin")
ELEMENTWISE: Final = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM")
OUTCOMES: Final = ("right, not named", "right, named", "wrong, named", "wrong, not named", "refused")
UNEXPECTED: Final = ("right, named", "wrong, not named")
SAME, VALID = 0, 1
_STEPS: Final = 2
_SHARE: Final = 1e-3
_QUANTA: Final = {"input": Quantization(1 / 32, 3), "weights": Quantization(1 / 64, 0), "given": Quantization(1 / 4, 5)}
_BIAS: Final = Quantization(1 / 32 / 64, 0)


class Drawn(Struct, frozen=True):
    """A model of one operator: which, what was drawn in words, the file's bytes, and what it is fed."""

    operator: str
    words: str
    content: bytes
    inputs: list[Array]


class Draw:
    """Draws models. ``graph`` is that of the model that is being made."""

    def __init__(self, seed: int) -> None:
        self.random: Final = np.random.default_rng(seed)
        self.graph = Graph()

    def one_of(self, *choices: Any) -> Any:
        """One of the choices, each as likely."""
        return choices[int(self.random.integers(len(choices)))]

    def numbers(self, shape: Any, dtype: str) -> Array:
        """Normal floats from 0.1 away from 0, whole numbers of the middle of the range."""
        if dtype == "float32":
            values = self.random.normal(size=shape)
            return np.asarray(values + 0.1 * np.sign(values), np.float32)
        return np.asarray(self.random.integers(1, 100, shape), dtype)

    def tensor(self, name: str, shape: Any, dtype: str, quantized_as: str = "") -> int:
        """A tensor that is fed or made."""
        return self.graph.tensor(name, shape, dtype, quantization=_quantization(dtype, quantized_as or name))

    def constant(self, name: str, values: Array) -> int:
        """A constant."""
        return self.graph.constant(name, values, _quantization(values.dtype.name, name))

    def weights(self, shape: Any, outputs: int, dtype: str) -> list[int]:
        """Weights and biases."""
        if dtype == "float32":
            bias = self.graph.constant("bias", self.numbers((outputs,), dtype))
        else:
            values = np.asarray(self.random.integers(-500, 500, outputs), np.int32)
            bias = self.graph.constant("bias", values, _BIAS)
        return [self.constant("weights", self.numbers(shape, dtype)), bias]

    def of(
        self, operator: str, words: str, operands: list[int], fed: Mapping[int, Array], made: int, **fields: Any
    ) -> Drawn:
        """The model of an operator with such operands; ``options`` among the fields is the name of its options."""
        made = self.graph.node(operator, operands, made, fields.pop("options"), **fields)
        content = self.graph.to_bytes(list(fed), [made])
        self.graph = Graph()
        return Drawn(operator, words, content, list(fed.values()))


def _quantization(dtype: str, name: str) -> Quantization | None:
    return _QUANTA.get(name, _QUANTA["input"]) if dtype == "int8" else None


def two_operands(draw: Draw) -> Drawn:
    """An operator of a tensor and a constant, or another tensor, of as many dimensions or fewer."""
    operator = draw.one_of(*ELEMENTWISE)
    dtype = "float32" if operator == "DIV" else draw.one_of("float32", "float32", "int8", "int32")
    shape = [draw.one_of(1, 2, 3, 4, 5, 8) for _ in range(draw.one_of(1, 2, 3, 4))]
    shape[0] = draw.one_of(1, shape[0])
    other = [size if draw.one_of(True, False) else 1 for size in shape][draw.one_of(0, 0, len(shape) - 1) :]
    other = draw.one_of(shape, other, [1])
    values = draw.numbers(other, dtype)
    first = draw.tensor("input", shape, dtype)
    fed = {first: draw.numbers(shape, dtype)}
    kind = draw.one_of("constant", "tensor")
    second = draw.constant("constant", values) if kind == "constant" else draw.tensor("other", other, dtype)
    if kind == "tensor":
        fed[second] = values
    turned = draw.one_of(True, False)
    operands = [second, first] if turned else [first, second]
    kept = "input" if operator in ("MAXIMUM", "MINIMUM") else "given"
    made = draw.tensor("given", np.broadcast_shapes(tuple(shape), tuple(other)), dtype, kept)
    options = "MaximumMinimumOptions" if operator in ("MAXIMUM", "MINIMUM") else f"{operator.title()}Options"
    words = f"{dtype} {shape} and {kind} {other}{', which comes first' if turned else ''}"
    return draw.of(operator, words, operands, fed, made, options=options)


def window(draw: Draw) -> Drawn:
    """CONV_2D or DEPTHWISE_CONV_2D."""
    operator, dtype = draw.one_of("CONV_2D", "DEPTHWISE_CONV_2D"), draw.one_of("float32", "int8")
    size, channels = [draw.one_of(1, 2, 3, 5, 8), draw.one_of(1, 2, 4, 7, 8)], draw.one_of(1, 2, 3, 4, 5, 8)
    kernel = [draw.one_of(1, 1, 2, 3), draw.one_of(1, 1, 2, 3)]
    strides = [draw.one_of(1, 1, 2, 3), draw.one_of(1, 1, 2)]
    padding = draw.one_of(SAME, VALID) if all(np.greater_equal(size, kernel)) else SAME
    out = _sizes(size, kernel, strides, padding)
    multiplier = draw.one_of(1, 1, 2)
    outputs = channels * multiplier if operator == "DEPTHWISE_CONV_2D" else draw.one_of(1, 3, 4, 8, 16)
    shape = (1, *kernel, outputs) if operator == "DEPTHWISE_CONV_2D" else (outputs, *kernel, channels)
    fed = draw.tensor("input", (1, *size, channels), dtype)
    operands = [fed, *draw.weights(shape, outputs, dtype)]
    fields = {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}
    fields |= {"DilationHFactor": 1, "DilationWFactor": 1}
    if operator == "DEPTHWISE_CONV_2D":
        fields["DepthMultiplier"] = multiplier
    options = "DepthwiseConv2DOptions" if operator == "DEPTHWISE_CONV_2D" else "Conv2DOptions"
    words = f"{dtype} {size}x{channels}, window {kernel}, strides {strides}, {_name(padding)}, {outputs} channels"
    made = draw.tensor("given", (1, *out, outputs), dtype)
    values = draw.numbers((1, *size, channels), dtype)
    return draw.of(operator, words, operands, {fed: values}, made, options=options, **fields)


def pool(draw: Draw) -> Drawn:
    """AVERAGE_POOL_2D or MAX_POOL_2D."""
    operator, dtype = draw.one_of("AVERAGE_POOL_2D", "MAX_POOL_2D"), draw.one_of("float32", "int8")
    size, channels = [draw.one_of(2, 3, 5, 8), draw.one_of(2, 4, 7)], draw.one_of(1, 3, 4, 5, 8)
    kernel, strides = [draw.one_of(1, 2, 3), draw.one_of(1, 2, 3)], [draw.one_of(1, 2, 3), draw.one_of(1, 2)]
    padding = draw.one_of(SAME, VALID) if all(np.greater_equal(size, kernel)) else SAME
    fed = draw.tensor("input", (1, *size, channels), dtype)
    made = draw.tensor("given", (1, *_sizes(size, kernel, strides, padding), channels), dtype, "input")
    fields = {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}
    fields |= {"FilterHeight": kernel[0], "FilterWidth": kernel[1]}
    words = f"{dtype} {size}x{channels}, window {kernel}, strides {strides}, {_name(padding)}"
    values = draw.numbers((1, *size, channels), dtype)
    return draw.of(operator, words, [fed], {fed: values}, made, options="Pool2DOptions", **fields)


def transposed(draw: Draw) -> Drawn:
    """TRANSPOSE_CONV."""
    dtype, kernel, stride = draw.one_of("float32", "int8"), draw.one_of(1, 2, 3, 4, 5), draw.one_of(1, 2, 3)
    size, channels, outputs = (
        [draw.one_of(1, 2, 3, 4, 7), draw.one_of(2, 4, 5)],
        draw.one_of(1, 3, 4),
        draw.one_of(1, 4, 5),
    )
    padding = draw.one_of(SAME, VALID) if kernel >= stride else SAME
    out = [(side - 1) * stride + kernel if padding == VALID else side * stride for side in size]
    shape = draw.graph.constant("shape", np.array((1, *out, outputs), np.int32))
    weights = draw.constant("weights", draw.numbers((outputs, kernel, kernel, channels), dtype))
    fed = draw.tensor("input", (1, *size, channels), dtype)
    made = draw.tensor("given", (1, *out, outputs), dtype)
    fields = {"Padding": padding, "StrideH": stride, "StrideW": stride}
    words = f"{dtype} {size}x{channels}, window {kernel}, stride {stride}, {_name(padding)}, to {out}x{outputs}"
    values = {fed: draw.numbers((1, *size, channels), dtype)}
    return draw.of(
        "TRANSPOSE_CONV", words, [shape, weights, fed], values, made, options="TransposeConvOptions", **fields
    )


def dense(draw: Draw) -> Drawn:
    """FULLY_CONNECTED, which flattens, keeps its dimensions, or makes rows."""
    dtype = draw.one_of("float32", "int8")
    shape = [1, *(draw.one_of(1, 1, 2, 3, 4) for _ in range(draw.one_of(0, 1, 2))), draw.one_of(3, 4, 5, 8)]
    columns, outputs = draw.one_of(shape[-1], int(np.prod(shape))), draw.one_of(1, 3, 4, 8, 10)
    keeps = bool(columns == shape[-1] and draw.one_of(True, False))
    rows = int(np.prod(shape)) // columns
    fed = draw.tensor("input", shape, dtype)
    operands = [fed, *draw.weights((outputs, columns), outputs, dtype)]
    made = draw.tensor("given", [*shape[:-1], outputs] if keeps else (rows, outputs), dtype)
    words = f"{dtype} {shape} by {columns} to {outputs}{', dimensions kept' if keeps else ''}"
    fields = {"options": "FullyConnectedOptions", "KeepNumDims": keeps}
    return draw.of("FULLY_CONNECTED", words, operands, {fed: draw.numbers(shape, dtype)}, made, **fields)


FAMILIES: Final[tuple[Callable[[Draw], Drawn], ...]] = (two_operands, window, pool, transposed, dense)


def main(arguments: list[str]) -> int:
    """Draw, run, print."""
    flags = parse_flags("operators", "", "", {"flags": PARAMETERS}, arguments)
    tested = Configuration.from_text("tested", flags.text("configuration"))
    draw = Draw(flags.number("seed"))
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(flags.number("models")):
            drawn = FAMILIES[number % len(FAMILIES)](draw)
            path = Path(folder, f"{number}.tflite")
            path.write_bytes(drawn.content)
            model = read_model(path)
            outcome = look(model, tested, drawn)
            if outcome != "refused":
                outcome += ", named" if names_a_fault(model) else ", not named"
            if outcome in UNEXPECTED:
                print(f"{outcome}: {drawn.operator} {drawn.words}", flush=True)
            counts.setdefault(drawn.operator, Counter())[outcome] += 1
    print(f"| operator | {' | '.join(OUTCOMES)} |\n|---{'|---' * len(OUTCOMES)}|")
    for operator, counted in sorted(counts.items()):
        print(f"| {operator} | {' | '.join(str(counted[column]) for column in OUTCOMES)} |")
    return 0


def look(model: ModelFile, tested: Configuration, drawn: Drawn) -> str:
    """``right``, ``wrong`` or ``refused``."""
    expected = output_of(model, REFERENCE, drawn, open_session)
    try:
        given = output_of(model, tested, drawn, open_isolated)
    except EvaltoolsError:
        return "refused"
    return "right" if is_right(expected, given) else "wrong"


def is_right(expected: Array, given: Array) -> bool:
    """Whether all values are near enough.

    >>> is_right(np.array([1, 4], np.int8), np.array([3, 4], np.int8)), is_right(np.array([1.0]), np.array([1.002]))
    (True, False)
    """
    limit = _STEPS if expected.dtype.kind in "iu" else _SHARE * float(np.abs(expected).max(initial=0))
    error = np.abs(given.astype(np.float64) - expected.astype(np.float64))
    return given.shape == expected.shape and bool(np.all(error <= limit))


def output_of(model: ModelFile, configuration: Configuration, drawn: Drawn, opener: Open) -> Array:
    """The only output."""
    with closing(opener(model, configuration)) as session:
        return session.run(drawn.inputs).outputs[0]


def names_a_fault(model: ModelFile) -> bool:
    """Whether inspect would name a fault of GPUs in it."""
    graph = read_contents(model).main
    return any(fault.is_in(graph, node) for fault in GPU_FAULTS for node in graph.nodes)


def _sizes(size: list[int], kernel: list[int], strides: list[int], padding: int) -> list[int]:
    rest = [0, 0] if padding == SAME else [reach - 1 for reach in kernel]
    return [-(-(side - less) // stride) for side, less, stride in zip(size, rest, strides, strict=True)]


def _name(padding: int) -> str:
    return "SAME" if padding == SAME else "VALID"
