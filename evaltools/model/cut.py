"""Cuts parts out of a ``.tflite`` file: models of their own that hold some of its operators.

The schema package of ai-edge-litert writes the tables. Constants are not copied until the part is written, so that
parts of a large model cost little.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec import Struct

from evaltools.errors import ModelError
from evaltools.model.contents import TENSOR_TYPES, read_graphs

_FILE_IDENTIFIER: Final = b"TFL3"
_INT32: Final = 2
_RESOURCES: Final = ("resource", "variant")
_TEXT: Final = "string"
_RESHAPE: Final = 22
_RESHAPE_OPTIONS: Final = 17
_BLOCKWISE: Final = 2
CONTROL_FLOW: Final = frozenset({"IF", "WHILE", "CALL", "CALL_ONCE", "STABLEHLO_COMPOSITE", "STABLEHLO_WHILE"})
_RANDOM: Final = frozenset({"RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL", "STABLEHLO_RNG_BIT_GENERATOR"})
_STORED: Final = frozenset({"DEQUANTIZE", "DENSIFY"})
_PARAMETERS: Final = frozenset({"int32", "int64"})
"""Types of shapes, axes and other parameters, which delegates want to know before the model runs."""
_ALIGNMENT: Final = 16
_ROOM: Final = 1 << 16


class Form(Struct, frozen=True):
    """What a tensor was in a run: its shape, and the name of its NumPy type."""

    shape: tuple[int, ...]
    dtype: str


class NotCuttable(ModelError):
    """These operators cannot be a model of their own; the text says why."""


class Cut(Struct, frozen=True):
    """A model that holds the operators ``first`` to ``last`` of another one.

    ``inputs`` and ``outputs`` are its tensors in their order, by the numbers that they have in the other model.
    ``stateful``: it keeps values from one run to the next, so that only its first run starts as the other's does.
    """

    content: bytes
    first: int
    last: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    stateful: bool = False


class CuttableModel:
    """A model in the memory of this process, of whose main graph parts can be cut.

    ``content`` is that of a file which :func:`~evaltools.model.read_model` has checked. Raises :class:`ModelError`
    where ai-edge-litert, whose schema writes parts, is not installed.
    """

    def __init__(self, content: bytes) -> None:
        schema_package()
        self._content: Final = content
        self._graph: Final = read_graphs(memoryview(content))[0]

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The operators of the main graph by name, in the order of execution."""
        return tuple(node.operator for node in self._graph.nodes)

    @property
    def makers(self) -> Mapping[int, int]:
        """Which operator makes a tensor, by the numbers of both."""
        return self._graph.makers

    @cached_property
    def folded(self) -> frozenset[int]:
        """The operators on constants that are cut with their users: what unpacks weights, and what computes shapes.

        Any other operator on constants is a part as all are: it can be wrong, and its users can be right.
        """
        on_constants: set[int] = set()
        found: set[int] = set()
        for node in self._graph.nodes:
            fixed = all(self._is_constant(tensor) or self.makers.get(tensor) in on_constants for tensor in node.inputs)
            if not node.inputs or not fixed or node.operator in _RANDOM | CONTROL_FLOW:
                continue
            on_constants.add(node.index)
            unpacks = node.operator in _STORED and all(
                self.makers.get(tensor, -1) in {-1, *found} for tensor in node.inputs
            )
            if unpacks or all(self._graph.tensors[tensor].dtype in _PARAMETERS for tensor in node.outputs):
                found.add(node.index)
        return frozenset(found)

    def made_by(self, place: int) -> tuple[int, ...]:
        """The tensors that an operator makes."""
        return self._graph.nodes[place].outputs

    def fed_to(self, place: int) -> tuple[int, ...]:
        """The tensors that an operator reads and that are computed from the model's inputs."""
        read = self._graph.nodes[place].inputs
        return tuple(dict.fromkeys(tensor for tensor in read if self._is_fed(tensor)))

    @property
    def graph_inputs(self) -> tuple[int, ...]:
        """The tensors that the model takes."""
        return self._graph.inputs

    @property
    def graph_outputs(self) -> tuple[int, ...]:
        """The tensors that the model gives."""
        return self._graph.outputs

    def holds_numbers(self, tensor: int) -> bool:
        """Whether its values can be given and taken: no text, no resource."""
        return self._graph.tensors[tensor].dtype not in (*_RESOURCES, _TEXT)

    def form(self, tensor: int) -> Form:
        """The shape and type of a tensor as the file has them."""
        held = self._graph.tensors[tensor]
        return Form(held.shape, held.dtype)

    def custom_options(self, place: int) -> bytes:
        """The options of a custom operator, in a form of its own."""
        return self._graph.nodes[place].custom_options

    def options(self, place: int) -> Mapping[str, bool | int | float]:
        """The fields of a builtin operator's options by the names of the schema's package; lists are left out."""
        table = self._tables.subgraphs[0].operators[place].builtinOptions
        fields = {} if table is None else vars(table)
        return {name: value for name, value in fields.items() if isinstance(value, bool | int | float)}

    def name(self, tensor: int) -> str:
        """The name of a tensor."""
        return self._graph.tensors[tensor].name

    def cut(
        self,
        first: int,
        last: int,
        forms: Mapping[int, Form],
        exposed: Sequence[int] = (),
        taps: Sequence[int] = (),
    ) -> Cut:
        """A model of the operators from ``first`` to ``last``, both included.

        Its inputs are what these read of other operators, its outputs what others read of them. ``forms`` are those of
        a run, by tensor: sizes that the file leaves open, and types that the runtime changed, are written down.
        ``exposed`` are outputs beside these; ``taps`` are given as copies, by a RESHAPE at the end, so that no memory
        is shared with them. Raises :class:`NotCuttable`.
        """
        places = self._with_folded(range(first, last + 1))
        inside = {tensor for place in places for tensor in self.made_by(place)}
        read = dict.fromkeys(tensor for place in places for tensor in self.fed_to(place))
        inputs = tuple(tensor for tensor in read if tensor not in inside)
        outputs = self._given(first, last)
        outputs += tuple(tensor for tensor in dict.fromkeys(exposed) if tensor not in outputs)
        self._require_values(inputs, outputs)
        writer = _Writer(self._tables, forms)
        control = any(self.operators[place] in CONTROL_FLOW for place in places)
        content, stateful = writer.write(places, inputs, outputs, taps, keep_graphs=control)
        return Cut(content, first, last, inputs, outputs + tuple(taps), stateful)

    @cached_property
    def _tables(self) -> Any:
        """The model as the schema's package has it, which writes parts of it."""
        return editable_model(self._content)

    def _given(self, first: int, last: int) -> tuple[int, ...]:
        """What operators of a range give to others or to the user; the last one's where nobody reads any."""
        made = [tensor for place in range(first, last + 1) for tensor in self.made_by(place)]
        later = {tensor for node in self._graph.nodes[last + 1 :] for tensor in node.inputs} | set(self.graph_outputs)
        read = tuple(tensor for tensor in dict.fromkeys(made) if tensor in later and not self._is_folded(tensor))
        return read or self.made_by(last)

    def _with_folded(self, places: Iterable[int]) -> list[int]:
        wanted = set(places)
        waiting = list(wanted)
        while waiting:
            for tensor in self._graph.nodes[waiting.pop()].inputs:
                maker = self.makers.get(tensor)
                if maker in self.folded and maker not in wanted:
                    wanted.add(maker)
                    waiting.append(maker)
        return sorted(wanted)

    def _require_values(self, inputs: Iterable[int], outputs: Iterable[int]) -> None:
        for tensor in (*inputs, *outputs):
            kind = self._graph.tensors[tensor].dtype
            if kind in _RESOURCES:
                raise NotCuttable(f"the tensor {self.name(tensor)!r} is a resource, whose content no run gives")
            if kind == _TEXT:
                raise NotCuttable(f"the tensor {self.name(tensor)!r} holds text")

    def _is_folded(self, tensor: int) -> bool:
        return self.makers.get(tensor) in self.folded

    def _is_fed(self, tensor: int) -> bool:
        """Whether its values come from outside: no constant, none made of constants, none that a run leaves behind."""
        return not (self._is_constant(tensor) or self._is_folded(tensor) or self._keeps_state(tensor))

    def _is_constant(self, tensor: int) -> bool:
        """Whether its values stand in the file; a constant of no elements has no content either."""
        return tensor not in self.makers and tensor not in self.graph_inputs and not self._keeps_state(tensor)

    def _keeps_state(self, tensor: int) -> bool:
        return tensor >= 0 and self._graph.tensors[tensor].is_variable


