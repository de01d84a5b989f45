"""What is in a ``.tflite`` file: graphs, tensors, nodes, constants, signatures, metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import ModelError
from evaltools.model.flatbuffer import DamagedFlatbuffer, Table
from evaltools.model.metadata import signature_keys

TENSOR_TYPES: Final = (
    "float32", "float16", "int32", "uint8", "int64", "string", "bool", "int16", "complex64", "int8", "float64",
    "complex128", "uint64", "resource", "variant", "uint32", "uint16", "int4", "bfloat16",
)  # fmt: skip
"""Names of the schema's ``TensorType`` in its order."""
OPERATORS: Final = (
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE",
    "EMBEDDING_LOOKUP", "FLOOR", "FULLY_CONNECTED", "HASHTABLE_LOOKUP", "L2_NORMALIZATION", "L2_POOL_2D",
    "LOCAL_RESPONSE_NORMALIZATION", "LOGISTIC", "LSH_PROJECTION", "LSTM", "MAX_POOL_2D", "MUL", "RELU",
    "RELU_N1_TO_1", "RELU6", "RESHAPE", "RESIZE_BILINEAR", "RNN", "SOFTMAX", "SPACE_TO_DEPTH", "SVDF", "TANH",
    "CONCAT_EMBEDDINGS", "SKIP_GRAM", "CALL", "CUSTOM", "EMBEDDING_LOOKUP_SPARSE", "PAD",
    "UNIDIRECTIONAL_SEQUENCE_RNN", "GATHER", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "TRANSPOSE", "MEAN", "SUB",
    "DIV", "SQUEEZE", "UNIDIRECTIONAL_SEQUENCE_LSTM", "STRIDED_SLICE", "BIDIRECTIONAL_SEQUENCE_RNN", "EXP",
    "TOPK_V2", "SPLIT", "LOG_SOFTMAX", "DELEGATE", "BIDIRECTIONAL_SEQUENCE_LSTM", "CAST", "PRELU", "MAXIMUM",
    "ARG_MAX", "MINIMUM", "LESS", "NEG", "PADV2", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "SELECT", "SLICE",
    "SIN", "TRANSPOSE_CONV", "SPARSE_TO_DENSE", "TILE", "EXPAND_DIMS", "EQUAL", "NOT_EQUAL", "LOG", "SUM", "SQRT",
    "RSQRT", "SHAPE", "POW", "ARG_MIN", "FAKE_QUANT", "REDUCE_PROD", "REDUCE_MAX", "PACK", "LOGICAL_OR", "ONE_HOT",
    "LOGICAL_AND", "LOGICAL_NOT", "UNPACK", "REDUCE_MIN", "FLOOR_DIV", "REDUCE_ANY", "SQUARE", "ZEROS_LIKE",
    "FILL", "FLOOR_MOD", "RANGE", "RESIZE_NEAREST_NEIGHBOR", "LEAKY_RELU", "SQUARED_DIFFERENCE", "MIRROR_PAD",
    "ABS", "SPLIT_V", "UNIQUE", "CEIL", "REVERSE_V2", "ADD_N", "GATHER_ND", "COS", "WHERE", "RANK", "ELU",
    "REVERSE_SEQUENCE", "MATRIX_DIAG", "QUANTIZE", "MATRIX_SET_DIAG", "ROUND", "HARD_SWISH", "IF", "WHILE",
    "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND", "SELECT_V2", "DENSIFY", "SEGMENT_SUM",
    "BATCH_MATMUL", "PLACEHOLDER_FOR_GREATER_OP_CODES", "CUMSUM", "CALL_ONCE", "BROADCAST_TO", "RFFT2D", "CONV_3D",
    "IMAG", "REAL", "COMPLEX_ABS", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
    "REDUCE_ALL", "CONV_3D_TRANSPOSE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "BROADCAST_ARGS",
    "RANDOM_STANDARD_NORMAL", "BUCKETIZE", "RANDOM_UNIFORM", "MULTINOMIAL", "GELU", "DYNAMIC_UPDATE_SLICE",
    "RELU_0_TO_1", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_SUM", "ATAN2",
    "UNSORTED_SEGMENT_MIN", "SIGN", "BITCAST", "BITWISE_XOR", "RIGHT_SHIFT", "STABLEHLO_LOGISTIC", "STABLEHLO_ADD",
    "STABLEHLO_DIVIDE", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_RESHAPE", "STABLEHLO_CLAMP",
    "STABLEHLO_CONCATENATE", "STABLEHLO_BROADCAST_IN_DIM", "STABLEHLO_CONVOLUTION", "STABLEHLO_SLICE",
    "STABLEHLO_CUSTOM_CALL", "STABLEHLO_REDUCE", "STABLEHLO_ABS", "STABLEHLO_AND", "STABLEHLO_COSINE",
    "STABLEHLO_EXPONENTIAL", "STABLEHLO_FLOOR", "STABLEHLO_LOG", "STABLEHLO_MINIMUM", "STABLEHLO_NEGATE",
    "STABLEHLO_OR", "STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_RSQRT", "STABLEHLO_SELECT",
    "STABLEHLO_SUBTRACT", "STABLEHLO_TANH", "STABLEHLO_SCATTER", "STABLEHLO_COMPARE", "STABLEHLO_CONVERT",
    "STABLEHLO_DYNAMIC_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE", "STABLEHLO_PAD", "STABLEHLO_IOTA",
    "STABLEHLO_DOT_GENERAL", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SORT", "STABLEHLO_WHILE", "STABLEHLO_GATHER",
    "STABLEHLO_TRANSPOSE", "DILATE", "STABLEHLO_RNG_BIT_GENERATOR", "REDUCE_WINDOW", "STABLEHLO_COMPOSITE",
    "STABLEHLO_SHIFT_LEFT", "STABLEHLO_CBRT",
)  # fmt: skip
"""Names of the schema's ``BuiltinOperator`` in its order; ``CUSTOM`` stands for operators with a name of their own."""
_FREE: Final = -1
_STEPS: Final = ("int4", "int8", "uint8", "int16", "uint16", "int32")
_WHOLE: Final = (*_STEPS, "int64")
_FLOATS: Final = ("float32", "float16")
_STORED_OTHERWISE: Final = ("DEQUANTIZE", "DENSIFY")
"""Operators that give a constant in another form; one may follow the other."""


