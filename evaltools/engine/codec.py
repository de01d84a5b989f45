"""Records as bytes and back, without pickle: a file of another machine can contain no code."""

from __future__ import annotations

from typing import Any, Final, Generic

import msgspec

from evaltools.engine.steps import Observation, Record
from evaltools.errors import DataError
from evaltools.runtime.process.messages import from_plain, to_plain


class RecordDecoder(Generic[Observation]):
    """Reads records with one type of observation; arrays keep type, shape and bytes.

    >>> record = Record(3, "cpu", (7.5,), 0.25)
    >>> RecordDecoder(float).decode(encode_record(record)) == record
    True
    """

    def __init__(self, observation_type: type[Observation]) -> None:
        self.observation_type: Final = observation_type
        record: Any = Record[observation_type]  # type: ignore[valid-type]
        self._decoder = msgspec.msgpack.Decoder(record, dec_hook=from_plain)

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


_encoder: Final = msgspec.msgpack.Encoder(enc_hook=to_plain)