class _Writer:
    """Writes one part: gathers its tensors and constants, and gives them new numbers."""

    def __init__(self, model: Any, forms: Mapping[int, Form]) -> None:
        self._schema = schema_package()
        self._model = model
        self._forms = forms
        self._codes = list(model.operatorCodes)
        self._tensors: dict[int, int] = {}
        self._new_tensors: list[Any] = []
        self._buffers: dict[int, int] = {0: 0}
        self._new_buffers: list[Any] = [self._schema.BufferT()]

    def write(
        self,
        places: Sequence[int],
        inputs: Sequence[int],
        outputs: Sequence[int],
        taps: Sequence[int],
        keep_graphs: bool,
    ) -> tuple[bytes, bool]:
        """The content of the file, and whether it keeps state."""
        old = self._model.subgraphs[0]
        part = copy.copy(old)
        part.operators = [self._operator(old.operators[place]) for place in places]
        part.inputs = self._mapped(inputs)
        tapped = [self._tap(tensor) for tensor in taps]
        part.operators += [operator for operator, _ in tapped]
        part.outputs = np.array([*self._mapped(outputs), *(tensor for _, tensor in tapped)], np.int32)
        part.tensors = self._new_tensors
        model = copy.copy(self._model)
        model.subgraphs = [part, *([self._kept(graph) for graph in self._model.subgraphs[1:]] if keep_graphs else ())]
        model.buffers = self._new_buffers
        model.operatorCodes = self._codes
        model.signatureDefs = model.metadata = model.metadataBuffer = None
        return packed(model), any(tensor.isVariable for tensor in self._new_tensors)

    def _operator(self, operator: Any) -> Any:
        written = copy.copy(operator)
        for field in ("inputs", "outputs", "intermediates"):
            value = getattr(operator, field)
            if value is not None:
                setattr(written, field, self._mapped(value.tolist()))
        return written

    def _mapped(self, tensors: Iterable[int]) -> Any:
        return np.array([self._tensor(tensor) for tensor in tensors], np.int32)

    def _tensor(self, index: int) -> int:
        """The new number of a tensor; -1 stays, which stands for one that is left out."""
        if index < 0:
            return index
        if index not in self._tensors:
            old = self._model.subgraphs[0].tensors[index]
            if old.externalBuffer:
                raise NotCuttable(f"the constant {old.name!r} lies in another file")
            new = copy.copy(old)
            self._tensors[index] = len(self._new_tensors)
            self._new_tensors.append(new)
            new.buffer = self._buffer(old.buffer)
            new.quantization = self._quantization(old.quantization)
            if index in self._forms and not _has_content(self._model.buffers[old.buffer]):
                form = self._forms[index]
                new.shape, new.shapeSignature = np.array(form.shape, np.int32), None
                new.type = TENSOR_TYPES.index(form.dtype)
        return self._tensors[index]

    def _quantization(self, old: Any) -> Any:
        """The quantisation of a tensor; where scales lie in a tensor of their own, that comes along."""
        if old is None or old.detailsType != _BLOCKWISE:
            return old
        new = copy.copy(old)
        new.details = copy.copy(old.details)
        new.details.scales = self._tensor(old.details.scales)
        new.details.zeroPoints = self._tensor(old.details.zeroPoints)
        return new

    def _buffer(self, index: int) -> int:
        """The new number of a buffer; all that hold nothing are the first."""
        old = self._model.buffers[index]
        if not _has_content(old):
            return 0
        if index not in self._buffers:
            self._buffers[index] = self._add_buffer(old.data)
        return self._buffers[index]

    def _add_buffer(self, data: Any) -> int:
        new = self._schema.BufferT()
        new.data = np.frombuffer(data, np.uint8)
        self._new_buffers.append(new)
        return len(self._new_buffers) - 1

    def _tap(self, tensor: int) -> tuple[Any, int]:
        """A RESHAPE that copies a tensor, and the copy's new number."""
        source = self._tensor(tensor)
        copied = copy.copy(self._new_tensors[source])
        copied.name = (copied.name or b"") + b"/tap"
        copied.isVariable = False
        sizes = [int(size) for size in (copied.shape if copied.shape is not None else ())]
        shape = self._schema.TensorT()
        shape.name, shape.type = copied.name + b"/shape", _INT32
        shape.shape = np.array([len(sizes)], np.int32)
        shape.buffer = self._add_buffer(np.array(sizes, np.int32).tobytes()) if sizes else 0
        self._new_tensors += [copied, shape]
        place = len(self._new_tensors) - 2
        operator = operator_between(self._codes, _RESHAPE, [source, place + 1] if sizes else [source], place)
        options = self._schema.ReshapeOptionsT()
        options.newShape = np.array(sizes, np.int32)
        operator.builtinOptionsType, operator.builtinOptions = _RESHAPE_OPTIONS, options
        return operator, place

    def _kept(self, graph: Any) -> Any:
        """Another graph as it is, with the new numbers of its constants."""
        kept = copy.copy(graph)
        kept.tensors = []
        for tensor in graph.tensors:
            moved = copy.copy(tensor)
            moved.buffer = self._buffer(tensor.buffer)
            kept.tensors.append(moved)
        return kept


