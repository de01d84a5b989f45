"""Operators that quantise what they are fed, so that the CPU itself is not exact."""

from __future__ import annotations

from typing import Final

from evaltools.model.contents import Graph, Operation

_HYBRID: Final = frozenset(
    {
        "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_LSTM", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "SVDF",
    }
)  # fmt: skip


def hybrid_operators(graph: Graph) -> frozenset[int]:
    """The operators of a graph that compute floats with constants in 8 bits or fewer, by number."""
    return frozenset(node.index for node in graph.nodes if _is_hybrid(graph, node))


def _is_hybrid(graph: Graph, node: Operation) -> bool:
    if node.operator not in _HYBRID:
        return False
    tensors = [tensor for tensor in map(graph.tensor, node.inputs) if tensor is not None]
    fed_floats = any(tensor.dtype == "float32" and tensor.constant is None for tensor in tensors)
    return fed_floats and any(tensor.dtype in ("int8", "uint8", "int4") and tensor.constant for tensor in tensors)
