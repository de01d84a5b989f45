"""Reads the metadata of a model: entries by name, and what TFLite's own says about the inputs."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

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
