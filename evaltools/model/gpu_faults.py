"""What in a graph gives wrong numbers on GPU delegates, as measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from msgspec import Struct

from evaltools.errors import ModelError
from evaltools.model.contents import Graph, GraphTensor, Operation
from evaltools.model.flatbuffer import DamagedFlatbuffer, Table

IN_SOFTWARE: Final = "measured with the WebGPU accelerator of ai-edge-litert 2.3.0 on a software GPU (llvmpipe)"
ON_BOTH: Final = f"{IN_SOFTWARE} and on an NVIDIA H200"
_ELEMENTWISE: Final = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "POW")
_FLOATS: Final = ("float32", "int8")
_FEWEST_OPERANDS: Final = 2
_SAME: Final = 0
_OPTIONS_OF_TRANSPOSE_CONV: Final = {"padding": 0, "stride_w": 1, "stride_h": 2}
"""The places of fields in the schema's TransposeConvOptions."""
_DIMENSIONS_MOVED: Final = 3


class Operands(Struct, frozen=True):
    """The tensors that an operator reads, two at least, the first that it makes, and its options as they are stored."""

    read: tuple[GraphTensor, ...]
    made: GraphTensor
    options: Table | None

    @property
    def first(self) -> GraphTensor:
        """The input of most operators."""
        return self.read[0]

    @property
    def second(self) -> GraphTensor:
        """The weights of those that have some."""
        return self.read[1]


class GpuFault(Struct, frozen=True):
    """What is ``wrong`` and the way round it, of which ``operators``, and whether one of them ``has`` it.

    ``tests/model/test_gpu_faults.py`` repeats the measurement of each, and of its way round, where there is a GPU.
    """

    wrong: str
    way_round: str
    operators: Sequence[str]
    has: Callable[[Operands], bool]
    source: str

    def is_in(self, graph: Graph, node: Operation) -> bool:
        """Whether the fault is in this operator; raises :class:`ModelError` for a file that is damaged there."""
        operands = _operands(graph, node) if node.operator in self.operators else None
        try:
            return operands is not None and self.has(operands)
        except DamagedFlatbuffer as error:
            raise ModelError(f"the options of {node.operator} #{node.index} are damaged: {error}") from error


def _operands(graph: Graph, node: Operation) -> Operands | None:
    read = tuple(tensor for tensor in map(graph.tensor, node.inputs) if tensor is not None)
    made = graph.tensor((*node.outputs, -1)[0])
    return None if len(read) < _FEWEST_OPERANDS or made is None else Operands(read, made, node.options)


def _has_constant_weights(dtypes: Sequence[str], operands: Operands, dimensions: int) -> bool:
    fed, weights = operands.first, operands.second
    is_measured = fed.dtype == weights.dtype and fed.dtype in dtypes and weights.constant is not None
    return is_measured and len(weights.shape) == dimensions and min((*fed.shape, *weights.shape), default=0) > 0


def _flattens(operands: Operands) -> bool:
    """Whether the last dimension of the input is not that of the weights."""
    fed, weights = operands.first, operands.second
    return _has_constant_weights(_FLOATS, operands, 2) and len(fed.shape) > 1 and fed.shape[-1] != weights.shape[1]


def _loses_dimensions(operands: Operands) -> bool:
    """Whether several rows come out in fewer dimensions than they came in. float32 was right."""
    fed, weights = operands.first, operands.second
    is_measured = _has_constant_weights(("int8",), operands, 2) and fed.shape[-1:] == weights.shape[1:]
    return is_measured and len(fed.shape) > len(operands.made.shape) and prod(fed.shape[:-1]) > 1


def _leaves_pixels_out(operands: Operands) -> bool:
    """Of a window of 1x1. float32 and uint8 were right, other windows, and DEPTHWISE_CONV_2D."""
    is_measured = _has_constant_weights(("int8",), operands, 4) and operands.second.shape[1:3] == (1, 1)
    return is_measured and operands.made.shape[1:3] != operands.first.shape[1:3]


def _multiplies_channels(operands: Operands) -> bool:
    """Of a window of 1x1. Other windows were right, and a single channel."""
    is_measured = _has_constant_weights((*_FLOATS, "uint8"), operands, 4) and operands.second.shape[1:3] == (1, 1)
    return is_measured and 1 < operands.first.shape[-1] < operands.second.shape[-1]


