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
    found = {}
    with zipfile.ZipFile(stream) as archive:
        for member in archive.infolist():
            _require_size(member.file_size, most_bytes)
            with archive.open(member) as file:
                found[member.filename.removesuffix(".npy")] = read_array(file, most_bytes)  # type: ignore[arg-type]
    return found


def _require_size(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise ValueError(f"it holds an array of {size} bytes, at most {most_bytes} are read")
