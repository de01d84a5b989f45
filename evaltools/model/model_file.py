"""Reads a ``.tflite`` file: what it is, what it takes and gives, and whether it is safe to hand to a runtime."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.errors import ModelError
from evaltools.model.flatbuffer import DamagedFlatbuffer, Table, iterate_union
from evaltools.model.metadata import InputNormalization, input_normalization

IDENTIFIER: Final = b"TFL3"
_METADATA_NAME: Final = "TFLITE_METADATA"

TENSOR_TYPES: Final = (
    "float32", "float16", "int32", "uint8", "int64", "string", "bool", "int16", "complex64", "int8", "float64",
    "complex128", "uint64", "resource", "variant", "uint32", "uint16", "int4", "bfloat16",
)  # fmt: skip
"""Names of the schema's ``TensorType`` in its order."""


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of the main graph.

    ``shape`` is the shape in the file, ``shape_signature`` the same with -1 where the size may change. ``scale`` and
    ``zero_point`` are per-tensor quantisation, ``None`` where there is none (or it is per channel).
    """

    index: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    scale: float | None
    zero_point: int | None

    def __str__(self) -> str:
        return f"{self.name or 'unnamed'}: {self.dtype}[{','.join(map(str, self.shape_signature))}]"


@dataclass(frozen=True)
class ModelFile:
    """A model that was read completely: every table and vector in it lies inside the file."""

    path: Path
    sha256: str
    size_bytes: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    node_count: int
    normalization: InputNormalization | None


def read_model(path: Path) -> ModelFile:
    """Read and check a model; raises :class:`ModelError` for a missing, empty, truncated, damaged or foreign file."""
    content = _read_bytes(path)
    if content[4:8] != IDENTIFIER:
        raise ModelError(
            f"{path} is no TensorFlow Lite model: bytes 4..8 are {content[4:8]!r}, a .tflite file has {IDENTIFIER!r}. "
            f"{_foreign_kind(content)}Convert it to .tflite first, or check the path"
        )
    try:
        return _describe(path, content)
    except DamagedFlatbuffer as error:
        message = (
            f"{path} is damaged or cut short ({len(content)} bytes read): {error}. "
            "A runtime could crash on it; copy or convert the model again"
        )
        raise ModelError(message) from error


def _read_bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except IsADirectoryError:
        raise ModelError(f"--model_file={path} is a folder; give a .tflite file") from None
    except OSError as error:
        raise ModelError(f"--model_file={path} cannot be read: {error.strerror}") from error
    if not content:
        raise ModelError(f"--model_file={path} is empty; copy or convert the model again")
    return content


def _foreign_kind(content: bytes) -> str:
    known = {b"PK\x03\x04": "a zip or .keras archive", b"\x89HDF": "an HDF5 (.h5) file", b"\x08": "perhaps ONNX"}
    for start, kind in known.items():
        if content.startswith(start):
            return f"It looks like {kind}. "
    return ""


def _describe(path: Path, content: bytes) -> ModelFile:
    model = Table.root(memoryview(content))
    buffers = model.tables(4)
    for buffer in buffers:
        _check_buffer(buffer, len(content))
    subgraphs = model.tables(2)
    if not subgraphs:
        raise DamagedFlatbuffer("it holds no graph")
    opcodes = model.tables(1)
    for opcode in opcodes:
        opcode.text(1)
    for subgraph in subgraphs:
        _check_subgraph(subgraph, len(opcodes), len(buffers))
    for signature in model.tables(7):
        for tensor_map in signature.tables(0) + signature.tables(1):
            tensor_map.text(0)
        signature.text(2)
    model.text(3)
    main = subgraphs[0]
    tensors = main.tables(0)
    return ModelFile(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
        inputs=_infos(tensors, main.numbers(1, "int32")),
        outputs=_infos(tensors, main.numbers(2, "int32")),
        node_count=len(main.tables(3)),
        normalization=_metadata_normalization(model, buffers),
    )


def _check_buffer(buffer: Table, file_size: int) -> None:
    buffer.numbers(0, "uint8")
    offset, size = buffer.scalar(1, "Q"), buffer.scalar(2, "Q")
    if offset > 1 and offset + size > file_size:
        raise DamagedFlatbuffer("a weight buffer lies behind the end of the file")


def _check_subgraph(subgraph: Table, opcode_count: int, buffer_count: int) -> None:
    tensors = subgraph.tables(0)
    for tensor in tensors:
        buffer = tensor.scalar(2, "I")
        if buffer != 0 and buffer >= buffer_count:
            raise DamagedFlatbuffer("a tensor names a buffer that does not exist")
        _check_tensor(tensor)
    _check_indices(subgraph.numbers(1, "int32"), len(tensors))
    _check_indices(subgraph.numbers(2, "int32"), len(tensors))
    for operator in subgraph.tables(3):
        if operator.scalar(0, "I") >= opcode_count:
            raise DamagedFlatbuffer("a node names an operator that does not exist")
        for field in (1, 2, 8):
            _check_indices(operator.numbers(field, "int32"), len(tensors), optional=True)
        operator.numbers(5, "uint8")
        operator.numbers(7, "uint8")
        list(iterate_union(operator, 3, 4))
        list(iterate_union(operator, 11, 12))
    subgraph.text(4)


def _check_tensor(tensor: Table) -> None:
    tensor.text(3)
    sizes = np.concatenate([tensor.numbers(0, "int32"), tensor.numbers(7, "int32")]).astype(np.int64)
    if (sizes < -1).any():
        raise DamagedFlatbuffer(f"a tensor has the shape {sizes.tolist()}")
    quantization = tensor.table(4)
    if quantization is not None:
        for field in (0, 1, 2):
            quantization.numbers(field, "float32")
        quantization.numbers(3, "int64")
        list(iterate_union(quantization, 4, 5))
    tensor.table(6)


def _check_indices(indices: npt.NDArray[np.generic], tensor_count: int, optional: bool = False) -> None:
    lowest = -1 if optional else 0
    if any(not lowest <= int(index) < tensor_count for index in indices.tolist()):
        raise DamagedFlatbuffer("a node or graph names a tensor that does not exist")


def _infos(tensors: list[Table], indices: npt.NDArray[np.generic]) -> tuple[TensorInfo, ...]:
    return tuple(_info(index, tensors[index]) for index in indices.tolist())


def _info(index: int, tensor: Table) -> TensorInfo:
    kind = tensor.scalar(1, "b")
    shape = tuple(tensor.numbers(0, "int32").tolist())
    scale, zero_point = _per_tensor_quantization(tensor)
    return TensorInfo(
        index=index,
        name=tensor.text(3),
        dtype=TENSOR_TYPES[kind] if 0 <= kind < len(TENSOR_TYPES) else f"type {kind}",
        shape=shape,
        shape_signature=tuple(tensor.numbers(7, "int32").tolist()) or shape,
        scale=scale,
        zero_point=zero_point,
    )


def _per_tensor_quantization(tensor: Table) -> tuple[float | None, int | None]:
    quantization = tensor.table(4)
    if quantization is None:
        return None, None
    scales, zero_points = quantization.numbers(2, "float32"), quantization.numbers(3, "int64")
    if len(scales) != 1:
        return None, None
    return float(scales.tolist()[0]), int(zero_points.tolist()[0]) if len(zero_points) else 0


def _metadata_normalization(model: Table, buffers: list[Table]) -> InputNormalization | None:
    for entry in model.tables(6):
        buffer_index = entry.scalar(1, "I")
        if entry.text(0) == _METADATA_NAME and buffer_index < len(buffers):
            return input_normalization(buffers[buffer_index].numbers(0, "uint8").tobytes())
    return None
