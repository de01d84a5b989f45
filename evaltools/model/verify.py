"""Checks a whole model before a runtime sees it: every table, vector and text, and every index into another list."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.model.flatbuffer import DamagedFlatbuffer, Table
from evaltools.model.schema import MODEL, Nested, NestedList, NumberVector, TableSchema, Text, Union

_MOST_TABLES: Final = 1_000_000
"""A sound file has far fewer; one that refers to the same tables over and over is refused."""


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
        for field in (1, 2, 8):
            _check_indices(operator.numbers(field, "int32"), len(tensors), optional=True)
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
