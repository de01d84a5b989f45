"""What in a graph is known to be slow, refused or wrong on GPU delegates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

from msgspec import Struct

from evaltools.model.contents import Graph, GraphTensor, Operation
from evaltools.model.gpu_faults import GPU_FAULTS

DOCUMENT: Final = 'TensorFlow Lite, "GPU delegates for LiteRT"'
MESSAGES: Final = "messages of the native GPU delegate"
SLOW_OPERATORS: Final = ("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH")
_MANY_RESHAPES: Final = 4
_SLICE: Final = 4


class GpuTrap(Struct, frozen=True):
    """Something to know before a GPU runs this graph: what it is, where it was ``found``, and who says so."""

    trap: str
    found: str
    source: str


def gpu_traps(graph: Graph) -> tuple[GpuTrap, ...]:
    """The traps in a graph; none found is no promise that there is none.

    Each has its source: a document, the native delegate's own messages, or a measurement.

    >>> fed = GraphTensor(0, "x", "float32", (2, 8), (2, 8))
    >>> [trap.found for trap in gpu_traps(Graph((fed,), (), (0,), (0,)))]
    ["'x' [2,8]"]
    """
    finders = (_slow_operators, _reshapes, _channels, _batches, _free_sizes)
    found = [trap for finder in finders for trap in finder(graph)]
    return (*found, *_wrong_values(graph))


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


def _wrong_values(graph: Graph) -> Iterator[GpuTrap]:
    for fault in GPU_FAULTS:
        found = [node for node in graph.nodes if fault.is_in(graph, node)]
        if found:
            names = ", ".join(f"{node.operator} #{node.index}" for node in found[:3])
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            yield GpuTrap(f"{fault.wrong}; {fault.way_round}", names + more, fault.source)


def _is_image(tensor: GraphTensor) -> bool:
    return len(tensor.shape) == 4 and min(tensor.shape) > 0


def _counts(nodes: Sequence[Operation], operators: Sequence[str]) -> str:
    counts = {name: sum(node.operator == name for node in nodes) for name in operators}
    return ", ".join(f"{name} x{count}" for name, count in counts.items() if count)


def _shown(tensor: GraphTensor) -> str:
    return f"{tensor.name!r} [{','.join(map(str, tensor.shape_signature))}]"


def _some(tensors: Sequence[GraphTensor]) -> str:
    return _shown(tensors[0]) + (f" and {len(tensors) - 1} more" if len(tensors) > 1 else "")