def _pads_otherwise(operands: Operands) -> bool:
    """Whether SAME, as a convolution of this input would have it, begins at another pixel than that of its output.

    110 combinations of windows from 1 to 6, strides from 1 to 4, sizes from 1 to 8 and types were wrong there and right
    elsewhere; VALID was always right.
    """
    weights, options = operands.second, operands.options
    if len(operands.read) <= _FEWEST_OPERANDS or options is None or weights.dtype not in _FLOATS:
        return False
    fed = operands.read[_FEWEST_OPERANDS]
    places = _OPTIONS_OF_TRANSPOSE_CONV
    if options.integer(places["padding"], "b") != _SAME or (len(fed.shape), len(weights.shape)) != (4, 4):
        return False
    strides = [options.integer(places[name], "i") for name in ("stride_h", "stride_w")]
    sides = zip(fed.shape[1:3], operands.made.shape[1:3], weights.shape[1:3], strides, strict=True)
    return any(
        _begins(-(-size // stride), size, reach, stride) != _begins(size, made, reach, stride)
        for size, made, reach, stride in sides
        if stride > 0
    )


def _begins(steps: int, size: int, reach: int, stride: int) -> int:
    """How much SAME pads in front, where a window makes so many steps over a size."""
    return max((steps - 1) * stride + reach - size, 0) // 2


def _subtracts_from_constant(operands: Operands) -> bool:
    """float32 and int8 were right, and a constant of a single number."""
    constant = operands.first
    return constant.constant is not None and constant.dtype == "int32" and prod(constant.shape) > 1


def _has_batches_of_constants(operands: Operands) -> bool:
    """int32 was right, and four dimensions where the other operand has as many batches."""
    dimensions = len(operands.made.shape)
    for constant, other in ((operands.first, operands.second), (operands.second, operands.first)):
        if constant.constant is None or constant.dtype not in _FLOATS or other.constant is not None:
            continue
        if len(constant.shape) == dimensions and constant.shape[0] > 1:
            return dimensions < 4 or other.shape[:1] == (1,)
    return False


def _moves_rows(operands: Operands) -> bool:
    """Of three dimensions, whatever is padded. Four were right, a first size of 1, and two stay on the CPU."""
    fed = operands.first
    return fed.dtype in _FLOATS and len(fed.shape) == _DIMENSIONS_MOVED and fed.shape[0] > 1


GPU_FAULTS: Final[Sequence[GpuFault]] = (
    GpuFault(
        "a FULLY_CONNECTED that flattens its input itself gives wrong values",
        "put a RESHAPE before it",
        ("FULLY_CONNECTED",),
        _flattens,
        ON_BOTH,
    ),
    GpuFault(
        "a FULLY_CONNECTED of int8 that makes rows of more dimensions gives the first alone",
        "put a RESHAPE before it",
        ("FULLY_CONNECTED",),
        _loses_dimensions,
        IN_SOFTWARE,
    ),
    GpuFault(
        "a CONV_2D of int8 with a window of 1x1 ignores its strides",
        "take the pixels before it (STRIDED_SLICE)",
        ("CONV_2D",),
        _leaves_pixels_out,
        ON_BOTH,
    ),
    GpuFault(
        "a SUB of int32 from a constant of several numbers subtracts the constant",
        "negate (NEG) and ADD instead",
        ("SUB",),
        _subtracts_from_constant,
        ON_BOTH,
    ),
    GpuFault(
        "a TRANSPOSE_CONV that is padded (SAME) may be moved by a pixel, as from 7x7 to 14x14 with a window of 3x3",
        "make it VALID and cut the rest off (STRIDED_SLICE)",
        ("TRANSPOSE_CONV",),
        _pads_otherwise,
        IN_SOFTWARE,
    ),
    GpuFault(
        "a DEPTHWISE_CONV_2D with a window of 1x1 and a multiplier takes weights of other channels",
        "make it a CONV_2D",
        ("DEPTHWISE_CONV_2D",),
        _multiplies_channels,
        IN_SOFTWARE,
    ),
    GpuFault(
        "of a constant with several batches, which one of a single dimension has as well, the first counts for all",
        "give both operands a dimension of 1 in front",
        _ELEMENTWISE,
        _has_batches_of_constants,
        IN_SOFTWARE,
    ),
    GpuFault(
        "a PAD of three dimensions whose first size is not 1 moves all rows of the first dimension by one",
        "give it a dimension of 1 in front (RESHAPE)",
        ("PAD", "PADV2", "MIRROR_PAD"),
        _moves_rows,
        IN_SOFTWARE,
    ),
)


class GpuTrap(Struct, frozen=True):
    """Something to know before a GPU runs this graph: what it is, where it was ``found``, and who says so."""

    trap: str
    found: str
    source: str


def gpu_traps(graph: Graph) -> tuple[GpuTrap, ...]:
    """The faults that operators of a graph have; none found is not a promise that there is none."""
    traps = []
    for fault in GPU_FAULTS:
        found = [node for node in graph.nodes if fault.is_in(graph, node)]
        if found:
            names = ", ".join(f"{node.operator} #{node.index}" for node in found[:3])
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            traps.append(GpuTrap(f"{fault.wrong}; {fault.way_round}", names + more, fault.source))
    return tuple(traps)
