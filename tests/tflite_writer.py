"""Writes TensorFlow Lite model files with the schema of ai-edge-litert.

Only what small test models need: graphs, builtin and custom ops, constants, per-tensor quantisation, signatures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.model.cut import packed, schema_package

Shape = Sequence[int]

TENSOR_TYPES = {
    name: getattr(schema_package().TensorType, name.upper())
    for name in ("float32", "float16", "int32", "uint8", "int8", "int16", "int64", "bool", "string", "resource")
}


class Quantization(Struct, frozen=True):
    """A real value is scale * (stored value - zero_point); ``scales`` are those of channels, along ``axis``."""

    scale: float
    zero_point: int
    scales: tuple[float, ...] = ()
    axis: int = 0


class Signature(Struct, frozen=True):
    """A key, the number of its graph, and tensor indices by name."""

    key: str
    graph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


class Graph:
    """Collects the tensors and nodes of a graph, then writes the file; ``next_graph`` makes several."""

    def __init__(self) -> None:
        self._schema = schema_package()
        self._model = _made(
            self._schema.ModelT, version=3, operatorCodes=[], subgraphs=[], buffers=[self._schema.BufferT()]
        )
        self._graph = self._new_graph()

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
        tensor = _made(
            self._schema.TensorT,
            name=name,
            shape=_integers(shape),
            type=TENSOR_TYPES[dtype],
            shapeSignature=_integers(shape_signature) if shape_signature else None,
            isVariable=variable,
        )
        if quantization is not None:
            scales = quantization.scales or (quantization.scale,)
            tensor.quantization = _made(
                self._schema.QuantizationParametersT,
                scale=np.array(scales, np.float32),
                zeroPoint=np.full(len(scales), quantization.zero_point, np.int64),
                quantizedDimension=quantization.axis,
            )
        self._graph.tensors.append(tensor)
        return len(self._graph.tensors) - 1

    def constant(self, name: str, values: npt.NDArray[np.generic], quantization: Quantization | None = None) -> int:
        """Add a tensor whose values are part of the model; returns its index."""
        index = self.tensor(name, values.shape, values.dtype.name, quantization)
        self._graph.tensors[index].buffer = self._buffer(values.tobytes())
        return index

    def shape(self, tensor: int) -> tuple[int, ...]:
        """The shape of the tensor with this index."""
        return tuple(map(int, self._graph.tensors[tensor].shape))

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
        outputs = [output] if isinstance(output, int) else output
        node = _made(
            self._schema.OperatorT,
            opcodeIndex=self._code_index(op, version),
            inputs=_integers(inputs),
            outputs=_integers(outputs),
        )
        if isinstance(options, bytes):
            node.customOptions = np.frombuffer(options, np.uint8)
        elif options:
            own = {f"{name[0].lower()}{name[1:]}": value for name, value in fields.items()}
            node.builtinOptionsType = getattr(self._schema.BuiltinOptions, options)
            node.builtinOptions = _made(getattr(self._schema, f"{options}T"), **own)
        self._graph.operators.append(node)
        return outputs[0] if outputs else -1

    def next_graph(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Finish a graph with these inputs and outputs; tensors and nodes added from now on are another one's."""
        self._graph.inputs, self._graph.outputs = _integers(inputs), _integers(outputs)
        self._model.subgraphs.append(self._graph)
        self._graph = self._new_graph()

    def to_bytes(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        signatures: Sequence[Signature] = (),
        metadata: bytes = b"",
    ) -> bytes:
        """The .tflite file; the last graph has these inputs and outputs."""
        self.next_graph(inputs, outputs)
        if signatures:
            self._model.signatureDefs = [self._signature(signature) for signature in signatures]
        if metadata:
            buffer = self._buffer(metadata)
            self._model.metadata = [_made(self._schema.MetadataT, name="TFLITE_METADATA", buffer=buffer)]
        return packed(self._model)

    def _new_graph(self) -> Any:
        return _made(self._schema.SubGraphT, tensors=[], operators=[])

    def _buffer(self, content: bytes) -> int:
        self._model.buffers.append(_made(self._schema.BufferT, data=np.frombuffer(content, np.uint8)))
        return len(self._model.buffers) - 1

    def _code_index(self, op: str, version: int) -> int:
        kinds = self._schema.BuiltinOperator
        builtin = getattr(kinds, op, kinds.CUSTOM)
        custom = op if builtin == kinds.CUSTOM else None
        codes = self._model.operatorCodes
        for index, code in enumerate(codes):
            if (code.builtinCode, code.version, code.customCode) == (builtin, version, custom):
                return index
        codes.append(
            _made(
                self._schema.OperatorCodeT,
                builtinCode=builtin,
                deprecatedBuiltinCode=min(builtin, 127),
                version=version,
                customCode=custom,
            )
        )
        return len(codes) - 1

    def _signature(self, signature: Signature) -> Any:
        inputs, outputs = (
            [_made(self._schema.TensorMapT, name=name, tensorIndex=tensor) for name, tensor in tensors.items()]
            for tensors in (signature.inputs, signature.outputs)
        )
        return _made(
            self._schema.SignatureDefT,
            signatureKey=signature.key,
            inputs=inputs,
            outputs=outputs,
            subgraphIndex=signature.graph,
        )


def _made(kind: Any, **fields: Any) -> Any:
    """A table of the schema with these fields, each of which it must have."""
    table = kind()
    unknown = set(fields) - set(vars(table))
    assert not unknown, f"{kind.__name__} has no {', '.join(unknown)}"
    for name, value in fields.items():
        setattr(table, name, value)
    return table


def _integers(values: Sequence[int]) -> npt.NDArray[np.int32]:
    return np.array(values, np.int32)
