"""What the graph tells of an operator's arithmetic: how long its sums are, and whether it quantises what it is fed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from evaltools.model.contents import Graph, GraphTensor, Operation

_WEIGHTED: Final = frozenset(
    {
        "CONV_2D", "CONV_3D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_LSTM", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "SVDF",
    }
)  # fmt: skip
_REDUCTIONS: Final = frozenset({"SUM", "MEAN", "AVERAGE_POOL_2D", "L2_NORMALIZATION", "CUMSUM", "REDUCE_PROD"})
_HYBRID: Final = _WEIGHTED | {"DEPTHWISE_CONV_2D", "BATCH_MATMUL"}


def sum_length(graph: Graph, node: Operation) -> int:
    """How many products or values an operator adds up for one value of its output, 1 where it adds up none.

    Of operators with weights ``[outputs, ...]`` it is the product of the other sizes, of reductions the number of
    values fed for one that is given, of BATCH_MATMUL and SOFTMAX the last size.
    """
    tensors = [tensor for tensor in map(graph.tensor, node.inputs) if tensor is not None]
    given = [tensor for tensor in map(graph.tensor, node.outputs) if tensor is not None]
    weights = [tensor.shape for tensor in tensors[1:] if len(tensor.shape) > 1]
    if node.operator in _WEIGHTED:
        return max([1, *(math.prod(shape[1:]) for shape in weights)])
    if node.operator == "DEPTHWISE_CONV_2D":
        return max([1, *(math.prod(shape[:-1]) for shape in weights)])
    if node.operator in ("BATCH_MATMUL", "SOFTMAX", "LOG_SOFTMAX"):
        return max(1, tensors[0].shape[-1]) if tensors and tensors[0].shape else 1
    if node.operator in _REDUCTIONS:
        return max(1, _size(tensors[:1]) // max(1, _size(given[:1])))
    return 1


def is_hybrid(graph: Graph, node: Operation) -> bool:
    """Whether an operator computes floats with constants in 8 bits or fewer."""
    if node.operator not in _HYBRID:
        return False
    tensors = [tensor for tensor in map(graph.tensor, node.inputs) if tensor is not None]
    fed_floats = any(tensor.dtype == "float32" and tensor.constant is None for tensor in tensors)
    return fed_floats and any(tensor.dtype in ("int8", "uint8", "int4") and tensor.constant for tensor in tensors)


def _size(tensors: Sequence[GraphTensor]) -> int:
    return math.prod(tensors[0].shape) if tensors else 1
