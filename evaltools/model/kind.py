"""Which kind of quantisation a model has, judged from operators and tensors, and which delegates are made for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from evaltools.model.compiled_for import HARDWARE, CompiledFor
from evaltools.model.contents import Graph, GraphTensor, Operation

FLOAT32: Final = "float32"
FLOAT16_WEIGHTS: Final = "float16 weights"
FLOAT16: Final = "float16 throughout"
DYNAMIC_RANGE: Final = "dynamic range"
WEIGHT_ONLY: Final = "8-bit weights, float32 computation"
FULL_INTEGER: Final = "full integer"
INT16X8: Final = "int16x8"
MIXED: Final = "mixed"
OTHER: Final = "neither float nor quantised"
COMPILED: Final = "compiled"
KINDS: Final = (
    FLOAT32, FLOAT16_WEIGHTS, FLOAT16, DYNAMIC_RANGE, WEIGHT_ONLY, FULL_INTEGER, INT16X8, MIXED, OTHER, COMPILED,
)  # fmt: skip
_WEIGHT_POSITIONS: Final[Mapping[str, tuple[int, ...]]] = {
    "CONV_2D": (1,), "DEPTHWISE_CONV_2D": (1,), "FULLY_CONNECTED": (1,), "TRANSPOSE_CONV": (1,), "CONV_3D": (1,),
    "CONV_3D_TRANSPOSE": (1,), "BATCH_MATMUL": (1, 0), "EMBEDDING_LOOKUP": (1,), "SVDF": (1,), "RNN": (1,),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (1,), "BIDIRECTIONAL_SEQUENCE_RNN": (1,), "LSTM": (1, 2),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (1, 2), "BIDIRECTIONAL_SEQUENCE_LSTM": (1, 2),
}  # fmt: skip
_CONVERSIONS: Final = frozenset({"DEQUANTIZE", "QUANTIZE", "CAST", "DENSIFY", "FAKE_QUANT"})
_EIGHT_BITS: Final = frozenset({"int8", "uint8", "int4"})
SOURCE: Final = 'TensorFlow Lite, "LiteRT delegates"'
PLATFORMS: Final[Mapping[str, str]] = {
    "GPU": "Android and iOS",
    "NNAPI": "Android 8.1 (API 27) and later",
    "Hexagon": "older Android devices with a Qualcomm DSP",
    "Core ML": "Apple devices with an A12 chip or later",
}
"""Delegates of the table, and where each one is."""
SUPPORT: Final[Mapping[str, tuple[bool, bool, bool, bool]]] = {
    FLOAT32: (True, True, False, True),
    FLOAT16_WEIGHTS: (True, False, False, True),
    DYNAMIC_RANGE: (True, True, False, False),
    FULL_INTEGER: (True, True, True, False),
}
"""For each kind, the delegates of ``PLATFORMS`` in their order; other kinds are not in the document.

