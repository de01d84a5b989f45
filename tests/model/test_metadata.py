"""Normalisation values and ranges from model metadata."""

from __future__ import annotations

import flatbuffers
import pytest

from evaltools.model.metadata import InputNormalization, ValueRange, input_normalization, input_ranges


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


def pair(builder: flatbuffers.Builder, first: list[float], second: list[float], fields: int = 2) -> int:
    """A table of two vectors: NormalizationOptions (mean, std) or Stats (max, min)."""
    vectors = floats(builder, first), floats(builder, second)
    builder.StartObject(fields)
    for slot, vector in enumerate(vectors):
        builder.PrependUOffsetTRelativeSlot(slot, vector, 0)
    return int(builder.EndObject())


def metadata(
    mean: list[float], std: list[float], kind: int = 1, stats: tuple[list[float], list[float]] | None = None
) -> bytes:
    """ModelMetadata > SubGraphMetadata > TensorMetadata > ProcessUnit > NormalizationOptions, by field number.

    ``stats`` are the input's largest and smallest values.
    """
    builder = flatbuffers.Builder()
    unit = table(builder, 2, 1, pair(builder, mean, std), kind)
    units = offsets(builder, [unit])
    stated = pair(builder, *stats) if stats else 0
    builder.StartObject(7)
    builder.PrependUOffsetTRelativeSlot(4, units, 0)
    builder.PrependUOffsetTRelativeSlot(5, stated, 0)
    tensor = int(builder.EndObject())
    return finished(builder, [tensor])


def ranges(*stats: tuple[list[float], list[float]] | None) -> bytes:
    """Metadata with the largest and smallest values of every input."""
    builder = flatbuffers.Builder()
    tables = [table(builder, 7, 5, pair(builder, *entry, fields=4) if entry else 0) for entry in stats]
    return finished(builder, tables)


def finished(builder: flatbuffers.Builder, tensors: list[int]) -> bytes:
    subgraph = table(builder, 9, 2, offsets(builder, tensors))
    builder.Finish(table(builder, 8, 3, offsets(builder, [subgraph])), b"M001")
    return bytes(builder.Output())


def test_mean_and_std_of_the_first_input() -> None:
    assert input_normalization(metadata([1, 2, 3], [4, 5, 6])) == InputNormalization((1, 2, 3), (4, 5, 6))


def test_other_process_units_say_nothing() -> None:
    assert input_normalization(metadata([1], [2], kind=2)) is None


@pytest.mark.parametrize("content", [b"", b"\0" * 4, b"\xff" * 40])
def test_damaged_metadata_counts_as_none(content: bytes) -> None:
    assert input_normalization(content) is None
    assert input_ranges(content) == {}


def test_ranges_go_by_the_position_of_the_input() -> None:
    content = ranges(([255], [0]), None, ([1, 3, 2], [-1, -0.5, 0]))
    assert input_ranges(content) == {0: ValueRange(0, 255), 2: ValueRange(-1, 3)}


def test_a_range_stands_beside_a_normalisation() -> None:
    content = metadata([1], [2], stats=([9], [3]))
    assert input_ranges(content) == {0: ValueRange(3, 9)}
    assert input_normalization(content) == InputNormalization((1,), (2,))
