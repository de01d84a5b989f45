"""The fields of the TensorFlow Lite schema that point to something.

A table is described by the numbers of such fields: :class:`NumberVector` (of numbers), :class:`Text`, :class:`Nested`
(a table), :class:`NestedList` (a vector of tables) or :class:`Union`. Plain numbers lie inside their table and need no
check. Source of the field numbers: the public ``schema.fbs``, version 3c.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field


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