Of quantisation-aware training it says the same as of full integer, from which a file does not tell it apart.
"""
EIGHT_BITS_ONLY: Final = "Hexagon"
_FLOAT_KINDS: Final = (FLOAT32, FLOAT16_WEIGHTS, DYNAMIC_RANGE)
_REJECTED: Final = "takes 8-bit operators only: rejects a float model operator by operator, all runs on the CPU"
_NOT_LISTED: Final = "the document does not list this kind of model"


class ModelKind(Struct, frozen=True):
    """One of ``KINDS``, and why."""

    kind: str
    reason: str


def quantization_kind(graphs: Sequence[Graph]) -> ModelKind:
    """The kind of a model.

    Operators with weights (convolutions, FULLY_CONNECTED, BATCH_MATMUL, LSTM, ...) decide; where there are none, all
    operators but conversions do. Each is classed by the type that it gives and, if that is float32, by its weights:

    ======================  ==========================================  ===================================
    gives                   weights                                     class
    ======================  ==========================================  ===================================
    float32                 float32, or computed                        float32
    float32                 float16, by DEQUANTIZE or directly          float16 weights
    float32                 int8, uint8 or int4, directly               dynamic range
    float32                 int8, uint8 or int4, by DEQUANTIZE          8-bit weights, float32 computation
    float16, bfloat16       any                                         float16 throughout
    int8 or uint8 (scaled)  any                                         full integer
    int16 (scaled)          int8, or none                               int16x8
    ======================  ==========================================  ===================================

    Anything else has no class. One class is the kind; float32 beside one of the kinds with small weights is that kind,
    as converters leave small tensors alone; other mixtures are ``mixed``; no class at all is ``neither float nor
    quantised``. A model whose operators with weights were all compiled for hardware is ``compiled``.

    Source: TensorFlow Lite's documents "Post-training quantization" and "8-bit quantization specification".

    >>> fed = GraphTensor(0, "x", "float32", (4,), (4,))
    >>> kind = quantization_kind([Graph((fed,), (Operation(0, "ADD", (0, 0), (0,)),), (0,), (0,))])
    >>> kind.kind, kind.reason
    ('float32', '1 of 1 operators: float32')
    """
    programs = Counter(node.operator for graph in graphs for node in graph.nodes if node.operator in HARDWARE)
    has_weights = any(node.operator in _WEIGHT_POSITIONS for graph in graphs for node in graph.nodes)
    if programs and not has_weights:
        return ModelKind(COMPILED, _not_known(programs).removeprefix("; "))
    classes = Counter(_classes(graphs, has_weights))
    what = "operators with weights" if has_weights else "operators"
    kind = _kind(set(classes))
    if kind == OTHER:
        return ModelKind(kind, "no operator computes with floating point or quantised numbers")
    total = sum(classes.values())
    reason = ", ".join(f"{count} of {total} {what}: {name}" for name, count in classes.most_common())
    reason += _float_part(graphs) if kind in (FULL_INTEGER, INT16X8) else ""
    return ModelKind(kind, reason + _not_known(programs))


def _kind(classes: set[str]) -> str:
    if not classes:
        return OTHER
    small = classes - {FLOAT32}
    if len(classes) == 1 or (len(small) == 1 and small <= {FLOAT16_WEIGHTS, DYNAMIC_RANGE, WEIGHT_ONLY}):
        return next(iter(small or classes))
    return MIXED


def _not_known(programs: Counter[str]) -> str:
    """That nobody can tell what compiled operators compute, if there are any."""
    names = ", ".join(f"{name} x{count}" for name, count in programs.most_common())
    return f"; what was compiled is not known: {names}" if names else ""


def _classes(graphs: Sequence[Graph], has_weights: bool) -> Iterator[str]:
    for graph in graphs:
        for node in graph.nodes:
            if node.operator in _CONVERSIONS or (has_weights and node.operator not in _WEIGHT_POSITIONS):
                continue
            positions = _WEIGHT_POSITIONS.get(node.operator, range(len(node.inputs)))
            read = [node.inputs[place] for place in positions if place < len(node.inputs)]
            found = ((graph.tensor(index), graph.constant_behind(index)) for index in read)
            taken, weights = next((each for each in found if each[1] is not None), (None, None))
            name = _class(graph, node, taken, weights, has_weights)
            if name:
                yield name


def _class(
    graph: Graph, node: Operation, taken: GraphTensor | None, weights: GraphTensor | None, has_weights: bool
) -> str:
    """The class of a node that has ``taken`` its ``weights`` as they are, or through DEQUANTIZE; empty for none."""
    given = graph.tensor(node.outputs[0]) if node.outputs else None
    if given is None:
        return ""
    if given.dtype in ("float16", "bfloat16"):
        return FLOAT16
    if given.dtype in ("int8", "uint8"):
        return FULL_INTEGER if any(given.scales) else ""
    if given.dtype == "int16" and any(given.scales):
        fits = weights is None or weights.dtype == "int8" or not has_weights
        return INT16X8 if fits else ""
    if given.dtype != "float32":
        return ""
    if taken is None or weights is None or weights.dtype not in _EIGHT_BITS | {"float16"}:
        return FLOAT32
    if weights.dtype == "float16":
        return FLOAT16_WEIGHTS
    return WEIGHT_ONLY if taken.dtype != weights.dtype else DYNAMIC_RANGE


def _float_part(graphs: Sequence[Graph]) -> str:
    """Which operators of an integer model give float32 after all."""
    names = Counter(
        node.operator
        for graph in graphs
        for node in graph.nodes
        if node.operator not in _CONVERSIONS
        and any(tensor is not None and tensor.dtype == "float32" for tensor in map(graph.tensor, node.outputs))
    )
    left = ", ".join(f"{name} x{count}" for name, count in names.most_common())
    return f"; in float32: {left}" if left else ""


class KindSupport(Struct, frozen=True):
    """Whether a delegate is made for a kind of model (None: not known), where it is, and a remark."""

    delegate: str
    supported: bool | None
    platforms: str
    remark: str


def support_of(kind: str, compiled: Sequence[CompiledFor] = ()) -> tuple[KindSupport, ...]:
    """What the document says of a kind of model, delegate by delegate; what was ``compiled`` fits none.

    >>> [(entry.delegate, entry.supported) for entry in support_of("float16 weights")]
    [('GPU', True), ('NNAPI', False), ('Hexagon', False), ('Core ML', True)]
    """
    if compiled:
        remark = "; ".join(f"{each.operator} was compiled for {each.hardware}" for each in compiled)
        return tuple(KindSupport(delegate, False, platforms, remark) for delegate, platforms in PLATFORMS.items())
    answers = SUPPORT.get(kind, (None,) * len(PLATFORMS))
    return tuple(
        KindSupport(delegate, answer, platforms, _remark(delegate, kind, answer))
        for (delegate, platforms), answer in zip(PLATFORMS.items(), answers, strict=True)
    )


def _remark(delegate: str, kind: str, answer: bool | None) -> str:
    if answer is None:
        return _NOT_LISTED
    return _REJECTED if delegate == EIGHT_BITS_ONLY and kind in _FLOAT_KINDS else ""
