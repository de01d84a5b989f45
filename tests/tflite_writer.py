"""Writes TensorFlow Lite model files with the schema package ``tflite`` of PyPI.

Only what small test models need: one subgraph, builtin ops, constants, per-tensor quantisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite

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
}


@dataclass(frozen=True)
class Quantization:
    """A real value is scale * (stored value - zero_point)."""

    scale: float
    zero_point: int


class Graph:
    """Collects the tensors and nodes of a model with one subgraph, then writes the file."""

    def __init__(self) -> None:
        self._builder = flatbuffers.Builder(4096)
        self._codes: list[tuple[int, int]] = []
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
    ) -> int:
        """Add a tensor that is computed or fed; returns its index."""
        return self._add_tensor(name, shape, dtype, quantization, buffer=0)

    def constant(self, name: str, values: npt.NDArray[np.generic]) -> int:
        """Add a tensor whose values are part of the model; returns its index."""
        self._buffers.append(self._buffer(values.tobytes()))
        buffer = len(self._buffers) - 1
        return self._add_tensor(name, values.shape, values.dtype.name, None, buffer)

    def shape(self, tensor: int) -> tuple[int, ...]:
        """The shape of the tensor with this index."""
        return self._shapes[tensor]

    def node(
        self,
        op: str,
        inputs: Sequence[int],
        output: int,
        options: str = "",
        version: int = 1,
        **fields: int | float | bool,
    ) -> int:
        """Add a node; returns the index of its output.

        ``op`` is a name of BuiltinOperator. ``options`` is the options table, such as
        "Conv2DOptions", and ``fields`` are its fields.
        """
        code = self._code_index(op, version)
        table = self._options(options, fields) if options else 0
        input_vector = self._int_vector(inputs)
        output_vector = self._int_vector([output])
        tflite.OperatorStart(self._builder)
        tflite.OperatorAddOpcodeIndex(self._builder, code)
        tflite.OperatorAddInputs(self._builder, input_vector)
        tflite.OperatorAddOutputs(self._builder, output_vector)
        if options:
            tflite.OperatorAddBuiltinOptionsType(self._builder, getattr(tflite.BuiltinOptions, options))
            tflite.OperatorAddBuiltinOptions(self._builder, table)
        self._nodes.append(tflite.OperatorEnd(self._builder))
        return output

    def to_bytes(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """The .tflite file with these graph inputs and outputs."""
        subgraph = self._subgraph(inputs, outputs)
        codes = self._offset_vector([self._operator_code(*code) for code in self._codes])
        buffers = self._offset_vector(self._buffers)
        subgraphs = self._offset_vector([subgraph])
        tflite.ModelStart(self._builder)
        tflite.ModelAddVersion(self._builder, SCHEMA_VERSION)
        tflite.ModelAddOperatorCodes(self._builder, codes)
        tflite.ModelAddSubgraphs(self._builder, subgraphs)
        tflite.ModelAddBuffers(self._builder, buffers)
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

    def _add_tensor(self, name: str, shape: Shape, dtype: str, quantization: Quantization | None, buffer: int) -> int:
        name_offset = self._builder.CreateString(name)
        shape_vector = self._int_vector(shape)
        parameters = self._quantization(quantization) if quantization else 0
        tflite.TensorStart(self._builder)
        tflite.TensorAddName(self._builder, name_offset)
        tflite.TensorAddShape(self._builder, shape_vector)
        tflite.TensorAddType(self._builder, TENSOR_TYPES[dtype])
        tflite.TensorAddBuffer(self._builder, buffer)
        if quantization:
            tflite.TensorAddQuantization(self._builder, parameters)
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
        code = (getattr(tflite.BuiltinOperator, op), version)
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)

    def _operator_code(self, builtin: int, version: int) -> int:
        tflite.OperatorCodeStart(self._builder)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self._builder, builtin)
        tflite.OperatorCodeAddBuiltinCode(self._builder, builtin)
        tflite.OperatorCodeAddVersion(self._builder, version)
        return int(tflite.OperatorCodeEnd(self._builder))

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
