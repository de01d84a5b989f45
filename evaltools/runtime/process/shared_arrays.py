"""Arrays that a parent and its child both see, without copying them through a pipe."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from msgspec import Struct

from evaltools.runtime.session import Array, TensorSpec

_ALIGNMENT: Final = 64
_MOST_SLOTS: Final = 128
_MOST_BYTES: Final = 16 << 20


class _Placed(Struct, frozen=True):
    """An array that lies in the shared memory."""

    offset: int
    shape: tuple[int, ...]
    dtype: str


Parcel = tuple[Any, ...]
"""Arrays as they travel: places in the shared memory, or the array itself where it does not fit there."""


class SharedArrays:
    """A memory-mapped file with slots, each with room for one set of inputs and, behind them, one of outputs.

    Arrays of strings, and outputs larger than expected (dynamic shapes), travel by themselves. The file's name is only
    needed until both sides have opened it. A process that is started gets the file itself with its arguments, where
    ``can_travel``.
    """

    can_travel: Final = sys.platform != "win32"

    def __init__(self, file: IO[bytes], path: Path, inputs: Sequence[TensorSpec], slot_bytes: int) -> None:
        self._file = file
        self._memory = mmap.mmap(file.fileno(), 0)
        self._inputs = inputs
        self._slot_bytes = slot_bytes
        self._outputs_start = _room(inputs)
        self.path: Final = path
        self.slots: Final = len(self._memory) // slot_bytes

    @classmethod
    def create(cls, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> SharedArrays:
        """Make the file, in the parent. Raises :class:`OSError` where there is no room for it."""
        slot_bytes = _slot_bytes(inputs, outputs)
        size = slot_bytes * max(1, min(_MOST_SLOTS, _MOST_BYTES // slot_bytes))
        for folder in _folders():
            try:
                return cls(*_reserve(folder, size), inputs, slot_bytes)
            except OSError:
                if folder is None:
                    raise
        raise AssertionError("the last folder is None")

    @classmethod
    def attach(cls, path: Path, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> SharedArrays:
        """Open the parent's file, in the child."""
        return cls(path.open("r+b"), path, inputs, _slot_bytes(inputs, outputs))

    def __reduce__(self) -> tuple[Callable[..., SharedArrays], tuple[Any, ...]]:
        from multiprocessing.reduction import DupFd

        return _received, (DupFd(self._file.fileno()), self._inputs, self._slot_bytes)

    def put_inputs(self, slot: int, arrays: Sequence[Array]) -> Parcel:
        """Copy inputs into a slot."""
        start = slot * self._slot_bytes
        return self._put(arrays, start, start + self._outputs_start)

    def put_outputs(self, slot: int, arrays: Sequence[Array]) -> Parcel:
        """Copy outputs into a slot."""
        start = slot * self._slot_bytes
        return self._put(arrays, start + self._outputs_start, start + self._slot_bytes)

    def inputs(self, parcel: Parcel) -> tuple[Array, ...]:
        """Views of the inputs, valid until the next ones are put."""
        return tuple(self._view(item) for item in parcel)

    def outputs(self, parcel: Parcel) -> tuple[Array, ...]:
        """Copies of the outputs."""
        return tuple(self._view(item).copy() for item in parcel)

    def forget_path(self) -> None:
        """Take the file's name away; whoever has opened it goes on using it."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Give the memory back, unless arrays still lie in it."""
        with suppress(BufferError):
            self._memory.close()
        self._file.close()

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
        return tuple(items)

    def _view(self, item: Any) -> Array:
        if not isinstance(item, _Placed):
            array: Array = item
            return array
        return np.ndarray(item.shape, item.dtype, self._memory, item.offset)


def _folders() -> list[str | None]:
    """Memory, where the platform has a folder for that, then the usual place."""
    return [folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)] + [None]


def _received(descriptor: Any, inputs: Sequence[TensorSpec], slot_bytes: int) -> SharedArrays:
    return SharedArrays(os.fdopen(descriptor.detach(), "r+b"), Path(), inputs, slot_bytes)


def _reserve(folder: str | None, size: int) -> tuple[IO[bytes], Path]:
    """Writing to a mapped file that has no room kills the process, so the room is taken first."""
    descriptor, name = tempfile.mkstemp(prefix="evaltools-", dir=folder)
    file = os.fdopen(descriptor, "r+b")
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.truncate(descriptor, size)
    except OSError:
        file.close()
        os.unlink(name)
        raise
    return file, Path(name)


def _slot_bytes(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> int:
    return max(_ALIGNMENT, _room(inputs) + _room(outputs))


def _room(specs: Sequence[TensorSpec]) -> int:
    return sum(_padded(spec.dtype.itemsize * int(np.prod(spec.shape, dtype=np.int64))) for spec in specs)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
