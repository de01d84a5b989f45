"""What a child answers: frames of typed values, so that nothing that it sends can be code.

Native code in a child may write to any descriptor. Magic bytes at the head of each frame distinguish our answers from
its junk, the number of the process our answers from those of a copy that a fork in native code leaves behind, and the
number of the question an answer from one to an earlier question. Native code that means to forge an answer gives data
of the expected type, as its outputs are.
"""

from __future__ import annotations

import os
import re
import struct
import typing
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Raw, Struct

from evaltools import errors
from evaltools.errors import EvaltoolsError

MAGIC: Final = b"answers:"
HEAD: Final = struct.Struct("<8sIQQ")
"""The magic bytes, the process, the number of the question, the length of what follows."""
SIZE: Final = struct.Struct("<Q")
"""The length of an order, which nobody but this process can send."""
_TEXTS: Final = "texts"
_NUMBERS: Final = re.compile("[<>|][biufcSUV][0-9]{1,9}")
"""NumPy would read far more into a text."""
_TYPES: Final = re.compile("[<>|][biufcSUVO][0-9]{0,9}")


class WrongMessage(Exception):
    """What arrived is no answer to what was asked; the text says what it is."""


class Failure(Struct, frozen=True):
    """An error of ours that was raised in the child, with what it knows beside its text."""

    kind: str
    text: bytes
    details: dict[str, str | bool] = {}

    @classmethod
    def of(cls, error: EvaltoolsError) -> Failure:
        """What can be sent of an error: its kind is the nearest that :mod:`evaltools.errors` has."""
        kind = next(each for each in type(error).__mro__ if getattr(errors, each.__name__, None) is each)
        details = {name: vars(error)[name] for name in vars(kind(""))}
        return cls(kind.__name__, str(error).encode("utf-8", "surrogatepass"), details)

    @property
    def error(self) -> EvaltoolsError:
        """The same error here; raises :class:`WrongMessage` for a kind that there is not."""
        kind = getattr(errors, self.kind, None)
        if not (isinstance(kind, type) and issubclass(kind, EvaltoolsError)):
            raise WrongMessage(f"an error of the unknown kind {self.kind!r}")
        error: EvaltoolsError = kind(self.text.decode("utf-8", "surrogatepass"))
        vars(error).update({name: value for name, value in self.details.items() if name in vars(error)})
        return error


class Answer(Struct, frozen=True):
    """What a function gave, or the error that it raised; ``peak_memory_kb`` is the child's so far."""

    value: Raw = Raw(b"\xc0")
    failure: Failure | None = None
    peak_memory_kb: int = 0


def framed(question: int, content: bytes) -> bytes:
    """An answer as it travels."""
    return HEAD.pack(MAGIC, os.getpid(), question, len(content)) + content


def answer_size(head: bytes, process: int, question: int) -> int:
    """The size of the answer behind a head; raises :class:`WrongMessage` for one of others, or to another question."""
    magic, sender, number, size = HEAD.unpack(head)
    if magic != MAGIC:
        raise WrongMessage("bytes that are no message: native code wrote to a descriptor that is not its own")
    if sender != process:
        raise WrongMessage("an answer of a copy of the process: native code called fork, and both went on")
    if number != question:
        raise WrongMessage(f"an answer to question {number}, and {question} was asked")
    return int(size)


def encoded(value: Any) -> bytes:
    """A value as MessagePack; arrays keep type, shape and bytes."""
    return _encoder.encode(value)


def decoded(content: bytes | Raw, wanted: Any) -> Any:
    """A value of that type; raises :class:`WrongMessage` where these bytes are none."""
    try:
        return msgspec.msgpack.decode(content, type=wanted, dec_hook=from_plain)
    except (msgspec.DecodeError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise WrongMessage(f"a message that cannot be read ({error})") from error


def to_plain(value: Any) -> Any:
    """What stands for a value that MessagePack does not know; :func:`from_plain` gives it back."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            return (_TEXTS, value.shape, [bytes(item) for item in value.ravel().tolist()])
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.dtype):
        return value.str
    raise TypeError(f"a {type(value).__name__} cannot be sent or written")


def from_plain(wanted: Any, plain: Any) -> Any:
    """The array or type that stands in a message; raises :class:`ValueError` and :class:`TypeError`."""
    kind = typing.get_origin(wanted) or wanted
    if kind is np.dtype:
        if not (isinstance(plain, str) and _TYPES.fullmatch(plain)):
            raise ValueError(f"{plain!r} is no type of values")
        return np.dtype(plain)
    if kind is not np.ndarray:
        raise TypeError(f"a {wanted} cannot be read")
    dtype, shape, content = plain
    if dtype != _TEXTS:
        return np.frombuffer(content, plain_dtype(dtype)).reshape(shape)
    if not all(isinstance(text, bytes) for text in content):
        raise TypeError("a text is not bytes")
    texts = np.empty(len(content), object)
    texts[:] = content
    return texts.reshape(shape)


def plain_dtype(text: str) -> np.dtype[Any]:
    """A type whose values are their bytes, unlike objects, which are addresses; raises :class:`ValueError`."""
    if not _NUMBERS.fullmatch(text):
        raise ValueError(f"no numbers are of type {text!r}")
    return np.dtype(text)


_encoder: Final = msgspec.msgpack.Encoder(enc_hook=to_plain)
