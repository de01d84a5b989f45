"""Records as bytes and back, without pickle: a file of another machine can contain no code."""

from __future__ import annotations

import re
import types
import typing
from typing import Annotated, Any, Final, Generic

import msgspec
import numpy as np

from evaltools.engine.steps import Failure, Observation
from evaltools.errors import DataError

_TEXTS: Final = "texts"
_NUMBERS: Final = re.compile("[<>|][biufcSUV][0-9]{1,9}")
"""Types whose bytes can be taken as they are; NumPy would read far more into a text."""


_Microseconds = Annotated[float, msgspec.Meta(ge=0, le=2**53)]


class Stored(msgspec.Struct, Generic[Observation], frozen=True, array_like=True):
    """The content of a record in the journal; example and configuration are columns of their own."""

    invokes_us: tuple[_Microseconds, ...]
    read_us: _Microseconds | None
    observation: Observation | None
    failure: Failure | None


class Codec(Generic[Observation]):
    """MessagePack of :class:`Stored` with one type of observation; arrays keep type, shape and bytes.

    >>> codec = Codec(float)
    >>> codec.decode(codec.encode(Stored((3,), 1, 0.5, None))).observation
    0.5
    """

    def __init__(self, observation_type: type[Observation]) -> None:
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_to_plain)
        stored: Any = Stored[observation_type]  # type: ignore[valid-type]
        self._decoder = msgspec.msgpack.Decoder(stored, dec_hook=_from_plain)

    def encode(self, stored: Stored[Observation]) -> bytes:
        """Bytes for the journal."""
        return self._encoder.encode(stored)

    def decode(self, content: bytes) -> Stored[Observation]:
        """The record in some bytes; raises :class:`DataError` for bytes that hold none."""
        try:
            decoded: Stored[Observation] = self._decoder.decode(content)
        except (msgspec.DecodeError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(f"a record of the journal cannot be read: {error}; start the run anew") from error
        return decoded


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            return (_TEXTS, value.shape, [bytes(item) for item in value.ravel().tolist()])
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written")


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
