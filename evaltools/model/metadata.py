"""Reads what TFLite model metadata says about the first input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evaltools.model.flatbuffer import DamagedFlatbuffer, Table, iterate_union

_NORMALIZATION_OPTIONS: Final = 1


@dataclass(frozen=True)
class InputNormalization:
    """``real = (pixel - mean) / std`` on the 0..255 scale, one value or one per channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


def input_normalization(content: bytes) -> InputNormalization | None:
    """The first input's ``NormalizationOptions`` in a ``TFLITE_METADATA`` buffer, or None.

    Damaged metadata counts as none: the runtimes do not read it, and the model itself may be sound.
    """
    try:
        metadata = Table.root(memoryview(content))
        for subgraph in metadata.tables(3)[:1]:
            for tensor in subgraph.tables(2)[:1]:
                return _first_normalization(tensor)
    except DamagedFlatbuffer:
        return None
    return None


def _first_normalization(tensor: Table) -> InputNormalization | None:
    for unit in tensor.tables(4):
        for kind, options in iterate_union(unit, 0, 1):
            mean, std = options.numbers(0, "float32").tolist(), options.numbers(1, "float32").tolist()
            if kind == _NORMALIZATION_OPTIONS and mean and std:
                return InputNormalization(tuple(mean), tuple(std))
    return None
