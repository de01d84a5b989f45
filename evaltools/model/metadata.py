"""Reads what a model says of its inputs: metadata by name, and signatures, whose graph becomes the main graph.

The interpreters report delegation, and let inputs be resized, only for the main graph. Every other graph can take its
place as long as no node calls one of the two by its number.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.errors import ModelError
from evaltools.model.flatbuffer import DamagedFlatbuffer, Table

_MODEL_BUFFERS, _MODEL_METADATA, _ENTRY_NAME, _ENTRY_BUFFER = 4, 6, 0, 1
# Field numbers of the metadata schema, and the kind of ProcessUnit that matters here.
_SUBGRAPH_METADATA, _INPUT_TENSOR_METADATA, _PROCESS_UNITS, _STATS, _OPTIONS_KIND, _OPTIONS = 3, 2, 4, 5, 0, 1
_NORMALIZATION_OPTIONS = 1
_SMALLEST_STD = 1e-6


def metadata_content(model: Table, name: str) -> bytes:
    """The metadata of that name, empty where there is none."""
    buffers = model.tables(_MODEL_BUFFERS)
    for entry in model.tables(_MODEL_METADATA):
        index = entry.integer(_ENTRY_BUFFER, "I")
        if entry.text(_ENTRY_NAME) == name and index < len(buffers):
            return buffers[index].numbers(0, "uint8").tobytes()
    return b""


class InputNormalization(Struct, frozen=True):
    """``real = (pixel - mean) / std`` on the 0..255 scale, one value or one per channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


class ValueRange(Struct, frozen=True):
    """Smallest and largest value of a tensor, both reached; ``operators`` are those of the graph that show it."""

    low: float
    high: float
    operators: tuple[str, ...] = ()


def input_ranges(content: bytes) -> dict[int, ValueRange]:
    """What the ``Stats`` of a ``TFLITE_METADATA`` buffer state about the values of inputs, by position.

    Damaged metadata and ranges that are none count as nothing stated.
    """
    found = {}
    try:
        for subgraph in Table.root(memoryview(content)).tables(_SUBGRAPH_METADATA)[:1]:
            for position, tensor in enumerate(subgraph.tables(_INPUT_TENSOR_METADATA)):
                stats = tensor.table(_STATS)
                high, low = (stats.numbers(field, "float32").tolist() if stats else [] for field in (0, 1))
                if high and low and np.isfinite([*high, *low]).all() and min(low) < max(high):
                    found[position] = ValueRange(float(min(low)), float(max(high)))
    except DamagedFlatbuffer:
        return {}
    return found


def input_normalization(content: bytes) -> InputNormalization | None:
    """The first input's ``NormalizationOptions`` in a ``TFLITE_METADATA`` buffer, or None.

    Damaged metadata, and values that normalise nothing (other than one or three of them, a std of 0), count as none:
    the runtimes do not read them, and the model itself may be sound.
    """
    try:
        for subgraph in Table.root(memoryview(content)).tables(_SUBGRAPH_METADATA)[:1]:
            for tensor in subgraph.tables(_INPUT_TENSOR_METADATA)[:1]:
                return _first_normalization(tensor)
    except DamagedFlatbuffer:
        return None
    return None


def _first_normalization(tensor: Table) -> InputNormalization | None:
    for unit in tensor.tables(_PROCESS_UNITS):
        options = unit.table(_OPTIONS)
        if options is None or unit.integer(_OPTIONS_KIND, "B") != _NORMALIZATION_OPTIONS:
            continue
        mean, std = options.numbers(0, "float32").tolist(), options.numbers(1, "float32").tolist()
        sizes_fit = len(mean) in (1, 3) and len(std) in (1, 3)
        if sizes_fit and np.isfinite([*mean, *std]).all() and min(map(abs, std)) >= _SMALLEST_STD:
            return InputNormalization(tuple(mean), tuple(std))
    return None


_MODEL_SUBGRAPHS, _MODEL_SIGNATURES = 2, 7
_SIGNATURE_INPUTS, _SIGNATURE_OUTPUTS, _SIGNATURE_KEY, _SIGNATURE_SUBGRAPH = 0, 1, 2, 4
_MAP_NAME, _MAP_TENSOR = 0, 1

# Kind of options -> the fields that hold the number of a graph.
_CALLS: Final[Mapping[int, tuple[int, ...]]] = {92: (0, 1), 93: (0, 1), 16: (0,), 103: (0,)}
_CALLS_2: Final[Mapping[int, tuple[int, ...]]] = {6: (1,), 7: (6,), 14: (2,), 15: (0, 1), 21: (1,), 13: (5,)}
_CASE: Final = 23


def signature_keys(model: Table) -> tuple[str, ...]:
    """The signatures of a model, in the file's order."""
    return tuple(signature.text(_SIGNATURE_KEY) for signature in model.tables(_MODEL_SIGNATURES))


def signature_graph(model: Table, key: str) -> int:
    """Number of the graph of a signature, which must exist."""
    return _signature(model, key).integer(_SIGNATURE_SUBGRAPH, "I")


def signature_names(model: Table, graph: int, key: str | None = None) -> tuple[dict[int, str], dict[int, str]]:
    """Names that the signature ``key`` (or the only one of that graph) gives to inputs and outputs, by tensor index."""
    matching = [
        signature
        for signature in model.tables(_MODEL_SIGNATURES)
        if signature.integer(_SIGNATURE_SUBGRAPH, "I") == graph and key in (None, signature.text(_SIGNATURE_KEY))
    ]
    if len(matching) != 1:
        return {}, {}
    return _names(matching[0], _SIGNATURE_INPUTS), _names(matching[0], _SIGNATURE_OUTPUTS)


def _names(signature: Table, field: int) -> dict[int, str]:
    return {entry.integer(_MAP_TENSOR, "I"): entry.text(_MAP_NAME) for entry in signature.tables(field)}


def with_main_graph(content: bytes, graph: int, what: str) -> bytes:
    """The same file with ``graph`` in the first place, and the main graph in its place.

    Raises :class:`ModelError`, beginning with ``what``, where a node calls one of the two by number.
    """
    model = Table.root(memoryview(content))
    if any(number in (0, graph) for subgraph in model.tables(_MODEL_SUBGRAPHS) for number in _called(subgraph)):
        message = (
            f"{what} is also called from other graphs of the model, which is not supported; "
            "convert this function alone to a model of its own"
        )
        raise ModelError(message)
    edited = bytearray(content)
    start = model.vector_start(_MODEL_SUBGRAPHS)
    places = (start, start + 4 * graph)
    targets = [place + struct.unpack_from("<I", content, place)[0] for place in places]
    for place, target in zip(places, reversed(targets), strict=True):
        struct.pack_into("<I", edited, place, target - place)
    return bytes(edited)


def _signature(model: Table, key: str) -> Table:
    return next(entry for entry in model.tables(_MODEL_SIGNATURES) if entry.text(_SIGNATURE_KEY) == key)


def _called(subgraph: Table) -> set[int]:
    """The numbers of all graphs that the nodes of a graph call."""
    found: set[int] = set()
    for operator in subgraph.tables(3):
        for kind_field, options_field, fields in ((3, 4, _CALLS), (11, 12, _CALLS_2)):
            options = operator.table(options_field)
            kind = operator.integer(kind_field, "B")
            if options is None:
                continue
            found |= {options.integer(field, "i") for field in fields.get(kind, ())}
            if options_field == 12 and kind == _CASE:
                found |= set(options.numbers(0, "int32").tolist())
    return found
