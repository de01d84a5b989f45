"""Arrays that a parent and its child both see, without copying them through a pipe."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaltools.runtime.session import Array, TensorSpec

_ALIGNMENT: Final = 64


@dataclass(frozen=True)
class _Placed:
    """An array that lies in the shared memory."""

    offset: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Parcel:
    """Arrays as they travel: places in the shared memory, or the array itself where it does not fit there."""

    items: tuple[Any, ...]


class SharedArrays:
    """A memory-mapped file with room for one set of inputs and one of outputs.

    Room for outputs begins behind the inputs. Arrays of strings, and outputs larger than expected (dynamic shapes),
    travel by themselves. The file's name is only needed until both sides have opened it.
    """

    def __init__(self, memory: mmap.mmap, path: Path, outputs_start: int) -> None:
        self._memory = memory
        self._outputs_start = outputs_start
        self.path: Final = path

    @classmethod
    def create(cls, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> SharedArrays:
        """Make the file, in the parent. Raises :class:`OSError` where there is no room for it."""
        start = _room(inputs)
        size = max(1, start + _room(outputs))
        for folder in _folders():
            try:
                return _reserve(folder, size, start)
            except OSError:
                if folder is None:
                    raise
        raise AssertionError("the last folder is None")

    @classmethod
    def attach(cls, path: Path, inputs: Sequence[TensorSpec]) -> SharedArrays:
        """Open the parent's file, in the child."""
        with path.open("r+b") as file:
            return cls(mmap.mmap(file.fileno(), 0), path, _room(inputs))

    def put_inputs(self, arrays: Sequence[Array]) -> Parcel:
        """Copy inputs into the block."""
        return self._put(arrays, 0, self._outputs_start)

    def put_outputs(self, arrays: Sequence[Array]) -> Parcel:
        """Copy outputs into the block."""
        return self._put(arrays, self._outputs_start, len(self._memory))

    def inputs(self, parcel: Parcel) -> tuple[Array, ...]:
        """Views of the inputs, valid until the next ones are put."""
        return tuple(self._view(item) for item in parcel.items)

    def outputs(self, parcel: Parcel) -> tuple[Array, ...]:
        """Copies of the outputs."""
        return tuple(self._view(item).copy() for item in parcel.items)

    def forget_path(self) -> None:
        """Take the file's name away; whoever has opened it goes on using it."""
        self.path.unlink(missing_ok=True)

    def _put(self, arrays: Sequence[Array], start: int, end: int) -> Parcel:
        items: list[Any] = []
        offset = start
        for array in arrays:
            if array.dtype.kind not in "biufc" or offset + array.nbytes > end:
                items.append(array)
                continue
            place = _Placed(offset, array.shape, array.dtype.str)
            self._view(place)[...] = array
            items.append(place)
            offset += _padded(array.nbytes)
        return Parcel(tuple(items))

    def _view(self, item: Any) -> Array:
        if not isinstance(item, _Placed):
            array: Array = item
            return array
        return np.ndarray(item.shape, item.dtype, self._memory, item.offset)


def _folders() -> list[str | None]:
    """Memory, where the platform has a folder for that, then the usual place."""
    return [folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)] + [None]


def _reserve(folder: str | None, size: int, outputs_start: int) -> SharedArrays:
    """Writing to a mapped file that has no room kills the process, so the room is taken first."""
    descriptor, name = tempfile.mkstemp(prefix="evaltools-", dir=folder)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.truncate(descriptor, size)
        return SharedArrays(mmap.mmap(descriptor, size), Path(name), outputs_start)
    except OSError:
        os.unlink(name)
        raise
    finally:
        os.close(descriptor)


def _room(specs: Sequence[TensorSpec]) -> int:
    return sum(_padded(spec.dtype.itemsize * int(np.prod(spec.shape, dtype=np.int64))) for spec in specs)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
