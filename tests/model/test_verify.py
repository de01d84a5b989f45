"""Damage deep inside a model is found: fields of operator options, signatures, texts, endless references."""

from __future__ import annotations

import struct

import flatbuffers
import pytest

from evaltools.model.flatbuffer import DamagedFlatbuffer, Table
from evaltools.model.verify import BUILTIN_OPTIONS, MODEL, _Walk, verify_model
from tests import tiny_models

SUBGRAPHS, TENSORS, NAME, QUANTIZATION, SCALE, SQUEEZE_OPTIONS = 2, 0, 3, 4, 2, 30


def position_of(table: Table, field: int) -> int:
    return table.position + table.field_offsets[field]


def squeeze_dims(length: int) -> Table:
    """A SqueezeOptions table whose vector claims ``length`` items; it has one."""
    builder = flatbuffers.Builder()
    builder.StartVector(4, 1, 4)
    builder.PrependInt32(2)
    vector = builder.EndVector()
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, vector, 0)
    builder.Finish(builder.EndObject())
    content = bytearray(builder.Output())
    table = Table.root(memoryview(bytes(content)))
    start = position_of(table, 0) + int.from_bytes(content[position_of(table, 0) :][:4], "little")
    content[start : start + 4] = length.to_bytes(4, "little")
    return Table.root(memoryview(bytes(content)))


def test_a_vector_in_operator_options_that_leads_outside_is_refused() -> None:
    _Walk().check(squeeze_dims(1), BUILTIN_OPTIONS[SQUEEZE_OPTIONS])
    with pytest.raises(DamagedFlatbuffer, match="lie outside"):
        _Walk().check(squeeze_dims(2), BUILTIN_OPTIONS[SQUEEZE_OPTIONS])


def test_a_text_without_an_end_is_refused() -> None:
    content = bytearray(tiny_models.add_chain())
    tensor = Table.root(memoryview(bytes(content))).tables(SUBGRAPHS)[0].tables(TENSORS)[0]
    start = position_of(tensor, NAME)
    text = start + int.from_bytes(content[start : start + 4], "little")
    length = int.from_bytes(content[text : text + 4], "little")
    content[text + 4 + length] = 65
    damaged = Table.root(memoryview(bytes(content))).tables(SUBGRAPHS)[0].tables(TENSORS)[0]
    with pytest.raises(DamagedFlatbuffer, match="has no end"):
        damaged.text(NAME)


def test_tables_that_are_referred_to_over_and_over_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.model.verify._MOST_TABLES", 5)
    model = Table.root(memoryview(tiny_models.add_chain(length=8)))
    with pytest.raises(DamagedFlatbuffer, match="more than 5 tables"):
        _Walk().check(model, MODEL)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), -1.0])
def test_a_scale_that_is_no_sound_number_is_refused(scale: float) -> None:
    content = bytearray(tiny_models.classifier(input_dtype="int8"))
    image = Table.root(memoryview(bytes(content))).tables(SUBGRAPHS)[0].tables(TENSORS)[0]
    quantization = image.table(QUANTIZATION)
    assert quantization is not None
    field = position_of(quantization, SCALE)
    value = field + int.from_bytes(content[field : field + 4], "little") + 4
    assert struct.unpack_from("<f", content, value) == (1 / 128,)
    struct.pack_into("<f", content, value, scale)
    with pytest.raises(DamagedFlatbuffer, match="a scale that is negative or no number"):
        verify_model(Table.root(memoryview(bytes(content))))
