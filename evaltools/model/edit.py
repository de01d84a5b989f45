"""Reads and changes the options of one operator in a small model: what a delegate may have computed instead."""

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


def with_options(
    content: bytes,
    place: int,
    options: Mapping[str, Any],
    shapes: Mapping[int, tuple[int, ...]] | None = None,
    constants: Mapping[int, bytes] | None = None,
) -> bytes:
    """The model with other options of one operator.

    ``shapes`` are other shapes of tensors, by number, ``constants`` what other constants hold.
    Raises :class:`~evaltools.errors.ModelError` where the schema's package is not installed.
    """
    model = _read(content)
    graph = model.subgraphs[0]
    operator = graph.operators[place]
    for name, value in options.items():
        setattr(operator.builtinOptions, name, value)
    for index, held in (constants or {}).items():
        tensor = graph.tensors[index]
        model.buffers.append(copy.copy(model.buffers[tensor.buffer]))
        model.buffers[-1].data = np.frombuffer(held, np.uint8)
        tensor.buffer = len(model.buffers) - 1
    for index, shape in (shapes or {}).items():
        graph.tensors[index].shape, graph.tensors[index].shapeSignature = np.array(shape, np.int32), None
    builder = aligned_builder(len(content) + _ROOM)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _read(content: bytes) -> Any:
    schema = schema_package()
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
