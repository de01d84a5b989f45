"""Results as one evaltools hands them to another: with infinite numbers and NaN, which JSON has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from evaltools.errors import DataError
from evaltools.result.json_file import valid_text

ResultType = TypeVar("ResultType")
ENDING: Final = ".msgpack"


def encode_exactly(value: Any) -> bytes:
    """Structs as MessagePack."""
    return msgspec.msgpack.encode(valid_text(value))


def read_exactly(path: Path, kind: type[ResultType]) -> ResultType:
    """Read what :func:`encode_exactly` wrote; raises :class:`DataError` for anything else."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path.name} is no result of this evaltools: {error}") from error
