"""Records come back from their bytes as they were; damaged bytes are said to be."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, is_dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import Struct

from evaltools.engine.steps import Failure, Record, RecordDecoder, encode_record
from evaltools.errors import DataError
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.difference import Scale, compare_tensors
from evaltools.runtime.session import Array
from evaltools.tasks.coco.objects import FoundObjects
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.tasks.inference_diff.output_comparison import Difference, DiffObservation

NAN_WITH_PAYLOAD = np.array([0x7FC00123, 0xFFC00000], np.uint32).view(np.float32)
ARRAYS: list[Array] = [
    np.array([b"\xff\x00x", b"", b"word " * 99], object),
    np.array([[b"a", b"b"]], object),
    np.array(b"alone", object),
    np.empty((0, 3), object),
    np.array(["\u00fc", "ab"]),
    np.array(2.5),
    np.empty((0, 4), np.float32),
    np.array([np.nan, np.inf, -np.inf, -0.0]),
    NAN_WITH_PAYLOAD,
    np.arange(6, dtype=">f4").reshape(2, 3),
    np.array([1 + 2j, complex(np.nan, -0.0)], np.complex64),
    np.array([[True, False], [False, False]]),
    np.arange(3, dtype=np.float16),
    np.array([2**64 - 1], np.uint64),
    np.arange(24, dtype=np.int16).reshape(2, 3, 4).transpose(2, 0, 1)[::-1, :, ::2],
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
]


@dataclass(frozen=True)
class Several:
    """What an observation may hold."""

    arrays: tuple[Array, ...]
    number: float
    count: int
    text: str | None


DECODER = RecordDecoder(Several)


def and_back(observation: Any) -> Any:
    decoder: RecordDecoder[Any] = RecordDecoder(type(observation))
    return decoder.decode(encode_record(Record(0, "a", (1,), observation))).observation


def require_same(found: Any, sent: Any) -> None:
    """To the last bit, with types."""
    if isinstance(sent, np.ndarray):
        assert isinstance(found, np.ndarray)
        assert (found.dtype, found.shape) == (sent.dtype, sent.shape)
        assert found.tolist() == sent.tolist() if sent.dtype.kind == "O" else found.tobytes() == sent.tobytes()
    elif isinstance(sent, Struct) or is_dataclass(sent):
        assert type(found) is type(sent)
        for name in type(sent).__annotations__:
            require_same(getattr(found, name), getattr(sent, name))
    elif isinstance(sent, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(sent)
        for pair in zip(found, sent, strict=True):
            require_same(*pair)
    elif isinstance(sent, dict):
        assert list(found) == list(sent)
        for name, value in sent.items():
            require_same(found[name], value)
    elif isinstance(sent, float):
        assert struct.pack("d", found) == struct.pack("d", sent)
    else:
        assert (type(found), found) == (type(sent), sent)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str}{list(array.shape)}")
def test_an_array_keeps_type_shape_and_bytes(array: Array) -> None:
    require_same(and_back(Several((array,), 0.0, 0, None)).arrays[0], array)


def difference_of(test: Array, reference: Array, scale: Scale | None, as_scores: bool) -> DiffObservation:
    boxes = BoxAgreement(1, 2, 3, 4, 0.5, float("nan"), 0.25)
    found = compare_tensors(test, reference, scale, scale, as_scores)
    return DiffObservation(Difference((found, found), boxes), (test, reference))


@pytest.mark.parametrize(
    "observation",
    [
        ObservedScores((np.array([-1.0, 2.0, 0.1, 3.0, 1.0, 0.1, float("inf")]), None, np.array(0.5)), ("more",)),
        FoundObjects(np.array([1, 90]), np.eye(2, 4, dtype=np.float32), np.ones(2, np.float32), 1.5, 10, 1, 2, 640, 4),
        FoundObjects(np.empty(0, np.int64), np.empty((0, 4), np.float32), np.ones(0, "f"), np.nan, 0, 0, 0, 1, 1),
        DiffObservation(None, None),
        DiffObservation(None, tuple(ARRAYS)),
        difference_of(np.array([[1, 9, 3]], np.uint8), np.array([[1, 2, 3]], np.uint8), Scale(0.5, 3), True),
        difference_of(np.array([np.nan, 1e-42]), np.array([0.0, np.inf]), None, False),
        difference_of(np.array([b"a"], object), np.array([b"b"], object), None, False),
        difference_of(np.zeros(3), np.zeros(4), None, False),
        Several((), 1e300, -(2**63), "\u00fc\0"),
    ],
    ids=lambda observation: type(observation).__name__,
)  # fmt: skip
def test_every_type_of_observation_comes_back(observation: Any) -> None:
    require_same(and_back(observation), observation)


@pytest.mark.parametrize(
    "record",
    [
        Record(0, "a", (1, 2, 3), 0.5, None, 4, 5),
        Record(7, "\u00fc", (), None, Failure("input", "is [no] picture")),
        Record(7, "a", (), None, Failure("inference", "died \u2014 twice", crashed=True), None, 9),
    ],
)
def test_times_and_failures_come_back(record: Record[float]) -> None:
    assert RecordDecoder(float).decode(encode_record(record)) == record


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    observed = Several((), np.float32(0.5), np.uint8(7), None)  # type: ignore[arg-type]
    record: Any = Record(0, "a", (np.int64(3),), observed, None, np.int32(1))  # type: ignore[arg-type]
    found = DECODER.decode(encode_record(record))
    assert (found.invokes_us, found.read_us, found.observation) == ((3,), 1, Several((), 0.5, 7, None))


def with_array(plain: Any) -> bytes:
    """A record that is right but for its array."""
    observation = {"arrays": [plain], "number": 0.5, "count": 1, "text": None}
    return msgspec.msgpack.encode(("record", 0, "a", (3,), observation, None, 1, 2))


@pytest.mark.parametrize(
    "plain",
    [
        ("|O", [1], b"12345678"),
        ("i4,O", [1], b"123456789012"),
        ("<f4", [3], b"1234"),
        ("<f4", [2**63], b"1234"),
        ("<f4", [0, 2**62, 2**62], b"1234"),
        ("<f4", [1.5], b"1234"),
        ("<f4", [1], [1, 2, 3, 4]),
        ("f4, (", [1], b"1234"),
        ("<f3", [1], b"123"),
        ("<V99999999999999999999", [1], b"1"),
        (None, [1], b"12345678"),
        ({"names": ["a"], "formats": ["O"]}, [1], b"12345678"),
        ("texts", [1], ["no bytes"]),
        ("texts", [2], [b"a"]),
        ("texts", [10**10], []),
        ("<f4", [1]),
        None,
    ],
    ids=repr,
)
def test_an_array_that_is_none_is_a_data_error(plain: Any) -> None:
    with pytest.raises(DataError, match="a record of the journal cannot be read: .*; start the run anew"):
        DECODER.decode(with_array(plain))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc0",
        b"\x94\x90\xc0\xc0\xc0\xc0",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 100_000,
        with_array(0)[: with_array(0).index(b"arrays") + 6] + b"\x91" * 100_000,
        msgspec.msgpack.encode(
            ("record", 0, "a", (3,), None, {"stage": "elsewhere", "reason": "x", "crashed": False}, None, None)
        ),
        msgspec.msgpack.encode(("record", 0, "a", (3,), {"arrays": []}, None, None, None)),
        msgspec.msgpack.encode(("record", 0, "a", ("3",), None, None, None, None)),
    ],
    ids=lambda content: repr(content[:12]),
)
def test_bytes_that_are_no_record_are_a_data_error(content: bytes) -> None:
    with pytest.raises(DataError):
        DECODER.decode(content)


def test_whatever_is_damaged_nothing_but_a_data_error_is_raised() -> None:
    chance = random.Random(7)
    whole = encode_record(Record(0, "a", (3,), Several((ARRAYS[0], ARRAYS[9], ARRAYS[11]), 0.5, 1, "text")))
    refused = 0
    for _ in range(20_000):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 3))):
            place = chance.randrange(len(damaged))
            if chance.random() < 0.3:
                damaged[place:place] = chance.randbytes(chance.randrange(1, 4))
            else:
                damaged[place] ^= 1 << chance.randrange(8) if chance.random() < 0.5 else chance.randrange(1, 256)
        try:
            DECODER.decode(bytes(damaged))
        except DataError:
            refused += 1
    assert refused > 1000
