"""How many bytes a JPEG file needs at least for the size that it states."""

from __future__ import annotations

import math
import struct
from typing import Final

_SEGMENT: Final = struct.Struct(">BBH")
"""FF, the marker, and the segment's length with the two bytes of the length itself."""
_SCAN_MARKER: Final = 0xDA
_ALL_FRAME_MARKERS: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BITS_PER_BLOCK: Final = {0xC0: 2, 0xC1: 2, 0xC2: 1}
"""Baseline, extended sequential and progressive; all of them are Huffman-coded."""
_FRAME: Final = struct.Struct(">HHB")
"""Height, width, number of components; in front of them, a byte says how many bits a sample has."""


def least_bytes(data: bytes) -> int:
    """The least number of bytes in which a picture of the stated size can be coded.

    Huffman coding takes a bit for the first value of each block of 8x8 pixels, and one more for the others unless they
    are in scans of their own; a file with less holds another picture than it states, and libjpeg-turbo makes grey of
    the rest. 0 where the frame's kind of coding has no such bound, or no frame is found.
    """
    found = _frame(data)
    if found is None or found[0] not in _BITS_PER_BLOCK or len(found[1]) <= _FRAME.size:
        return 0
    marker, frame = found
    height, width, count = _FRAME.unpack_from(frame, 1)
    samplings = [(byte >> 4, byte & 15) for byte in frame[7 : 6 + 3 * count : 3]]
    if not samplings or 0 in (side for sampling in samplings for side in sampling):
        return 0
    most_across, most_down = (max(sides) for sides in zip(*samplings, strict=True))
    blocks: int = sum(
        math.ceil(width * across / most_across / 8) * math.ceil(height * down / most_down / 8)
        for across, down in samplings
    )
    return blocks * _BITS_PER_BLOCK[marker] // 8


def _frame(data: bytes) -> tuple[int, bytes] | None:
    """The marker and the content of the first frame before the first scan."""
    position = 2
    while position + _SEGMENT.size <= len(data):
        ff, marker, length = _SEGMENT.unpack_from(data, position)
        if ff != 0xFF or length < 2 or marker == _SCAN_MARKER:
            return None
        if marker in _ALL_FRAME_MARKERS:
            return marker, data[position + _SEGMENT.size : position + 2 + length]
        position += 2 + length
    return None
