"""Arrays in files of others: the header says how large one is, and that is looked at before anything is read."""

from __future__ import annotations

import math
import zipfile
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

MOST_BYTES: Final = 1 << 31
"""Of one array. A file of some kilobytes can claim, or unpack to, any size."""


def read_array(stream: BinaryIO, most_bytes: int = MOST_BYTES) -> npt.NDArray[Any]:
    """The array in an ``.npy`` file; raises :class:`ValueError` for a larger one, and for damage what NumPy raises.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((2, 3), np.float32))
    >>> read_array(io.BytesIO(file.getvalue())).shape
    (2, 3)
    >>> read_array(io.BytesIO(file.getvalue()), most_bytes=23)
    Traceback (most recent call last):
    ValueError: it holds an array of 24 bytes, at most 23 are read
    """
    npy: Any = np.lib.format
    start = stream.tell()
    read_header = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    _require_size(math.prod(shape) * dtype.itemsize, most_bytes)
    stream.seek(start)
    found: npt.NDArray[Any] = np.load(stream, allow_pickle=False)
    return found


def read_arrays(stream: BinaryIO, most_bytes: int = MOST_BYTES) -> dict[str, npt.NDArray[Any]]:
    """The arrays in an ``.npz`` file by name; as :func:`read_array`, of which each is one."""
    with zipfile.ZipFile(stream) as archive:
        return {_name(member): _read(archive, member, most_bytes) for member in archive.infolist()}


def read_named_array(stream: BinaryIO, name: str, most_bytes: int = MOST_BYTES) -> npt.NDArray[Any]:
    """One array in an ``.npz`` file; as :func:`read_array`, and :class:`KeyError` with the names that there are."""
    with zipfile.ZipFile(stream) as archive:
        members = {_name(member): member for member in archive.infolist()}
        if name not in members:
            raise KeyError(", ".join(members) or "none")
        return _read(archive, members[name], most_bytes)


def _name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most_bytes: int) -> npt.NDArray[Any]:
    _require_size(member.file_size, most_bytes)
    with archive.open(member) as file:
        return read_array(file, most_bytes)  # type: ignore[arg-type]


def _require_size(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise ValueError(f"it holds an array of {size} bytes, at most {most_bytes} are read")
