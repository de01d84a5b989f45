"""What in a graph is known to be slow, refused or wrong on GPU delegates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from evaltools.model.contents import Graph, GraphTensor, Operation

DOCUMENT: Final = 'TensorFlow Lite, "GPU delegates for LiteRT"'
MESSAGES: Final = "messages of the native GPU delegate"
MEASURED: Final = (
    "measured with the WebGPU accelerator of ai-edge-litert 2.3.0 on an NVIDIA H200 and on a software GPU (llvmpipe)"
)
SLOW_OPERATORS: Final = ("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH")
_MANY_RESHAPES: Final = 4
_SLICE: Final = 4


@dataclass(frozen=True)
class GpuTrap:
    """Something to know before a GPU runs this graph: what it is, where it was ``found``, and who says so."""

    trap: str
    found: str
    source: str


def gpu_traps(graph: Graph) -> tuple[GpuTrap, ...]:
    """The traps in a graph; none found is no promise that there is none.

    Each has its source: a document, the native delegate's own messages, or a measurement, which
    ``tests/model/test_gpu_traps.py`` repeats where there is a GPU.

    >>> fed = GraphTensor(0, "x", "float32", (2, 8), (2, 8))
    >>> [trap.found for trap in gpu_traps(Graph((fed,), (), (0,), (0,)))]
    ["'x' [2,8]"]
    """
    finders = (_slow_operators, _reshapes, _channels, _batches, _free_sizes, _flattening, _strides, _swapped)
    return tuple(trap for finder in finders for trap in finder(graph))


def _slow_operators(graph: Graph) -> Iterator[GpuTrap]:
    found = _counts(graph.nodes, SLOW_OPERATORS)
    if found:
        yield GpuTrap("these operators only move data, and are slow or not supported", found, DOCUMENT)


def _reshapes(graph: Graph) -> Iterator[GpuTrap]:
    count = sum(node.operator == "RESHAPE" for node in graph.nodes)
    if count >= _MANY_RESHAPES:
        trap = "each RESHAPE may copy on a GPU; leave out those that the next operator does not need"
        yield GpuTrap(trap, f"RESHAPE x{count}, {100 * count / len(graph.nodes):.0f} % of the nodes", DOCUMENT)


def _channels(graph: Graph) -> Iterator[GpuTrap]:
    indices = dict.fromkeys([*graph.inputs, *(tensor for node in graph.nodes for tensor in node.outputs)])
    images = [tensor for tensor in map(graph.tensor, indices) if tensor is not None and _is_image(tensor)]
    uneven = [tensor for tensor in images if tensor.shape[3] % _SLICE]
    if uneven:
        held = sum(prod(tensor.shape) for tensor in images)
        padded = sum(prod(tensor.shape[:3]) * -(-tensor.shape[3] // _SLICE) * _SLICE for tensor in images)
        found = (
            f"{len(uneven)} of {len(images)} tensors of 4 dimensions, such as {_shown(uneven[0])}; padded, all of them "
            f"together take {padded / held:.2f} times the memory"
        )
        yield GpuTrap("channels are kept in slices of 4; other counts cost memory and time", found, DOCUMENT)


def _batches(graph: Graph) -> Iterator[GpuTrap]:
    fed = [tensor for tensor in map(graph.tensor, graph.inputs) if tensor is not None]
    found = [tensor for tensor in fed if len(tensor.shape) > 1 and tensor.shape[0] > 1]
    if found:
        yield GpuTrap("batch sizes other than 1 are refused for many operators", _some(found), MESSAGES)


def _free_sizes(graph: Graph) -> Iterator[GpuTrap]:
    found = [tensor for tensor in graph.tensors if tensor.is_dynamic]
    if found:
        yield GpuTrap("delegates for static sizes refuse graphs with free ones; fix the shapes", _some(found), MESSAGES)


def _flattening(graph: Graph) -> Iterator[GpuTrap]:
    found = [node for node in graph.nodes if node.operator == "FULLY_CONNECTED" and _flattens(graph, node)]
    if found:
        trap = "a FULLY_CONNECTED that flattens its input itself gives wrong values; put a RESHAPE before it"
        yield GpuTrap(trap, _numbered(found), MEASURED)


def _flattens(graph: Graph, node: Operation) -> bool:
    """Whether a FULLY_CONNECTED flattens its input, whose last dimension is not that of the weights.

    Measured with constants of float32 and of int8.
    """
    fed, weights = (graph.tensor(index) for index in (*node.inputs, -1, -1)[:2])
    if fed is None or weights is None or len(fed.shape) < 2 or len(weights.shape) != 2:
        return False
    is_measured = fed.dtype == weights.dtype in ("float32", "int8") and weights.constant is not None
    return is_measured and 0 < fed.shape[-1] != weights.shape[1]


def _strides(graph: Graph) -> Iterator[GpuTrap]:
    found = [node for node in graph.nodes if node.operator == "CONV_2D" and _strides_without_window(graph, node)]
    if found:
        trap = "a CONV_2D of int8 with a window of 1x1 ignores its strides; take the pixels before it (STRIDED_SLICE)"
        yield GpuTrap(trap, _numbered(found), MEASURED)


def _strides_without_window(graph: Graph, node: Operation) -> bool:
    """Whether a window of 1x1 leaves pixels out.

    float32 and uint8 were right, other windows, and DEPTHWISE_CONV_2D.
    """
    fed, weights = (graph.tensor(index) for index in (*node.inputs, -1, -1)[:2])
    made = graph.tensor(node.outputs[0]) if node.outputs else None
    if (
        fed is None
        or weights is None
        or made is None
        or not (_is_image(fed) and _is_image(weights) and _is_image(made))
    ):
        return False
    is_measured = fed.dtype == weights.dtype == "int8" and weights.constant is not None
    return is_measured and weights.shape[1:3] == (1, 1) and made.shape[1:3] != fed.shape[1:3]


def _swapped(graph: Graph) -> Iterator[GpuTrap]:
    found = [node for node in graph.nodes if node.operator == "SUB" and _subtracts_from_constant(graph, node)]
    if found:
        trap = "a SUB of int32 from a constant of several numbers subtracts the constant; negate (NEG) and ADD instead"
        yield GpuTrap(trap, _numbered(found), MEASURED)


def _subtracts_from_constant(graph: Graph, node: Operation) -> bool:
    """float32 and int8 were right, and a constant of a single number."""
    constant = graph.tensor((*node.inputs, -1)[0])
    if constant is None or constant.constant is None or constant.dtype != "int32":
        return False
    return prod(constant.shape) > 1


def _numbered(nodes: Sequence[Operation]) -> str:
    names = ", ".join(f"{node.operator} #{node.index}" for node in nodes[:3])
    return names + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")


def _is_image(tensor: GraphTensor) -> bool:
    return len(tensor.shape) == 4 and min(tensor.shape) > 0


def _counts(nodes: Sequence[Operation], operators: Sequence[str]) -> str:
    counts = {name: sum(node.operator == name for node in nodes) for name in operators}
    return ", ".join(f"{name} x{count}" for name, count in counts.items() if count)


def _shown(tensor: GraphTensor) -> str:
    return f"{tensor.name!r} [{','.join(map(str, tensor.shape_signature))}]"


def _some(tensors: Sequence[GraphTensor]) -> str:
    return _shown(tensors[0]) + (f" and {len(tensors) - 1} more" if len(tensors) > 1 else "")
