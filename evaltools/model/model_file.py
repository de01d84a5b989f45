"""Reads a ``.tflite`` file: what it is, what it takes and gives, and whether it is safe to hand to a runtime."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.errors import ModelError
from evaltools.model.flatbuffer import DamagedFlatbuffer, Table
from evaltools.model.metadata import InputNormalization, input_normalization
from evaltools.model.verify import verify_model

IDENTIFIER: Final = b"TFL3"
_METADATA_NAME: Final = "TFLITE_METADATA"

# Field numbers of the schema.
_MODEL_SUBGRAPHS, _MODEL_BUFFERS, _MODEL_METADATA = 2, 4, 6
_SUBGRAPH_TENSORS, _SUBGRAPH_INPUTS, _SUBGRAPH_OUTPUTS, _SUBGRAPH_OPERATORS = 0, 1, 2, 3
_TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_QUANTIZATION, _TENSOR_SHAPE_SIGNATURE = 0, 1, 3, 4, 7
_QUANTIZATION_SCALE, _QUANTIZATION_ZERO_POINT = 2, 3
_METADATA_KEY, _METADATA_BUFFER = 0, 1

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
    """A model that was checked completely: all that it points to lies inside the file."""

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
    if os.path.isdir(path):
        raise ModelError(f"{path} is a folder; give a .tflite file")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ModelError(f"{path} is no regular file; the runtimes read a model several times, so save it first")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    if not content:
        raise ModelError(f"{path} is empty; copy or convert the model again")
    return content


def _foreign_kind(content: bytes) -> str:
    known = {b"PK\x03\x04": "a zip or .keras archive", b"\x89HDF": "an HDF5 (.h5) file", b"\x08": "perhaps ONNX"}
    for start, kind in known.items():
        if content.startswith(start):
            return f"It looks like {kind}. "
    return ""


def _describe(path: Path, content: bytes) -> ModelFile:
    model = Table.root(memoryview(content))
    verify_model(model)
    main = model.tables(_MODEL_SUBGRAPHS)[0]
    tensors = main.tables(_SUBGRAPH_TENSORS)
    return ModelFile(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
        inputs=_infos(tensors, main.numbers(_SUBGRAPH_INPUTS, "int32")),
        outputs=_infos(tensors, main.numbers(_SUBGRAPH_OUTPUTS, "int32")),
        node_count=len(main.tables(_SUBGRAPH_OPERATORS)),
        normalization=_metadata_normalization(model),
    )


def _infos(tensors: list[Table], indices: npt.NDArray[np.generic]) -> tuple[TensorInfo, ...]:
    return tuple(_info(index, tensors[index]) for index in indices.tolist())


def _info(index: int, tensor: Table) -> TensorInfo:
    kind = tensor.integer(_TENSOR_TYPE, "b")
    shape = tuple(tensor.numbers(_TENSOR_SHAPE, "int32").tolist())
    scale, zero_point = _per_tensor_quantization(tensor)
    return TensorInfo(
        index=index,
        name=tensor.text(_TENSOR_NAME),
        dtype=TENSOR_TYPES[kind] if 0 <= kind < len(TENSOR_TYPES) else f"type {kind}",
        shape=shape,
        shape_signature=tuple(tensor.numbers(_TENSOR_SHAPE_SIGNATURE, "int32").tolist()) or shape,
        scale=scale,
        zero_point=zero_point,
    )


def _per_tensor_quantization(tensor: Table) -> tuple[float | None, int | None]:
    quantization = tensor.table(_TENSOR_QUANTIZATION)
    if quantization is None:
        return None, None
    scales = quantization.numbers(_QUANTIZATION_SCALE, "float32").tolist()
    zero_points = quantization.numbers(_QUANTIZATION_ZERO_POINT, "int64").tolist()
    if len(scales) != 1:
        return None, None
    return float(scales[0]), int(zero_points[0]) if zero_points else 0


def _metadata_normalization(model: Table) -> InputNormalization | None:
    buffers = model.tables(_MODEL_BUFFERS)
    for entry in model.tables(_MODEL_METADATA):
        index = entry.integer(_METADATA_BUFFER, "I")
        if entry.text(_METADATA_KEY) == _METADATA_NAME and index < len(buffers):
            return input_normalization(buffers[index].numbers(0, "uint8").tobytes())
    return None