def editable_model(content: bytes) -> Any:
    """A model as objects of the schema's package; what lies behind the tables of the file is put among them."""
    schema = schema_package()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    for buffer in model.buffers:
        if buffer.offset > 1:
            buffer.data = np.frombuffer(content, np.uint8, buffer.size, buffer.offset)
            buffer.offset = buffer.size = 0
    for operator in [each for graph in model.subgraphs for each in graph.operators or ()]:
        start, size = operator.largeCustomOptionsOffset, operator.largeCustomOptionsSize
        if start > 1:
            operator.customOptions = np.frombuffer(content, np.uint8, size, start)
            operator.largeCustomOptionsOffset = operator.largeCustomOptionsSize = 0
    return model


def operator_between(codes: list[Any], code: int, sources: Sequence[int], target: int, version: int = 1) -> Any:
    """A new operator from tensors to a tensor, whose kind is added to the ``codes`` of the model."""
    schema = schema_package()
    kind = schema.OperatorCodeT()
    kind.builtinCode = kind.deprecatedBuiltinCode = code
    kind.version = version
    codes.append(kind)
    operator = schema.OperatorT()
    operator.opcodeIndex = len(codes) - 1
    operator.inputs, operator.outputs = np.array(sources, np.int32), np.array([target], np.int32)
    return operator


