"""What a part of a model consists of: its graph's name, and its outputs by name, type and shape."""

from __future__ import annotations

import importlib
from typing import Any, Final

from msgspec import Struct

from evaltools.model.model_file import TENSOR_TYPES

_TAP: Final = "/tap"


class PartTensor(Struct, frozen=True):
    """A tensor of a part."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class Anatomy(Struct, frozen=True):
    """A part; ``graph`` is the name of its graph, empty where it has none."""

    graph: str
    outputs: tuple[PartTensor, ...]

    def output_named(self, name: str, dtype: str, shape: tuple[int, ...]) -> int:
        """The place of an output by its name, of several by their kind; the last where none has that name.

        A copy that a part gives beside its outputs (a tap) counts as the tensor itself.
        """
        wanted = (dtype, shape)
        places = [place for place, each in enumerate(self.outputs) if each.name in (name, name + _TAP)]
        alike = [place for place in places if (self.outputs[place].dtype, self.outputs[place].shape) == wanted]
        return next(iter([*alike, *places]), len(self.outputs) - 1)


def anatomy(content: bytes) -> Anatomy:
    """Take a ``.tflite`` file apart that evaltools wrote or has checked."""
    schema = importlib.import_module("ai_edge_litert.schema_py_generated")
    graph = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0)).subgraphs[0]
    return Anatomy(_text(graph.name), tuple(_tensor(graph.tensors[place]) for place in graph.outputs))


def _tensor(tensor: Any) -> PartTensor:
    shape = () if tensor.shape is None else tuple(int(size) for size in tensor.shape)
    return PartTensor(_text(tensor.name), TENSOR_TYPES[tensor.type], shape)


def _text(name: bytes | None) -> str:
    return (name or b"").decode("utf-8", "replace")
