"""The nodes of a graph by name, and what they say about its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from evaltools.model.flatbuffer import Table

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
_OPCODE_SHORT, _OPCODE_CUSTOM, _OPCODE_LONG = 0, 1, 3
_OPERATOR_OPCODE, _OPERATOR_INPUTS, _OPERATOR_OUTPUTS, _OPERATOR_OPTIONS = 0, 1, 2, 4
_TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_IS_VARIABLE = 0, 1, 5
_RESOURCE: Final = 13
_CAST, _RESHAPE, _SQUEEZE, _EXPAND_DIMS, _STRIDED_SLICE = 53, 22, 43, 70, 45
_DEQUANTIZE, _QUANTIZE = 6, 114
_GATHER, _EMBEDDING_LOOKUP = 36, 7
_SAME_VALUES: Final = frozenset({_CAST, _RESHAPE, _SQUEEZE, _EXPAND_DIMS, _STRIDED_SLICE, _DEQUANTIZE, _QUANTIZE})
DETECTION_OP: Final = "TFLite_Detection_PostProcess"


def operator_name(code: int, custom: str) -> str:
    """The name of an operator, that of a custom one as the file has it.

    >>> operator_name(0, ""), operator_name(32, "TFLite_Detection_PostProcess"), operator_name(9999, "")
    ('ADD', 'TFLite_Detection_PostProcess', 'operator 9999')
    """
    if custom:
        return custom
    return OPERATORS[code] if 0 <= code < len(OPERATORS) else f"operator {code}"


class Node(Struct, frozen=True):
    """One operator of a graph with its tensors by index; ``custom`` is empty for a builtin operator."""

    code: int
    custom: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None


class DetectionOutputs(Struct, frozen=True):
    """Which of a model's outputs hold what ``TFLite_Detection_PostProcess`` gives; positions from 0."""

    boxes: int
    classes: int
    scores: int
    count: int

    def holds(self, output: int) -> bool:
        """Whether the output at that position is one of the four."""
        return output in (self.boxes, self.classes, self.scores, self.count)


def read_nodes(model: Table, subgraph: Table) -> tuple[Node, ...]:
    """The nodes of a graph in the order of execution."""
    opcodes = [
        (max(code.integer(_OPCODE_SHORT, "b"), code.integer(_OPCODE_LONG, "i")), code.text(_OPCODE_CUSTOM))
        for code in model.tables(1)
    ]
    return tuple(
        Node(
            *opcodes[operator.integer(_OPERATOR_OPCODE, "I")],
            inputs=tuple(operator.numbers(_OPERATOR_INPUTS, "int32").tolist()),
            outputs=tuple(operator.numbers(_OPERATOR_OUTPUTS, "int32").tolist()),
            options=operator.table(_OPERATOR_OPTIONS),
        )
        for operator in subgraph.tables(3)
    )


def find_detection_outputs(nodes: Sequence[Node], outputs: Sequence[int]) -> DetectionOutputs | None:
    """The positions of the outputs of a ``TFLite_Detection_PostProcess``, in whatever order the graph has them.

    None where the graph's outputs are not those of one such operator.
    """
    for node in nodes:
        if node.custom == DETECTION_OP and len(node.outputs) == 4 and set(node.outputs) <= set(outputs):
            return DetectionOutputs(*(list(outputs).index(tensor) for tensor in node.outputs))
    return None


def keeps_state(subgraphs: Sequence[Table]) -> bool:
    """Whether a graph has variable tensors or resources, which keep values from one run to the next."""
    return any(
        tensor.integer(_TENSOR_IS_VARIABLE, "B") or tensor.integer(_TENSOR_TYPE, "b") == _RESOURCE
        for subgraph in subgraphs
        for tensor in subgraph.tables(0)
    )


def maker_of(nodes: Sequence[Node], output: int) -> str:
    """The operator that computes an output's values, which may be reshaped or quantised afterwards; empty for none."""
    producers = {tensor: node for node in nodes for tensor in node.outputs}
    seen = set()
    tensor = output
    while tensor in producers and tensor not in seen:
        seen.add(tensor)
        node = producers[tensor]
        if node.code not in _SAME_VALUES or not node.inputs:
            return operator_name(node.code, node.custom)
        tensor = node.inputs[0]
    return ""


def rows_selected(nodes: Sequence[Node], tensors: Sequence[Table], tensor: int) -> int | None:
    """Of how many rows a tensor's values select one (token ids into a table), None where they select none.

    A value of that number or more, or a negative one, makes GATHER and EMBEDDING_LOOKUP fail.
    """
    limits = []
    pending, seen = [tensor], set()
    while pending:
        current = pending.pop()
        seen.add(current)
        for node in nodes:
            if current not in node.inputs:
                continue
            rows = _rows_of_table(node, tensors, current)
            if rows:
                limits.append(rows)
            elif node.code in _SAME_VALUES and node.inputs[0] == current:
                pending.extend(output for output in node.outputs if output not in seen)
    return min(limits, default=None)


def _rows_of_table(node: Node, tensors: Sequence[Table], ids: int) -> int | None:
    if node.code == _GATHER and len(node.inputs) > 1 and node.inputs[1] == ids:
        shape = tensors[node.inputs[0]].numbers(_TENSOR_SHAPE, "int32").tolist()
        axis = node.options.integer(0, "i") if node.options else 0
        return shape[axis] if -len(shape) <= axis < len(shape) and shape[axis] > 0 else None
    if node.code == _EMBEDDING_LOOKUP and len(node.inputs) > 1 and node.inputs[0] == ids:
        shape = tensors[node.inputs[1]].numbers(_TENSOR_SHAPE, "int32").tolist()
        return shape[0] if shape and shape[0] > 0 else None
    return None