def operator_name(code: int, custom: str) -> str:
    """The name of an operator, that of a custom one as the file has it.

    >>> operator_name(0, ""), operator_name(32, "TFLite_Detection_PostProcess"), operator_name(9999, "")
    ('ADD', 'TFLite_Detection_PostProcess', 'operator 9999')
    """
    if custom:
        return custom
    return OPERATORS[code] if 0 <= code < len(OPERATORS) else f"operator {code}"


def _in_4_bits(stored: npt.NDArray[np.int16]) -> npt.NDArray[np.generic]:
    """Whole numbers of 4 bits with a sign, two in each byte, the first in its lower half."""
    halves = np.stack([stored & 15, stored >> 4], axis=-1).ravel()
    found: npt.NDArray[np.generic] = (halves ^ 8) - 8
    return found


@dataclass(frozen=True)
class GraphTensor:
    """One tensor of a graph.

    ``shape_signature`` has -1 where the size may change. ``scales`` and ``zero_points`` are the quantisation: one each
    for the whole tensor, one per channel along ``axis``, or none. ``constant`` is the value in the file, as bytes. A
    variable keeps its value from one run to the next.
    """

    index: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int = 0
    constant: memoryview | None = field(default=None, repr=False, compare=False)
    is_variable: bool = False

    @property
    def is_dynamic(self) -> bool:
        """Whether the file leaves a size open."""
        return _FREE in self.shape_signature

    @property
    def quantization(self) -> str:
        """The quantisation in words, empty where there is none.

        >>> GraphTensor(0, "x", "int8", (2,), (2,), (0.5,), (-3,)).quantization
        'real = 0.5 * (q + 3)'
        """
        if not any(self.scales):
            return ""
        if len(self.scales) > 1:
            return f"{len(self.scales)} scales along dimension {self.axis}"
        zero = self.zero_point
        return f"real = {self.scales[0]:.6g} * " + (f"(q {'-' if zero > 0 else '+'} {abs(zero)})" if zero else "q")

    @property
    def step(self) -> float:
        """What one step of a quantised tensor is worth; 0 for one that holds its numbers themselves, or per channel."""
        is_quantized = self.dtype in _STEPS and len(self.scales) == 1
        return self.scales[0] if is_quantized else 0.0

    @property
    def zero_point(self) -> int:
        """The whole number that stands for 0, of the first channel where there are several."""
        return self.zero_points[0] if self.zero_points else 0

    @property
    def is_quantized(self) -> bool:
        """Whether whole numbers stand for real ones, by one scale or by one per channel."""
        return self.dtype in _WHOLE and any(self.scales)

    def real(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """The real numbers that values of the tensor stand for.

        >>> GraphTensor(0, "x", "int8", (1,), (1,), (0.5,), (1,)).real(np.array([3], np.int8))
        array([1.], dtype=float32)
        >>> GraphTensor(0, "x", "int8", (1, 2), (1, 2), (0.5, 2.0), (0, 0), axis=1).real(np.array([[3, 3]], np.int8))
        array([[1.5, 6. ]], dtype=float32)
        """
        if not self.is_quantized:
            return values
        scales, zero_points = self._by_channel(values.ndim)
        numbers: npt.NDArray[np.generic] = ((values.astype(np.float64) - zero_points) * scales).astype(np.float32)
        return numbers

    def stored(self, numbers: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Real numbers as the tensor holds them: rounded to its scale, cut to the range of its type.

        >>> GraphTensor(0, "x", "int8", (2,), (2,), (0.5,), (1,)).stored(np.array([0.8, 900], np.float32))
        array([  3, 127], dtype=int8)
        """
        dtype = np.dtype(self.dtype)
        found = numbers.astype(np.float64)
        if self.is_quantized:
            scales, zero_points = self._by_channel(numbers.ndim)
            found = found / scales + zero_points
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            found = np.clip(np.rint(found), limits.min, limits.max)
        values: npt.NDArray[np.generic] = found.astype(dtype)
        return values

    def steps_between(self, numbers: npt.NDArray[np.generic], others: npt.NDArray[np.generic]) -> float:
        """The root mean square of differences of real numbers, each in steps of its scale; 0 without scales.

        >>> GraphTensor(0, "x", "int8", (2,), (2,), (0.5,)).steps_between(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
        2.0
        """
        if not self.is_quantized:
            return 0.0
        scales = np.where(self._by_channel(numbers.ndim)[0] > 0, self._by_channel(numbers.ndim)[0], np.inf)
        steps = (numbers.astype(np.float64) - others.astype(np.float64)) / scales
        return float(np.sqrt(np.mean(np.square(steps))))

    def _by_channel(self, rank: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Scales and zero points in a shape that fits values of that rank."""
        scales = np.array(self.scales, np.float64)
        zero_points = np.zeros(len(scales)) + np.array(self.zero_points or 0, np.float64)
        shape = [1] * rank
        if len(scales) > 1:
            shape[self.axis] = len(scales)
        return scales.reshape(shape), zero_points.reshape(shape)

    def real_constant(self) -> npt.NDArray[np.generic] | None:
        """The real numbers of a constant in its shape; None for others, and where the file stores it in another way."""
        if self.constant is None or self.dtype not in _WHOLE + _FLOATS:
            return None
        found = self.values("uint8" if self.dtype == "int4" else self.dtype)
        if self.dtype == "int4":
            found = _in_4_bits(found.astype(np.int16))[: int(np.prod(self.shape))]
        if found.size != int(np.prod(self.shape)):
            return None
        return self.real(found.reshape(self.shape))

    def values(self, dtype: str) -> npt.NDArray[np.generic]:
        """The constant as a flat array of ``dtype``, as many items as the file has; empty for what is computed."""
        content = self.constant if self.constant is not None else memoryview(b"")
        item = np.dtype(dtype).newbyteorder("<")
        return np.frombuffer(content, item, len(content) // item.itemsize)


@dataclass(frozen=True)
class Operation:
    """One node of a graph: its operator by name, its tensors by index (-1: left out), its options as stored.

    ``custom_options`` are those of a custom operator, in a form of its own.
    """

    index: int
    operator: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None = field(default=None, compare=False, repr=False)
    custom_options: bytes = field(default=b"", compare=False, repr=False)


class Graph(Struct, frozen=True, dict=True):
    """One graph of a model; the first is the main one."""

    tensors: tuple[GraphTensor, ...]
    nodes: tuple[Operation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str = ""

    def tensor(self, index: int) -> GraphTensor | None:
        """The tensor of that index, None for an input that is left out."""
        return self.tensors[index] if 0 <= index < len(self.tensors) else None

    @cached_property
    def makers(self) -> Mapping[int, int]:
        """Which node makes a tensor, by the numbers of both."""
        return {tensor: node.index for node in self.nodes for tensor in node.outputs}

    def constant_behind(self, index: int) -> GraphTensor | None:
        """The constant that a tensor is, or is made of by DEQUANTIZE or DENSIFY; None for what is computed."""
        for _ in _STORED_OTHERWISE:
            maker = self.makers.get(index)
            if maker is not None and self.nodes[maker].operator in _STORED_OTHERWISE:
                index = self.nodes[maker].inputs[0]
        tensor = self.tensor(index)
        return tensor if tensor is not None and tensor.constant is not None else None

    def types_of(self, node: Operation) -> str:
        """The types that a node computes with: those of its inputs, of its constants in brackets, and of its outputs.

        >>> fed = GraphTensor(0, "", "float32", (), ())
        >>> weights = GraphTensor(1, "", "int8", (), (), constant=memoryview(b"1"))
        >>> Graph((fed, weights), (), (), ()).types_of(Operation(0, "CONV_2D", (0, 1), (0,)))
        'float32 [int8] -> float32'
        """
        fed = [tensor for tensor in map(self.tensor, node.inputs) if tensor is not None]
        given = [tensor for tensor in map(self.tensor, node.outputs) if tensor is not None]
        parts = [", ".join(dict.fromkeys(tensor.dtype for tensor in fed if tensor.constant is None))]
        constants = ", ".join(dict.fromkeys(tensor.dtype for tensor in fed if tensor.constant is not None))
        parts += [f"[{constants}]"] if constants else []
        parts += ["->", ", ".join(dict.fromkeys(tensor.dtype for tensor in given))]
        return " ".join(part for part in parts if part)


class ModelContents(Struct, frozen=True):
    """All graphs of a model, the keys of its signatures, the names of its metadata, the bytes of its constants."""

    graphs: tuple[Graph, ...]
    signatures: tuple[str, ...]
    metadata: tuple[str, ...]
    description: str
    constant_bytes: int

    @property
    def main(self) -> Graph:
        """The graph that the interpreters run."""
        return self.graphs[0]

    @property
    def tensor_count(self) -> int:
        """Tensors of all graphs."""
        return sum(len(graph.tensors) for graph in self.graphs)


def operator_counts(graphs: Sequence[Graph]) -> dict[str, int]:
    """How often each operator stands in the graphs, most frequent first.

    >>> operator_counts([Graph((), (Operation(0, "ADD", (), ()),) * 2, (), ())])
    {'ADD': 2}
    """
    return dict(Counter(node.operator for graph in graphs for node in graph.nodes).most_common())


class _File(Protocol):
    @property
    def path(self) -> Path: ...

    def read(self) -> bytes: ...


def read_contents(model: _File) -> ModelContents:
    """What the file holds; raises :class:`~evaltools.errors.ModelError` where it was damaged since it was checked."""
    try:
        return _read(memoryview(model.read()))
    except DamagedFlatbuffer as error:
        raise ModelError(f"{model.path} cannot be read any more: {error}; was it changed meanwhile?") from error


def _read(content: memoryview) -> ModelContents:
    root = Table.root(content)
    graphs = read_graphs(content)
    constants = {id(each.constant): each.constant for graph in graphs for each in graph.tensors if each.constant}
    return ModelContents(
        graphs=graphs,
        signatures=signature_keys(root),
        metadata=tuple(entry.text(0) for entry in root.tables(6)),
        description=root.text(3),
        constant_bytes=sum(map(len, constants.values())),
    )


def read_graphs(content: memoryview) -> tuple[Graph, ...]:
    """The graphs of a model; raises :class:`DamagedFlatbuffer`."""
    root = Table.root(content)
    constants = _constants(content, root.tables(4))
    names = [operator_name(max(code.integer(0, "b"), code.integer(3, "i")), code.text(1)) for code in root.tables(1)]
    return tuple(_graph(subgraph, names, constants) for subgraph in root.tables(2))


def _constants(content: memoryview, buffers: Sequence[Table]) -> dict[int, memoryview]:
    """The buffers that hold anything; large ones lie behind the FlatBuffer. Buffer 0 stands for none."""
    found = {}
    for index, buffer in enumerate(buffers):
        offset, size = buffer.integer(1, "Q"), buffer.integer(2, "Q")
        inside = buffer.numbers(0, "uint8")
        if index and offset > 1 and size:
            found[index] = content[offset : offset + size]
        elif index and len(inside):
            start = buffer.vector_start(0)
            found[index] = content[start : start + len(inside)]
    return found


def _graph(subgraph: Table, names: Sequence[str], constants: Mapping[int, memoryview]) -> Graph:
    return Graph(
        tensors=tuple(_tensor(index, tensor, constants) for index, tensor in enumerate(subgraph.tables(0))),
        nodes=tuple(
            Operation(
                index,
                names[node.integer(0, "I")],
                tuple(node.numbers(1, "int32").tolist()),
                tuple(node.numbers(2, "int32").tolist()),
                node.table(4),
                node.numbers(5, "uint8").tobytes(),
            )
            for index, node in enumerate(subgraph.tables(3))
        ),
        inputs=tuple(subgraph.numbers(1, "int32").tolist()),
        outputs=tuple(subgraph.numbers(2, "int32").tolist()),
        name=subgraph.text(4),
    )


def _tensor(index: int, tensor: Table, constants: Mapping[int, memoryview]) -> GraphTensor:
    kind = tensor.integer(1, "b")
    shape = tuple(tensor.numbers(0, "int32").tolist())
    quantization = tensor.table(4)
    return GraphTensor(
        index=index,
        name=tensor.text(3),
        dtype=TENSOR_TYPES[kind] if 0 <= kind < len(TENSOR_TYPES) else f"type {kind}",
        shape=shape,
        shape_signature=tuple(tensor.numbers(7, "int32").tolist()) or shape,
        scales=tuple(quantization.numbers(2, "float32").tolist()) if quantization else (),
        zero_points=tuple(quantization.numbers(3, "int64").tolist()) if quantization else (),
        axis=quantization.integer(6, "i") if quantization else 0,
        constant=constants.get(tensor.integer(2, "I")),
        is_variable=bool(tensor.integer(5, "B")),
    )
