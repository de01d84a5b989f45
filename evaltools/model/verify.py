"""Checks a whole model before a runtime sees it: every table, vector and text, and every index into another list.

A table of the TensorFlow Lite schema is described by the numbers of those fields that point to something:
:class:`NumberVector` (of numbers), :class:`Text`, :class:`Nested` (a table), :class:`NestedList` (a vector of tables)
or :class:`Union`. Plain numbers lie inside their table and need no check. Source of the field numbers: the public
``schema.fbs``, version 3c.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from evaltools.model.flatbuffer import DamagedFlatbuffer, Table

_MOST_TABLES: Final = 1_000_000
"""A sound file has far fewer; one that refers to the same tables over and over is refused."""


class NumberVector(Struct, frozen=True):
    """A vector of numbers of ``item_bytes`` each."""

    item_bytes: int


class Text(Struct, frozen=True):
    """A string, which ends with a zero byte."""


class TableSchema(Struct, frozen=True):
    """The pointing fields of a table, by number."""

    fields: Mapping[int, NumberVector | Text | Nested | NestedList | Union] = field(default_factory=dict)


class Nested(Struct, frozen=True):
    """A table."""

    schema: TableSchema


class NestedList(Struct, frozen=True):
    """A vector of tables."""

    schema: TableSchema


class Union(Struct, frozen=True):
    """A table whose kind stands in another field; kinds that are not listed have no pointing field."""

    kind_field: int
    schemas: Mapping[int, TableSchema]


def _vectors(item_bytes: int, *numbers: int) -> dict[int, NumberVector | Text | Nested | NestedList | Union]:
    return {number: NumberVector(item_bytes) for number in numbers}


_BYTES: Final = NumberVector(1)
_INT32S: Final = NumberVector(4)


BUILTIN_OPTIONS: Final = {
    3: TableSchema(_vectors(4, 1, 2)),  # ConcatEmbeddingsOptions
    8: TableSchema({5: _BYTES}),  # FullyConnectedOptions
    17: TableSchema({0: _INT32S}),  # ReshapeOptions
    30: TableSchema({0: _INT32S}),  # SqueezeOptions
    111: TableSchema({0: Text(), 1: Text()}),  # VarHandleOptions
    115: TableSchema({0: _INT32S}),  # BucketizeOptions
}
BUILTIN_OPTIONS_2: Final = {
    2: TableSchema(_vectors(8, 0)),  # StablehloBroadcastInDimOptions
    3: TableSchema(_vectors(8, 0, 1, 2)),  # StablehloSliceOptions
    4: TableSchema(
        _vectors(8, 0, 1, 2, 3, 7, 10, 13) | _vectors(1, 4) | _vectors(4, 16)
    ),  # StablehloConvolutionOptions
    5: TableSchema({0: Text(), 2: Text(), 4: _INT32S, 5: _BYTES}),  # StablehloCustomCallOptions
    6: TableSchema(_vectors(8, 0)),  # StablehloReduceOptions
    7: TableSchema(_vectors(8, 1, 2, 3)),  # StablehloScatterOptions
    9: TableSchema(_vectors(8, 0)),  # StablehloDynamicSliceOptions
    10: TableSchema(_vectors(8, 0, 1, 2)),  # StablehloPadOptions
    12: TableSchema(_vectors(8, 0, 1, 2, 3) | _vectors(4, 4)),  # StablehloDotGeneralOptions
    13: TableSchema(_vectors(8, 0, 1, 2, 3, 4)),  # StablehloReduceWindowOptions
    16: TableSchema(_vectors(8, 0, 1, 2, 4)),  # StablehloGatherOptions
    17: TableSchema(_vectors(8, 0)),  # StablehloTransposeOptions
    21: TableSchema({0: Text(), 2: _BYTES}),  # StableHLOCompositeOptions
    23: TableSchema({0: _INT32S}),  # StablehloCaseOptions
}

_SPARSE_INDICES: Final = {
    1: TableSchema({0: _INT32S}),
    2: TableSchema({0: NumberVector(2)}),
    3: TableSchema({0: _BYTES}),
}
_DIMENSION: Final = TableSchema({3: Union(2, _SPARSE_INDICES), 5: Union(4, _SPARSE_INDICES)})
_SPARSITY: Final = TableSchema({0: _INT32S, 1: _INT32S, 2: NestedList(_DIMENSION)})
_QUANTIZATION_DETAILS: Final = {1: TableSchema({0: _BYTES}), 2: TableSchema({3: _INT32S}), 3: TableSchema({3: _INT32S})}
_QUANTIZATION: Final = TableSchema(
    _vectors(4, 0, 1, 2) | _vectors(8, 3) | {5: Union(4, _QUANTIZATION_DETAILS)},
)
_TENSOR: Final = TableSchema(
    {
        0: _INT32S,
        3: Text(),
        4: Nested(_QUANTIZATION),
        6: Nested(_SPARSITY),
        7: _INT32S,
        9: NestedList(TableSchema({0: _INT32S})),
    }
)
_OPERATOR: Final = TableSchema(
    {
        1: _INT32S,
        2: _INT32S,
        4: Union(3, BUILTIN_OPTIONS),
        5: _BYTES,
        7: _BYTES,
        8: _INT32S,
        12: Union(11, BUILTIN_OPTIONS_2),
    }
)
_SUBGRAPH: Final = TableSchema({0: NestedList(_TENSOR), 1: _INT32S, 2: _INT32S, 3: NestedList(_OPERATOR), 4: Text()})
_TENSOR_MAP: Final = TableSchema({0: Text()})
_SIGNATURE: Final = TableSchema({0: NestedList(_TENSOR_MAP), 1: NestedList(_TENSOR_MAP), 2: Text()})

MODEL: Final = TableSchema(
    {
        1: NestedList(TableSchema({1: Text()})),  # operator codes
        2: NestedList(_SUBGRAPH),
        3: Text(),
        4: NestedList(TableSchema({0: _BYTES})),  # buffers
        5: _INT32S,
        6: NestedList(TableSchema({0: Text()})),  # metadata
        7: NestedList(_SIGNATURE),
        8: NestedList(TableSchema({0: Text()})),  # external buffer groups
        9: NestedList(TableSchema({4: Text()})),  # external buffers
    }
)


def verify_model(model: Table) -> None:
    """Raise :class:`DamagedFlatbuffer` for anything that points outside the file or to something that is not there."""
    _Walk().check(model, MODEL)
    _check_indices_of(model)


class _Walk:
    """Visits the tables of a file and counts them."""

    def __init__(self) -> None:
        self._visited = 0

    def check(self, table: Table, schema: TableSchema) -> None:
        self._visited += 1
        if self._visited > _MOST_TABLES:
            raise DamagedFlatbuffer(f"it holds more than {_MOST_TABLES} tables")
        for number, kind in schema.fields.items():
            if isinstance(kind, NumberVector):
                table.check_vector(number, kind.item_bytes)
            elif isinstance(kind, Text):
                table.text(number)
            else:
                self._check_tables(table, number, kind)

    def _check_tables(self, table: Table, number: int, kind: Nested | NestedList | Union) -> None:
        if isinstance(kind, NestedList):
            for item in table.tables(number):
                self.check(item, kind.schema)
            return
        child = table.table(number)
        if child is None:
            return
        if isinstance(kind, Nested):
            self.check(child, kind.schema)
        else:
            self.check(child, kind.schemas.get(table.integer(kind.kind_field, "B"), TableSchema()))


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
