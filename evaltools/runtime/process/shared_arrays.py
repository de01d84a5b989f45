"""Arrays that a parent and its child both see, without copying them through a socket."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import IO, Any, Final

import numpy as np
from msgspec import Struct

from evaltools.errors import InferenceError
from evaltools.runtime.process.messages import from_plain, plain_dtype, to_plain
from evaltools.runtime.session import Array, TensorSpec

_ALIGNMENT: Final = 64
_MOST_SLOTS: Final = 128
_MOST_BYTES: Final = 16 << 20


class Placed(Struct, frozen=True, array_like=True):
    """An array as it travels: the place in the shared memory where it lies, or its bytes where it does not fit there.

    Arrays of strings, and outputs larger than expected (dynamic shapes), do not.
    """

    dtype: str
    shape: tuple[int, ...]
    offset: int = -1
    content: bytes | tuple[bytes, ...] = b""


def memory_file() -> IO[bytes]:
    """A file without a name, in memory where the platform has that."""
    if sys.platform != "linux":
        return tempfile.TemporaryFile(buffering=0)
    return os.fdopen(os.memfd_create("evaltools", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "r+b", 0)


class SharedArrays:
    """A mapped file with slots, each with room for one set of inputs and, behind them, one of outputs.

    The parent, which comes first, makes the file large enough: to write to a mapped file that has no room kills the
    process, and so does one that was cut. Raises :class:`OSError` where there is no room. In a child, ``is_child``, the
    descriptor is closed: native code that writes to every one that it finds must not reach what lies here.
    """

    def __init__(
        self, descriptor: int, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], is_child: bool = False
    ) -> None:
        self._outputs_start = _room(inputs)
        self._slot_bytes = max(_ALIGNMENT, self._outputs_start + _room(outputs))
        self.slots: Final = max(1, min(_MOST_SLOTS, _MOST_BYTES // self._slot_bytes))
        size = self.slots * self._slot_bytes
        if is_child:
            self._memory: Any = _mapped(descriptor, size)
            os.close(descriptor)
            return
        if sys.platform == "linux":
            os.posix_fallocate(descriptor, 0, size)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        else:
            os.truncate(descriptor, size)
        self._memory = mmap.mmap(descriptor, size)

    def put_inputs(self, slot: int, arrays: Sequence[Array]) -> tuple[Placed, ...]:
        """Copy inputs into a slot."""
        start = slot * self._slot_bytes
        return self._put(arrays, start, start + self._outputs_start)

    def put_outputs(self, slot: int, arrays: Sequence[Array]) -> tuple[Placed, ...]:
        """Copy outputs into a slot."""
        start = slot * self._slot_bytes
        return self._put(arrays, start + self._outputs_start, start + self._slot_bytes)

    def arrays(self, placed: Sequence[Placed]) -> tuple[Array, ...]:
        """Views of arrays, valid until the next ones are put; raises :class:`InferenceError` for none of ours."""
        try:
            return tuple(self._view(each) for each in placed)
        except (TypeError, ValueError) as error:
            raise InferenceError(f"an array that does not lie in the shared memory: {error}") from error

    def _put(self, arrays: Sequence[Array], start: int, end: int) -> tuple[Placed, ...]:
        found: list[Placed] = []
        offset = start
        for array in arrays:
            if array.dtype.kind not in "biufc" or offset + array.nbytes > end:
                dtype, shape, content = to_plain(array)
                found.append(Placed(dtype, shape, content=content))
                continue
            found.append(Placed(array.dtype.str, array.shape, offset))
            self._view(found[-1])[...] = array
            offset += _padded(array.nbytes)
        return tuple(found)

    def _view(self, placed: Placed) -> Array:
        if placed.offset < 0:
            array: Array = from_plain(np.ndarray, (placed.dtype, placed.shape, placed.content))
            return array
        return np.ndarray(placed.shape, plain_dtype(placed.dtype), self._memory, placed.offset)


def _mapped(descriptor: int, size: int) -> Any:
    """The memory of a file; unlike :class:`mmap.mmap` it keeps no descriptor."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    address = library.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "no memory can be shared")
    return (ctypes.c_char * size).from_address(address)


def _room(specs: Sequence[TensorSpec]) -> int:
    return sum(_padded(spec.dtype.itemsize * int(np.prod(spec.shape, dtype=np.int64))) for spec in specs)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
