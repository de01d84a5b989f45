"""What a part of a model consists of: operators with their options, tensors by name, type and shape."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from evaltools.model.model_file import TENSOR_TYPES
from evaltools.model.operators import operator_name

_ENUMS: Final = {"fusedActivationFunction": "ActivationFunctionType", "padding": "Padding"}
"""Options whose numbers stand for words, and the table of the schema that has these."""
_TAP: Final = "/tap"


class PartTensor(Struct, frozen=True):
    """A tensor of a part; ``is_constant``: its values stand in the file. ``quantization`` is in words."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_constant: bool = False
    quantization: str = ""

    @property
    def kind(self) -> str:
        """Type and shape, as ``float32[1,8]``."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class PartOperator(Struct, frozen=True):
    """An operator of a part, its tensors in order, its options by the schema's names."""

    name: str
    inputs: tuple[PartTensor, ...]
    outputs: tuple[PartTensor, ...]
    options: Mapping[str, str] = field(default_factory=dict)


class Anatomy(Struct, frozen=True):
    """A part; ``graph`` is the name of its graph, empty where it has none."""

    graph: str
    operators: tuple[PartOperator, ...]
    inputs: tuple[PartTensor, ...]
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
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    graph = model.subgraphs[0]
    tensors = [_tensor(tensor, model.buffers) for tensor in graph.tensors]

    def those(places: Iterable[int] | None) -> tuple[PartTensor, ...]:
        return tuple(tensors[place] for place in ([] if places is None else places) if place >= 0)

    operators = tuple(
        PartOperator(
            _name(model.operatorCodes[operator.opcodeIndex]),
            those(operator.inputs),
            those(operator.outputs),
            _options(schema, operator),
        )
        for operator in graph.operators
    )
    return Anatomy(_text(graph.name), operators, those(graph.inputs), those(graph.outputs))


def _tensor(tensor: Any, buffers: Any) -> PartTensor:
    shape = () if tensor.shape is None else tuple(int(size) for size in tensor.shape)
    data = buffers[tensor.buffer].data
    has_content = data is not None and len(data) > 0
    return PartTensor(
        _text(tensor.name), TENSOR_TYPES[tensor.type], shape, has_content, _quantization(tensor.quantization)
    )


def _quantization(parameters: Any) -> str:
    scales = [] if parameters is None or parameters.scale is None else [float(scale) for scale in parameters.scale]
    zeros = [] if parameters is None or parameters.zeroPoint is None else [int(zero) for zero in parameters.zeroPoint]
    if len(scales) > 1:
        return f"{len(scales)} scales"
    return f"scale {scales[0]:g}, zero point {zeros[0] if zeros else 0}" if scales else ""


def _name(code: Any) -> str:
    return operator_name(max(code.builtinCode, code.deprecatedBuiltinCode), _text(code.customCode))


def _options(schema: Any, operator: Any) -> dict[str, str]:
    table = operator.builtinOptions if operator.builtinOptions is not None else operator.builtinOptions2
    if table is None:
        return {}
    return {name: _option(schema, name, value) for name, value in vars(table).items() if value is not None}


def _option(schema: Any, name: str, value: Any) -> str:
    if name in _ENUMS:
        words = {number: word for word, number in vars(getattr(schema, _ENUMS[name])).items() if number == value}
        return str(words.get(value, value))
    return str(value.tolist() if hasattr(value, "tolist") else value)


def _text(name: bytes | None) -> str:
    return (name or b"").decode("utf-8", "replace")
