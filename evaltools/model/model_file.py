"""Reads a ``.tflite`` file: what it is, what it takes and gives, and whether it is safe to hand to a runtime."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import ModelError
from evaltools.file_content import MODEL_BYTES, Unreadable, content_of
from evaltools.model.contents import Graph, GraphTensor, read_graphs
from evaltools.model.flatbuffer import DamagedFlatbuffer, Table
from evaltools.model.graph import DetectionOutputs, find_detection_outputs, maker_of, range_by_graph, rows_selected
from evaltools.model.metadata import (
    InputNormalization,
    ValueRange,
    input_normalization,
    input_ranges,
    metadata_content,
    signature_graph,
    signature_keys,
    signature_names,
    with_main_graph,
)
from evaltools.model.verify import verify_model
from evaltools.parameter import did_you_mean

IDENTIFIER: Final = b"TFL3"
_METADATA_NAME: Final = "TFLITE_METADATA"
_RESOURCE: Final = "resource"
_ITEM_BYTES: Final = {"float32": 4, "float16": 2, "float64": 8, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4}
QUANTIZED_TYPES: Final = ("uint8", "int8", "int16", "uint16", "int4")


class TensorInfo(Struct, frozen=True):
    """One tensor of the main graph.

    ``shape`` is the shape to run with (that of the file unless stated otherwise), ``shape_signature`` the file's with
    -1 where the size may change. ``scale`` and ``zero_point`` are per-tensor quantisation, ``None`` where there is none
    (or it is per channel). ``signature_name`` is the name in the signature, empty without one.

    What the graph and the metadata say: ``rows`` of a table, one of which each value of an input selects; the
    ``stated_range`` of an input's values in the metadata, and the ``range_by_graph`` that its first operators show;
    the operator that an output is ``made_by``, perhaps reshaped or quantised afterwards.
    """

    index: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    scale: float | None
    zero_point: int | None
    signature_name: str = ""
    rows: int | None = None
    stated_range: ValueRange | None = None
    range_by_graph: ValueRange | None = None
    made_by: str = ""

    @property
    def is_quantized(self) -> bool:
        """Whether whole numbers stand for real ones, ``real = (quantised - zero_point) * scale``."""
        return bool(self.scale) and self.dtype in QUANTIZED_TYPES

    @property
    def step(self) -> float:
        """What one step of a quantised tensor is worth; 0 for others."""
        return self.scale if self.scale is not None and self.is_quantized else 0.0

    def __str__(self) -> str:
        return f"{self.name or 'unnamed'}: {self.dtype}[{','.join(map(str, self.shape_signature))}]"


class ModelFile(Struct, frozen=True):
    """A model that was checked completely: all that it points to lies inside the file.

    ``content`` is None where the file is to be run as it is; ``signature`` names the one whose graph is run, empty for
    the main graph. A ``stateful`` model may answer the same inputs differently the next time. ``held`` is what was
    read, for later: the file may be changed or deleted meanwhile. ``largest_bytes`` is the size of the largest tensor
    of its graph, with the shapes of the file.
    """

    path: Path
    sha256: str
    size_bytes: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    node_count: int
    normalization: InputNormalization | None
    signature: str = ""
    signatures: tuple[str, ...] = ()
    detection: DetectionOutputs | None = None
    stateful: bool = False
    content: bytes | None = None
    held: HeldFile | None = None
    largest_bytes: int = 0

    def read(self) -> bytes:
        """The content that is run: ``content``, or that of the file; raises :class:`ModelError` where that is gone."""
        if self.content is not None:
            return self.content
        try:
            return content_of(self._opened, MODEL_BYTES)
        except Unreadable as error:
            raise ModelError(f"{self.path} cannot be read any more: {error}; put it back") from error

    def source(self) -> str | bytes:
        """What a runtime loads: a path, or the content where that differs or the path is not Unicode."""
        if self.content is not None:
            return self.content
        try:
            str(self._opened).encode("utf-8")
        except UnicodeEncodeError:
            return self.read()
        return str(self._opened)

    @property
    def _opened(self) -> Path:
        return self.path if self.held is None else self.held.path

    def with_content(self, content: bytes) -> ModelFile:
        """The same model with other constants."""
        return replace(self, content=content)

    def with_input_shapes(self, shapes: Mapping[int, tuple[int, ...]]) -> ModelFile:
        """The same model to be run with other shapes, by position of the input.

        Raises :class:`ModelError` for a shape that contradicts the file's; sizes that the file leaves open are free.
        """
        inputs = [
            _resized(tensor, shapes[position], self.path) if position in shapes else tensor
            for position, tensor in enumerate(self.inputs)
        ]
        return replace(self, inputs=tuple(inputs))

    def named(self, what: str, name: str, tensors: Sequence[TensorInfo]) -> int:
        """Position of the tensor of that name, signature name or number; raises :class:`ModelError`."""
        found = [place for place, tensor in enumerate(tensors) if name and name in (tensor.name, tensor.signature_name)]
        if len(found) > 1:
            raise ModelError(f"{self.path} has {len(found)} {what}s named {name!r}; say {' or '.join(map(str, found))}")
        if found:
            return found[0]
        if name.isdecimal() and int(name) < len(tensors):
            return int(name)
        names = [tensor.signature_name or tensor.name for tensor in tensors]
        hint = did_you_mean(name, names)
        raise ModelError(f"{self.path} has no {what} {name!r}; it has {', '.join(map(repr, names)) or 'none'}.{hint}")


def _resized(tensor: TensorInfo, shape: tuple[int, ...], path: Path) -> TensorInfo:
    stated = tensor.shape_signature
    fits = not stated or (
        len(shape) == len(stated) and all(own in (-1, size) for own, size in zip(stated, shape, strict=True))
    )
    if not fits or any(size < 1 for size in shape):
        raise ModelError(
            f"{path}: the input {tensor} cannot have the shape {','.join(map(str, shape))}; "
            "sizes must be 1 or more, and only those that the model states as -1 are free"
        )
    return replace(tensor, shape=shape)


def read_model(path: Path, signature: str = "") -> ModelFile:
    """Read and check a model, to be run from its main graph or from that of a signature.

    Raises :class:`ModelError` for a missing, empty, truncated, damaged or foreign file, and for an unknown signature.
    """
    content = _read_bytes(path)
    if content[4:8] != IDENTIFIER:
        raise ModelError(
            f"{path} is not a TensorFlow Lite model: bytes 4..8 are {content[4:8]!r}, a .tflite file has {IDENTIFIER!r}"
            ". "
            f"{_foreign_kind(content)}Convert it to .tflite first, or check the path"
        )
    try:
        return _describe(path, content, signature)
    except DamagedFlatbuffer as error:
        message = (
            f"{path} is damaged or cut short ({len(content)} bytes read): {error}. "
            "A runtime could crash on it; copy or convert the model again"
        )
        raise ModelError(message) from error


def model_in_memory(content: bytes, path: Path) -> ModelFile:
    """A model that is in no file, such as a part of another one at ``path``; it is checked as one that is read."""
    try:
        return replace(_describe(path, content, ""), content=content, held=None)
    except DamagedFlatbuffer as error:
        raise ModelError(f"{path}: a model that was made of it is damaged: {error}") from error


def _read_bytes(path: Path) -> bytes:
    try:
        content = content_of(path, MODEL_BYTES)
    except Unreadable as error:
        raise ModelError(f"{path} cannot be read: {error}; give a .tflite file") from error
    if not content:
        raise ModelError(f"{path} is empty; copy or convert the model again")
    return content


def _foreign_kind(content: bytes) -> str:
    known = {b"PK\x03\x04": "a zip or .keras archive", b"\x89HDF": "an HDF5 (.h5) file", b"\x08": "perhaps ONNX"}
    for start, kind in known.items():
        if content.startswith(start):
            return f"It looks like {kind}. "
    return ""


def _describe(path: Path, content: bytes, signature: str) -> ModelFile:
    model = Table.root(memoryview(content))
    verify_model(model)
    edited = _with_signature_first(path, content, model, signature) if signature else content
    graph = signature_graph(model, signature) if signature else 0
    graphs = read_graphs(memoryview(content))
    main = graphs[graph]
    input_names, output_names = signature_names(model, graph, signature or None)
    metadata = metadata_content(model, _METADATA_NAME)
    ranges = input_ranges(metadata) if graph == 0 else {}
    return ModelFile(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
        inputs=tuple(
            replace(
                _info(main.tensors[index], input_names),
                rows=rows_selected(main, index),
                stated_range=ranges.get(position),
                range_by_graph=range_by_graph(main, index),
            )
            for position, index in enumerate(main.inputs)
        ),
        outputs=tuple(
            replace(_info(main.tensors[index], output_names), made_by=maker_of(main, index)) for index in main.outputs
        ),
        node_count=len(main.nodes),
        normalization=input_normalization(metadata) if graph == 0 else None,
        signature=signature,
        signatures=signature_keys(model),
        detection=find_detection_outputs(main),
        stateful=any(map(_keeps_state, graphs)),
        content=edited if graph else None,
        held=hold(content),
        largest_bytes=max(map(_bytes_of, main.tensors), default=0),
    )


def _bytes_of(tensor: GraphTensor) -> int:
    """The size of a tensor in memory; elements whose size is not known count as one byte each."""
    return math.prod(tensor.shape) * _ITEM_BYTES.get(tensor.dtype, 1)


def _with_signature_first(path: Path, content: bytes, model: Table, signature: str) -> bytes:
    keys = signature_keys(model)
    if signature not in keys:
        known = f"it has {', '.join(map(repr, keys))}" if keys else "it has none; leave --signature out"
        raise ModelError(f"{path} has no signature {signature!r}; {known}.{did_you_mean(signature, keys)}")
    graph = signature_graph(model, signature)
    return with_main_graph(content, graph, f"{path}: the graph of signature {signature!r}") if graph else content


def _keeps_state(graph: Graph) -> bool:
    """Whether a graph has variable tensors or resources, which keep values from one run to the next."""
    return any(tensor.is_variable or tensor.dtype == _RESOURCE for tensor in graph.tensors)


def _info(tensor: GraphTensor, names: Mapping[int, str]) -> TensorInfo:
    scale, zero_point = None, None
    if len(tensor.scales) == 1:
        scale, zero_point = tensor.scales[0], tensor.zero_points[0] if tensor.zero_points else 0
    return TensorInfo(
        index=tensor.index,
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        shape_signature=tensor.shape_signature,
        scale=scale,
        zero_point=zero_point,
        signature_name=names.get(tensor.index, ""),
    )


class HeldFile:
    """A file without a name, which other processes of this machine open by ``path`` while this object lives here.

    It is a private copy of a file that a run opens again and again: somebody may change or delete that meanwhile.
    """

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        self.path: Final = path
        if file is not None:
            weakref.finalize(self, file.close)

    def __reduce__(self) -> tuple[Callable[..., HeldFile], tuple[Path]]:
        return HeldFile, (self.path,)


def hold(content: bytes) -> HeldFile | None:
    """Hold a content, None where the platform cannot open a file without a name, or there is no room for it."""
    if sys.platform != "linux":
        return None
    try:
        file = tempfile.TemporaryFile(prefix="evaltools-")  # noqa: SIM115 - it is closed with the object that holds it
        file.write(content)
        file.flush()
    except OSError:
        return None
    return HeldFile(Path(f"/proc/{os.getpid()}/fd/{file.fileno()}"), file)
