"""Normalisation values from model metadata."""

from __future__ import annotations

import flatbuffers
import pytest

from evaltools.model.metadata import InputNormalization, input_normalization


def floats(builder: flatbuffers.Builder, values: list[float]) -> int:
    builder.StartVector(4, len(values), 4)
    for value in reversed(values):
        builder.PrependFloat32(value)
    return int(builder.EndVector())


def offsets(builder: flatbuffers.Builder, values: list[int]) -> int:
    builder.StartVector(4, len(values), 4)
    for value in reversed(values):
        builder.PrependUOffsetTRelative(value)
    return int(builder.EndVector())


def table(builder: flatbuffers.Builder, fields: int, slot: int, offset: int, kind: int | None = None) -> int:
    builder.StartObject(fields)
    if kind is not None:
        builder.PrependUint8Slot(0, kind, 0)
    builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    return int(builder.EndObject())


def metadata(mean: list[float], std: list[float], kind: int = 1) -> bytes:
    """ModelMetadata > SubGraphMetadata > TensorMetadata > ProcessUnit > NormalizationOptions, by field number."""
    builder = flatbuffers.Builder()
    mean_vector, std_vector = floats(builder, mean), floats(builder, std)
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, mean_vector, 0)
    builder.PrependUOffsetTRelativeSlot(1, std_vector, 0)
    options = int(builder.EndObject())
    unit = table(builder, 2, 1, options, kind)
    tensor = table(builder, 7, 4, offsets(builder, [unit]))
    subgraph = table(builder, 9, 2, offsets(builder, [tensor]))
    builder.Finish(table(builder, 8, 3, offsets(builder, [subgraph])), b"M001")
    return bytes(builder.Output())


def test_mean_and_std_of_the_first_input() -> None:
    assert input_normalization(metadata([1, 2, 3], [4, 5, 6])) == InputNormalization((1, 2, 3), (4, 5, 6))


def test_other_process_units_say_nothing() -> None:
    assert input_normalization(metadata([1], [2], kind=2)) is None


@pytest.mark.parametrize("content", [b"", b"\0" * 4, b"\xff" * 40])
def test_damaged_metadata_counts_as_none(content: bytes) -> None:
    assert input_normalization(content) is None
