"""Writes TensorFlow Lite model files with the schema package ``tflite`` of PyPI.

Only what small test models need: graphs, builtin and custom ops, constants, per-tensor quantisation, signatures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite
from msgspec import Struct

Shape = Sequence[int]

SCHEMA_VERSION = 3
FILE_IDENTIFIER = b"TFL3"
BUFFER_ALIGNMENT = 16

TENSOR_TYPES = {
    "float32": tflite.TensorType.FLOAT32,
    "float16": tflite.TensorType.FLOAT16,
    "int32": tflite.TensorType.INT32,
    "uint8": tflite.TensorType.UINT8,
    "int8": tflite.TensorType.INT8,
    "int16": tflite.TensorType.INT16,
    "int64": tflite.TensorType.INT64,
    "bool": tflite.TensorType.BOOL,
    "string": tflite.TensorType.STRING,
    "resource": tflite.TensorType.RESOURCE,
}


class Quantization(Struct, frozen=True):
    """A real value is scale * (stored value - zero_point)."""

    scale: float
    zero_point: int


class Signature(Struct, frozen=True):
    """A key, the number of its graph, and tensor indices by name."""

    key: str
    graph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


class Graph:
    """Collects the tensors and nodes of a graph, then writes the file; ``next_graph`` makes several."""

    def __init__(self) -> None:
        self._builder = flatbuffers.Builder(4096)
        self._codes: list[tuple[int, int, str]] = []
        self._subgraphs: list[int] = []
        self._buffers = [self._buffer(b"")]
        self._tensors: list[int] = []
        self._shapes: list[tuple[int, ...]] = []
        self._nodes: list[int] = []

    def tensor(
        self,
        name: str,
        shape: Shape,
        dtype: str = "float32",
        quantization: Quantization | None = None,
        shape_signature: Shape = (),
        variable: bool = False,
    ) -> int:
        """Add a tensor that is computed or fed; returns its index. ``shape_signature`` has -1 for a free size."""
        return self._add_tensor(name, shape, dtype, quantization, 0, shape_signature, variable)

    def constant(self, name: str, values: npt.NDArray[np.generic], quantization: Quantization | None = None) -> int:
        """Add a tensor whose values are part of the model; returns its index."""
        self._buffers.append(self._buffer(values.tobytes()))
        buffer = len(self._buffers) - 1
        return self._add_tensor(name, values.shape, values.dtype.name, quantization, buffer)

    def shape(self, tensor: int) -> tuple[int, ...]:
        """The shape of the tensor with this index."""
        return self._shapes[tensor]

    def node(
        self,
        op: str,
        inputs: Sequence[int],
        output: int | Sequence[int],
        options: str | bytes = "",
        version: int = 1,
        **fields: int | float | bool,
    ) -> int:
        """Add a node; returns the index of its (first) output.

        ``op`` is a name of BuiltinOperator, or that of a custom operator. ``options`` is the options
        table, such as "Conv2DOptions", and ``fields`` are its fields; those of a custom operator are bytes.
        """
        code = self._code_index(op, version)
        builtin = options if isinstance(options, str) else ""
        table = self._options(builtin, fields) if builtin else 0
        custom = self._byte_vector(options) if isinstance(options, bytes) else 0
        outputs = [output] if isinstance(output, int) else output
        input_vector = self._int_vector(inputs)
        output_vector = self._int_vector(outputs)
        tflite.OperatorStart(self._builder)
        tflite.OperatorAddOpcodeIndex(self._builder, code)
        tflite.OperatorAddInputs(self._builder, input_vector)
        tflite.OperatorAddOutputs(self._builder, output_vector)
        if builtin:
            tflite.OperatorAddBuiltinOptionsType(self._builder, getattr(tflite.BuiltinOptions, builtin))
            tflite.OperatorAddBuiltinOptions(self._builder, table)
        if custom:
            tflite.OperatorAddCustomOptions(self._builder, custom)
        self._nodes.append(tflite.OperatorEnd(self._builder))
        return outputs[0] if outputs else -1

    def next_graph(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Finish a graph with these inputs and outputs; tensors and nodes added from now on are another one's."""
        self._subgraphs.append(self._subgraph(inputs, outputs))
        self._tensors, self._shapes, self._nodes = [], [], []

    def to_bytes(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        signatures: Sequence[Signature] = (),
        metadata: bytes = b"",
    ) -> bytes:
        """The .tflite file; the last graph has these inputs and outputs."""
        self.next_graph(inputs, outputs)
        if metadata:
            self._buffers.append(self._buffer(metadata))
        codes = self._offset_vector([self._operator_code(*code) for code in self._codes])
        buffers = self._offset_vector(self._buffers)
        subgraphs = self._offset_vector(self._subgraphs)
        signature_vector = self._offset_vector([self._signature(signature) for signature in signatures])
        metadata_vector = self._offset_vector([self._metadata(len(self._buffers) - 1)] if metadata else [])
        tflite.ModelStart(self._builder)
        tflite.ModelAddVersion(self._builder, SCHEMA_VERSION)
        tflite.ModelAddOperatorCodes(self._builder, codes)
        tflite.ModelAddSubgraphs(self._builder, subgraphs)
        tflite.ModelAddBuffers(self._builder, buffers)
        if signatures:
            tflite.ModelAddSignatureDefs(self._builder, signature_vector)
        if metadata:
            tflite.ModelAddMetadata(self._builder, metadata_vector)
        self._builder.Finish(tflite.ModelEnd(self._builder), FILE_IDENTIFIER)
        return bytes(self._builder.Output())

    def _buffer(self, data: bytes) -> int:
        vector = self._byte_vector(data) if data else 0
        tflite.BufferStart(self._builder)
        if data:
            tflite.BufferAddData(self._builder, vector)
        return int(tflite.BufferEnd(self._builder))

    def _byte_vector(self, data: bytes) -> int:
        self._builder.Prep(BUFFER_ALIGNMENT, len(data))
        return int(self._builder.CreateByteVector(data))

    def _int_vector(self, values: Sequence[int]) -> int:
        return int(self._builder.CreateNumpyVector(np.array(values, np.int32)))

    def _offset_vector(self, offsets: Sequence[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _add_tensor(
        self,
        name: str,
        shape: Shape,
        dtype: str,
        quantization: Quantization | None,
        buffer: int,
        shape_signature: Shape = (),
        variable: bool = False,
    ) -> int:
        name_offset = self._builder.CreateString(name)
        shape_vector = self._int_vector(shape)
        signature_vector = self._int_vector(shape_signature) if shape_signature else 0
        parameters = self._quantization(quantization) if quantization else 0
        tflite.TensorStart(self._builder)
        tflite.TensorAddName(self._builder, name_offset)
        tflite.TensorAddShape(self._builder, shape_vector)
        tflite.TensorAddType(self._builder, TENSOR_TYPES[dtype])
        tflite.TensorAddBuffer(self._builder, buffer)
        if quantization:
            tflite.TensorAddQuantization(self._builder, parameters)
        if shape_signature:
            tflite.TensorAddShapeSignature(self._builder, signature_vector)
        tflite.TensorAddIsVariable(self._builder, variable)
        self._tensors.append(tflite.TensorEnd(self._builder))
        self._shapes.append(tuple(shape))
        return len(self._tensors) - 1

    def _quantization(self, quantization: Quantization) -> int:
        scales = self._builder.CreateNumpyVector(np.array([quantization.scale], np.float32))
        zeros = self._builder.CreateNumpyVector(np.array([quantization.zero_point], np.int64))
        tflite.QuantizationParametersStart(self._builder)
        tflite.QuantizationParametersAddScale(self._builder, scales)
        tflite.QuantizationParametersAddZeroPoint(self._builder, zeros)
        return int(tflite.QuantizationParametersEnd(self._builder))

    def _options(self, table: str, fields: dict[str, int | float | bool]) -> int:
        """Write an options table: table "AddOptions" has tflite.AddOptionsStart and so on."""
        getattr(tflite, f"{table}Start")(self._builder)
        for name, value in fields.items():
            getattr(tflite, f"{table}Add{name}")(self._builder, value)
        return int(getattr(tflite, f"{table}End")(self._builder))

    def _code_index(self, op: str, version: int) -> int:
        builtin = getattr(tflite.BuiltinOperator, op, None)
        code = (tflite.BuiltinOperator.CUSTOM, version, op) if builtin is None else (builtin, version, "")
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)

    def _operator_code(self, builtin: int, version: int, custom: str) -> int:
        name = self._builder.CreateString(custom) if custom else 0
        tflite.OperatorCodeStart(self._builder)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self._builder, min(builtin, 127))
        tflite.OperatorCodeAddBuiltinCode(self._builder, builtin)
        tflite.OperatorCodeAddVersion(self._builder, version)
        if custom:
            tflite.OperatorCodeAddCustomCode(self._builder, name)
        return int(tflite.OperatorCodeEnd(self._builder))

    def _metadata(self, buffer: int) -> int:
        name = self._builder.CreateString("TFLITE_METADATA")
        tflite.MetadataStart(self._builder)
        tflite.MetadataAddName(self._builder, name)
        tflite.MetadataAddBuffer(self._builder, buffer)
        return int(tflite.MetadataEnd(self._builder))

    def _signature(self, signature: Signature) -> int:
        key = self._builder.CreateString(signature.key)
        inputs = self._offset_vector([self._tensor_map(*entry) for entry in signature.inputs.items()])
        outputs = self._offset_vector([self._tensor_map(*entry) for entry in signature.outputs.items()])
        tflite.SignatureDefStart(self._builder)
        tflite.SignatureDefAddSignatureKey(self._builder, key)
        tflite.SignatureDefAddInputs(self._builder, inputs)
        tflite.SignatureDefAddOutputs(self._builder, outputs)
        tflite.SignatureDefAddSubgraphIndex(self._builder, signature.graph)
        return int(tflite.SignatureDefEnd(self._builder))

    def _tensor_map(self, name: str, tensor: int) -> int:
        name_offset = self._builder.CreateString(name)
        tflite.TensorMapStart(self._builder)
        tflite.TensorMapAddName(self._builder, name_offset)
        tflite.TensorMapAddTensorIndex(self._builder, tensor)
        return int(tflite.TensorMapEnd(self._builder))

    def _subgraph(self, inputs: Sequence[int], outputs: Sequence[int]) -> int:
        tensors = self._offset_vector(self._tensors)
        nodes = self._offset_vector(self._nodes)
        input_vector, output_vector = self._int_vector(inputs), self._int_vector(outputs)
        tflite.SubGraphStart(self._builder)
        tflite.SubGraphAddTensors(self._builder, tensors)
        tflite.SubGraphAddInputs(self._builder, input_vector)
        tflite.SubGraphAddOutputs(self._builder, output_vector)
        tflite.SubGraphAddOperators(self._builder, nodes)
        return int(tflite.SubGraphEnd(self._builder))