def packed(model: Any) -> bytes:
    """The content of a file with that model, its constants at multiples of 16, where the schema wants them."""
    base: Any = importlib.import_module("flatbuffers").Builder

    class Builder(base):  # type: ignore[misc]
        def CreateNumpyVector(self, x: Any) -> Any:  # noqa: N802 - the name that generated code calls
            if x.dtype != np.uint8:
                return super().CreateNumpyVector(x)
            self.StartVector(1, len(x), _ALIGNMENT)
            self.head -= len(x)
            self.Bytes[self.head : self.head + len(x)] = x.tobytes()
            return self.EndVector()

    builder = Builder(_ROOM + sum(len(buffer.data) for buffer in model.buffers if _has_content(buffer)))
    builder.Finish(model.Pack(builder), _FILE_IDENTIFIER)
    return bytes(builder.Output())


def schema_package() -> Any:
    """The schema of ai-edge-litert; raises :class:`ModelError` where that is not installed."""
    try:
        return importlib.import_module("ai_edge_litert.schema_py_generated")
    except ImportError as error:
        raise ModelError(
            f"parts of a model are cut with the schema of ai-edge-litert, which cannot be imported: {error}; "
            "pip install ai-edge-litert"
        ) from error


def _has_content(buffer: Any) -> bool:
    return buffer.data is not None and len(buffer.data) > 0
