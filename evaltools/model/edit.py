"""Reads the options of one operator in a small model, and changes what its constants hold."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from evaltools.model.cut import aligned_builder, schema_package

_ROOM: Final = 1 << 16


def operator_options(content: bytes, place: int) -> Mapping[str, Any]:
    """The builtin options of an operator of the main graph, by the schema's names; none where it has none."""
    options = _read(content).subgraphs[0].operators[place].builtinOptions
    return {} if options is None else dict(vars(options))


def with_constants(content: bytes, constants: Mapping[int, bytes]) -> bytes:
    """The model where constants, by the number of the tensor, hold something else.

    Raises :class:`~evaltools.errors.ModelError` where the schema's package is not installed.
    """
    model = _read(content)
    graph = model.subgraphs[0]
    for index, held in constants.items():
        tensor = graph.tensors[index]
        model.buffers.append(copy.copy(model.buffers[tensor.buffer]))
        model.buffers[-1].data = np.frombuffer(held, np.uint8)
        tensor.buffer = len(model.buffers) - 1
    builder = aligned_builder(len(content) + _ROOM)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _read(content: bytes) -> Any:
    schema = schema_package()
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
