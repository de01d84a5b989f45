"""Records as bytes and back, without pickle: a file of another machine can contain no code."""

from __future__ import annotations

import re
import types
import typing
from typing import Any, Final, Generic

import msgspec
import numpy as np

from evaltools.engine.steps import Observation, Record
from evaltools.errors import DataError

_TEXTS: Final = "texts"
_NUMBERS: Final = re.compile("[<>|][biufcSUV][0-9]{1,9}")
"""Types whose bytes can be taken as they are; NumPy would read far more into a text."""


class RecordDecoder(Generic[Observation]):
    """Reads records with one type of observation; arrays keep type, shape and bytes.

    >>> record = Record(3, "cpu", (7.5,), 0.25)
    >>> RecordDecoder(float).decode(encode_record(record)) == record
    True
    """

    def __init__(self, observation_type: type[Observation]) -> None:
        self.observation_type: Final = observation_type
        record: Any = Record[observation_type]  # type: ignore[valid-type]
        self._decoder = msgspec.msgpack.Decoder(record, dec_hook=_from_plain)

    def decode(self, content: bytes) -> Record[Observation]:
        """The record in some bytes; raises :class:`DataError` for bytes that hold none."""
        try:
            decoded: Record[Observation] = self._decoder.decode(content)
        except (msgspec.DecodeError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(f"a record of the journal cannot be read: {error}; start the run anew") from error
        return decoded


def encode_record(record: Record[Any]) -> bytes:
    """A record as MessagePack, whatever was observed."""
    return _encoder.encode(record)


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            return (_TEXTS, value.shape, [bytes(item) for item in value.ravel().tolist()])
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written")


_encoder: Final = msgspec.msgpack.Encoder(enc_hook=_to_plain)


def _from_plain(wanted: Any, plain: Any) -> Any:
    if (typing.get_origin(wanted) or wanted) is not np.ndarray and not isinstance(wanted, types.GenericAlias):
        raise TypeError(f"a {wanted} cannot be read")
    dtype, shape, content = plain
    if dtype != _TEXTS:
        if not _NUMBERS.fullmatch(dtype):
            raise ValueError(f"no numbers are of type {dtype!r}")
        return np.frombuffer(content, np.dtype(dtype)).reshape(shape)
    if not all(isinstance(text, bytes) for text in content):
        raise TypeError("a text is not bytes")
    texts = np.empty(len(content), object)
    texts[:] = content
    return texts.reshape(shape)
