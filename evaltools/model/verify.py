"""Checks a whole model before a runtime sees it: every table, vector and text, and every index into another list.

A table of the TensorFlow Lite schema is described by the numbers of those fields that point to something. Plain numbers
lie inside their table and need no check. Source of the field numbers: the public ``schema.fbs``, version 3c.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.model.flatbuffer import DamagedFlatbuffer, Table

Fields = Mapping[int, Any]
"""What each pointing field of a table leads to.

A number is a vector of numbers of so many bytes each, ``TEXT`` a string, a mapping a table with these fields, a list of
one mapping a vector of such tables. A pair is a table whose kind stands in the field of that number, with the fields of
each kind; kinds that are not listed have no pointing field.
"""
TEXT: Final = "text"
_MOST_TABLES: Final = 1_000_000
"""A sound file has far fewer; one that refers to the same tables over and over is refused."""


BUILTIN_OPTIONS: Final[Mapping[int, Fields]] = {
    3: {1: 4, 2: 4},  # ConcatEmbeddingsOptions
    8: {5: 1},  # FullyConnectedOptions
    17: {0: 4},  # ReshapeOptions
    30: {0: 4},  # SqueezeOptions
    111: {0: TEXT, 1: TEXT},  # VarHandleOptions
    115: {0: 4},  # BucketizeOptions
}
BUILTIN_OPTIONS_2: Final[Mapping[int, Fields]] = {
    2: {0: 8},  # StablehloBroadcastInDimOptions
    3: {0: 8, 1: 8, 2: 8},  # StablehloSliceOptions
    4: {0: 8, 1: 8, 2: 8, 3: 8, 4: 1, 7: 8, 10: 8, 13: 8, 16: 4},  # StablehloConvolutionOptions
    5: {0: TEXT, 2: TEXT, 4: 4, 5: 1},  # StablehloCustomCallOptions
    6: {0: 8},  # StablehloReduceOptions
    7: {1: 8, 2: 8, 3: 8},  # StablehloScatterOptions
    9: {0: 8},  # StablehloDynamicSliceOptions
    10: {0: 8, 1: 8, 2: 8},  # StablehloPadOptions
    12: {0: 8, 1: 8, 2: 8, 3: 8, 4: 4},  # StablehloDotGeneralOptions
    13: {0: 8, 1: 8, 2: 8, 3: 8, 4: 8},  # StablehloReduceWindowOptions
    16: {0: 8, 1: 8, 2: 8, 4: 8},  # StablehloGatherOptions
    17: {0: 8},  # StablehloTransposeOptions
    21: {0: TEXT, 2: 1},  # StableHLOCompositeOptions
    23: {0: 4},  # StablehloCaseOptions
}

_SPARSE_INDICES: Final[Mapping[int, Fields]] = {1: {0: 4}, 2: {0: 2}, 3: {0: 1}}
_DIMENSION: Final[Fields] = {3: (2, _SPARSE_INDICES), 5: (4, _SPARSE_INDICES)}
_SPARSITY: Final[Fields] = {0: 4, 1: 4, 2: [_DIMENSION]}
_QUANTIZATION: Final[Fields] = {0: 4, 1: 4, 2: 4, 3: 8, 5: (4, {1: {0: 1}, 2: {3: 4}, 3: {3: 4}})}
_TENSOR: Final[Fields] = {0: 4, 3: TEXT, 4: _QUANTIZATION, 6: _SPARSITY, 7: 4, 9: [{0: 4}]}
_OPERATOR: Final[Fields] = {1: 4, 2: 4, 4: (3, BUILTIN_OPTIONS), 5: 1, 7: 1, 8: 4, 12: (11, BUILTIN_OPTIONS_2)}
_SUBGRAPH: Final[Fields] = {0: [_TENSOR], 1: 4, 2: 4, 3: [_OPERATOR], 4: TEXT}
_SIGNATURE: Final[Fields] = {0: [{0: TEXT}], 1: [{0: TEXT}], 2: TEXT}
MODEL: Final[Fields] = {
    1: [{1: TEXT}],  # operator codes
    2: [_SUBGRAPH],
    3: TEXT,
    4: [{0: 1}],  # buffers
    5: 4,
    6: [{0: TEXT}],  # metadata
    7: [_SIGNATURE],
    8: [{0: TEXT}],  # external buffer groups
    9: [{4: TEXT}],  # external buffers
}


def verify_model(model: Table) -> None:
    """Raise :class:`DamagedFlatbuffer` for anything that points outside the file or to something that is not there."""
    _Walk().check(model, MODEL)
    _check_indices_of(model)


class _Walk:
    """Visits the tables of a file and counts them."""

    def __init__(self) -> None:
        self._visited = 0

    def check(self, table: Table, fields: Fields) -> None:
        self._visited += 1
        if self._visited > _MOST_TABLES:
            raise DamagedFlatbuffer(f"it holds more than {_MOST_TABLES} tables")
        for number, what in fields.items():
            if what == TEXT:
                table.text(number)
            elif isinstance(what, int):
                table.check_vector(number, what)
            elif isinstance(what, list):
                for item in table.tables(number):
                    self.check(item, what[0])
            elif (child := table.table(number)) is not None:
                is_union = isinstance(what, tuple)
                self.check(child, what[1].get(table.integer(what[0], "B"), {}) if is_union else what)


def _check_indices_of(model: Table) -> None:
    file_bytes = len(model.data)
    buffers, opcodes, subgraphs = model.tables(4), model.tables(1), model.tables(2)
    if not subgraphs:
        raise DamagedFlatbuffer("it holds no graph")
    for buffer in buffers:
        _check_range(buffer.integer(1, "Q"), buffer.integer(2, "Q"), file_bytes)
    for subgraph in subgraphs:
        _check_subgraph(subgraph, len(opcodes), buffers, file_bytes)
    for signature in model.tables(7):
        index = signature.integer(4, "I")
        if index >= len(subgraphs):
            raise DamagedFlatbuffer("a signature names a graph that does not exist")
        tensor_count = len(subgraphs[index].tables(0))
        if any(entry.integer(1, "I") >= tensor_count for entry in signature.tables(0) + signature.tables(1)):
            raise DamagedFlatbuffer("a signature names a tensor that does not exist")


def _check_subgraph(subgraph: Table, opcode_count: int, buffers: list[Table], file_bytes: int) -> None:
    tensors = subgraph.tables(0)
    for tensor in tensors:
        buffer = tensor.integer(2, "I")
        if buffer != 0 and buffer >= len(buffers):
            raise DamagedFlatbuffer("a tensor names a buffer that does not exist")
        _check_quantization(tensor)
        sizes = np.concatenate([tensor.numbers(0, "int32"), tensor.numbers(7, "int32")]).astype(np.int64)
        if (sizes < -1).any():
            raise DamagedFlatbuffer(f"a tensor has the shape {sizes.tolist()}")
    _check_indices(subgraph.numbers(1, "int32"), len(tensors))
    _check_indices(subgraph.numbers(2, "int32"), len(tensors))
    for operator in subgraph.tables(3):
        if operator.integer(0, "I") >= opcode_count:
            raise DamagedFlatbuffer("a node names an operator that does not exist")
        for number in (1, 2, 8):
            _check_indices(operator.numbers(number, "int32"), len(tensors), optional=True)
        for output in operator.numbers(2, "int32").tolist():
            if output >= 0 and _has_data(buffers, tensors[output].integer(2, "I")):
                raise DamagedFlatbuffer("the output of a node has a constant value")
        _check_range(operator.integer(9, "Q"), operator.integer(10, "Q"), file_bytes)


def _has_data(buffers: list[Table], index: int) -> bool:
    return 0 < index < len(buffers) and len(buffers[index].numbers(0, "uint8")) > 0


def _check_quantization(tensor: Table) -> None:
    """Raise where a tensor has zero points but not one per scale, or a scale that is negative or no number.

    The runtimes do not check this, and crash.
    """
    quantization = tensor.table(4)
    if quantization is None:
        return
    scales = quantization.numbers(2, "float32").astype(np.float32)
    zero_points = quantization.numbers(3, "int64")
    if len(zero_points) not in (0, len(scales)):
        raise DamagedFlatbuffer(f"a tensor has {len(scales)} scales and {len(zero_points)} zero points")
    if not np.isfinite(scales).all() or (scales < 0).any():
        raise DamagedFlatbuffer("a tensor has a scale that is negative or no number")


def _check_range(offset: int, size: int, file_bytes: int) -> None:
    """Check constants and options that lie behind the FlatBuffer; offsets 0 and 1 mean that they do not."""
    if offset > 1 and offset + size > file_bytes:
        raise DamagedFlatbuffer("weights or options lie behind the end of the file")


def _check_indices(indices: npt.NDArray[np.generic], tensor_count: int, optional: bool = False) -> None:
    lowest = -1 if optional else 0
    if any(not lowest <= int(index) < tensor_count for index in indices.tolist()):
        raise DamagedFlatbuffer("a node or graph names a tensor that does not exist")
