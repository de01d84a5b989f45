"""A bounds-checked reader of FlatBuffers.

tflite-runtime crashes on damaged models because it trusts the offsets in the file. This reader checks every offset,
length and table before it follows them, in the way the C++ ``Verifier`` does, and raises :class:`DamagedFlatbuffer`.
Format: https://flatbuffers.dev/internals
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
from msgspec import Struct

_OFFSET_BYTES = 4


class DamagedFlatbuffer(ValueError):
    """An offset or a length in the file points outside the file."""


class Table(Struct, frozen=True):
    """A table at ``position`` of ``data``; fields are addressed by their number in the schema."""

    data: memoryview
    position: int
    field_offsets: tuple[int, ...]

    @classmethod
    def root(cls, data: memoryview) -> Table:
        """The root table of a buffer."""
        return cls._at(data, _unpack(data, "<I", 0))

    @classmethod
    def _at(cls, data: memoryview, position: int) -> Table:
        vtable = position - _unpack(data, "<i", position)
        vtable_bytes = _unpack(data, "<H", vtable)
        table_bytes = _unpack(data, "<H", vtable + 2)
        if vtable_bytes < 4 or vtable_bytes % 2 or table_bytes < _OFFSET_BYTES or position % _OFFSET_BYTES:
            raise DamagedFlatbuffer(f"the table at byte {position} is malformed")
        _require(data, position, table_bytes)
        _require(data, vtable, vtable_bytes)
        offsets = struct.unpack_from(f"<{(vtable_bytes - 4) // 2}H", data, vtable + 4)
        if any(offset >= table_bytes for offset in offsets):
            raise DamagedFlatbuffer(f"a field of the table at byte {position} lies outside the table")
        return cls(data, position, offsets)

    def has(self, field: int) -> bool:
        """Whether the field is present."""
        return field < len(self.field_offsets) and self.field_offsets[field] != 0

    def integer(self, field: int, code: str) -> int:
        """A whole number, 0 where the field is absent; ``code`` as in :mod:`struct`, for example ``i`` for int32."""
        if not self.has(field):
            return 0
        return _unpack(self.data, "<" + code, self.position + self.field_offsets[field])

    def table(self, field: int) -> Table | None:
        """A table, or None where the field is absent."""
        if not self.has(field):
            return None
        return Table._at(self.data, self._target(field))

    def tables(self, field: int) -> list[Table]:
        """A vector of tables; empty where the field is absent."""
        if not self.has(field):
            return []
        start, length = self._vector(field, _OFFSET_BYTES)
        return [
            Table._at(self.data, _follow(self.data, position))
            for position in range(start, start + length * _OFFSET_BYTES, _OFFSET_BYTES)
        ]

    def numbers(self, field: int, dtype: str) -> npt.NDArray[np.generic]:
        """A vector of numbers as a NumPy array that looks into the file; empty where the field is absent."""
        if not self.has(field):
            return np.empty(0, dtype)
        start, length = self._vector(field, np.dtype(dtype).itemsize)
        return np.frombuffer(self.data, np.dtype(dtype).newbyteorder("<"), length, start)

    def text(self, field: int) -> str:
        """A string; empty where the field is absent. Bytes that are no UTF-8 are replaced."""
        if not self.has(field):
            return ""
        start, length = self._vector(field, 1)
        if _unpack(self.data, "<B", start + length) != 0:
            raise DamagedFlatbuffer(f"the text at byte {start} has no end")
        return bytes(self.data[start : start + length]).decode("utf-8", errors="replace")

    def check_vector(self, field: int, item_bytes: int) -> None:
        """Check that a vector of items of that size lies inside the file."""
        if self.has(field):
            self._vector(field, item_bytes)

    def vector_start(self, field: int) -> int:
        """Where in ``data`` the first item of a vector lies; the field must be present."""
        return self._vector(field, 0)[0]

    def _target(self, field: int) -> int:
        return _follow(self.data, self.position + self.field_offsets[field])

    def _vector(self, field: int, item_bytes: int) -> tuple[int, int]:
        position = self._target(field)
        length = _unpack(self.data, "<I", position)
        start = position + _OFFSET_BYTES
        _require(self.data, start, length * item_bytes)
        return start, length


def _follow(data: memoryview, position: int) -> int:
    offset = _unpack(data, "<I", position)
    if offset == 0 or offset >= 1 << 31:
        raise DamagedFlatbuffer(f"the offset at byte {position} leads nowhere")
    return position + offset


def _unpack(data: memoryview, layout: str, position: int) -> int:
    _require(data, position, struct.calcsize(layout))
    value: int = struct.unpack_from(layout, data, position)[0]
    return value


def _require(data: memoryview, position: int, length: int) -> None:
    if position < 0 or position + length > len(data):
        raise DamagedFlatbuffer(f"bytes {position}..{position + length} lie outside the {len(data)} bytes of the file")
