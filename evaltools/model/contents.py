"""What is in a ``.tflite`` file: graphs, tensors, nodes, constants, signatures, metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import ModelError
from evaltools.model.flatbuffer import DamagedFlatbuffer, Table
from evaltools.model.graph import operator_name, read_nodes
from evaltools.model.model_file import TENSOR_TYPES, ModelFile
from evaltools.model.signature import signature_keys

_FREE: Final = -1
_STEPS: Final = ("int4", "int8", "uint8", "int16", "uint16", "int32")


@dataclass(frozen=True)
class GraphTensor:
    """One tensor of a graph.

    ``shape_signature`` has -1 where the size may change. ``scales`` and ``zero_points`` are the quantisation: one each
    for the whole tensor, one per channel along ``axis``, or none. ``constant`` is the value in the file, as bytes.
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
        zero = self.zero_points[0] if self.zero_points else 0
        return f"real = {self.scales[0]:.6g} * " + (f"(q {'-' if zero > 0 else '+'} {abs(zero)})" if zero else "q")

    @property
    def step(self) -> float:
        """What one step of a quantised tensor is worth; 0 for one that holds its numbers themselves, or per channel."""
        is_quantized = self.dtype in _STEPS and len(self.scales) == 1
        return self.scales[0] if is_quantized else 0.0

    def real(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """The real numbers that values of the tensor stand for.

        >>> GraphTensor(0, "x", "int8", (1,), (1,), (0.5,), (1,)).real(np.array([3], np.int8))
        array([1.], dtype=float32)
        """
        if not self.step:
            return values
        zero_point = self.zero_points[0] if self.zero_points else 0
        numbers: npt.NDArray[np.generic] = ((values.astype(np.float64) - zero_point) * self.step).astype(np.float32)
        return numbers

    def values(self, dtype: str) -> npt.NDArray[np.generic]:
        """The constant as a flat array of ``dtype``, as many items as the file has; empty for what is computed."""
        content = self.constant if self.constant is not None else memoryview(b"")
        item = np.dtype(dtype).newbyteorder("<")
        return np.frombuffer(content, item, len(content) // item.itemsize)


@dataclass(frozen=True)
class Operation:
    """One node of a graph: its operator by name, its tensors by index (-1: left out), its options as stored."""

    index: int
    operator: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None = field(default=None, compare=False, repr=False)


class Graph(Struct, frozen=True):
    """One graph of a model; the first is the main one."""

    tensors: tuple[GraphTensor, ...]
    nodes: tuple[Operation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str = ""

    def tensor(self, index: int) -> GraphTensor | None:
        """The tensor of that index, None for an input that is left out."""
        return self.tensors[index] if 0 <= index < len(self.tensors) else None

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


def read_contents(model: ModelFile) -> ModelContents:
    """What the file holds; raises :class:`~evaltools.errors.ModelError` where it was damaged since it was checked."""
    try:
        return _read(memoryview(model.read()))
    except DamagedFlatbuffer as error:
        raise ModelError(f"{model.path} cannot be read any more: {error}; was it changed meanwhile?") from error


def _read(content: memoryview) -> ModelContents:
    root = Table.root(content)
    constants = _constants(content, root.tables(4))
    graphs = tuple(_graph(root, subgraph, constants) for subgraph in root.tables(2))
    used = {tensor.integer(2, "I") for subgraph in root.tables(2) for tensor in subgraph.tables(0)}
    return ModelContents(
        graphs=graphs,
        signatures=signature_keys(root),
        metadata=tuple(entry.text(0) for entry in root.tables(6)),
        description=root.text(3),
        constant_bytes=sum(len(constants[index]) for index in used if index in constants),
    )


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


def _graph(root: Table, subgraph: Table, constants: Mapping[int, memoryview]) -> Graph:
    return Graph(
        tensors=tuple(_tensor(index, tensor, constants) for index, tensor in enumerate(subgraph.tables(0))),
        nodes=tuple(
            Operation(index, operator_name(node.code, node.custom), node.inputs, node.outputs, node.options)
            for index, node in enumerate(read_nodes(root, subgraph))
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
    )
