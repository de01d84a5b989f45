"""JPEG bytes -> RGB bytes with simplejpeg: the same bytes as Pillow's, sooner.

Both hold libjpeg-turbo, in versions of their own, and use its slow integer DCT and fancy upsampling. Only pictures for
which every version gives the same bytes, whatever way the file is fed to it, are decoded here:

* sequential and Huffman-coded: where scans of a progressive picture are missing, versions smooth it differently,
  and not every build reads arithmetic coding or lossless pictures;
* grey, or three components with the sampling 4:4:4, 4:2:2 or 4:2:0: versions upsample 4:4:0 differently;
* without two bytes FF in a row in the compressed data: where these stand for one, as in damaged files, the result
  depends on how much of the file libjpeg-turbo has at hand, and Pillow gives it a part at a time;
* without anything that libjpeg-turbo warns about. Some of that means damage (see :func:`damage`).
"""

from __future__ import annotations

import math
import re
import struct
from typing import Final

import numpy as np
import numpy.typing as npt
from PIL import Image

try:
    from simplejpeg import decode_jpeg as _decode_jpeg
except Exception:  # not installed, or built for another NumPy
    _decode_jpeg = None

_SEGMENT: Final = struct.Struct(">BBH")
"""FF, the marker, and the segment's length with the two bytes of the length itself."""
_FRAME_MARKERS: Final = frozenset({0xC0, 0xC1})
"""Sequential pictures with Huffman coding."""
_SCAN_MARKER: Final = 0xDA
_ALL_FRAME_MARKERS: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BITS_PER_BLOCK: Final = {0xC0: 2, 0xC1: 2, 0xC2: 1}
"""Baseline, extended sequential and progressive; all of them are Huffman-coded."""
_FRAME: Final = struct.Struct(">HHB")
"""Height, width, number of components; in front of them, a byte says how many bits a sample has."""
_OTHER_MARKERS: Final = frozenset({0xC4, 0xDB, 0xDD, *range(0xE0, 0xF0), 0xFE})
"""Huffman tables, quantisation tables, restart interval, application data, comment."""
_SAMPLINGS: Final = frozenset({(0x11, 0x11, 0x11), (0x21, 0x11, 0x11), (0x22, 0x11, 0x11)})
"""Horizontal and vertical sampling factors of the three components, as the file stores them."""
_DAMAGE: Final = re.compile(
    "premature end of data segment|bad Huffman code|bad arithmetic code|instead of RST"
    "|extraneous bytes before marker 0xd[0-7]"
)
"""libjpeg-turbo's warnings after which pixels are other than those that were stored.

The others, such as extraneous bytes before the end marker or an unknown revision, are said of intact pictures too.
"""


def rgb_as_pillow(picture: Image.Image, data: bytes) -> npt.NDArray[np.uint8] | None:
    """Decode a JPEG file's bytes ``data``, of which Pillow has read the header, to what Pillow would make of it.

    Returns an array ``(H, W, 3)`` of uint8, read-only like Pillow's; None where Pillow has to decode: without
    simplejpeg, for pictures that this module does not take, and for files that simplejpeg refuses.
    """
    if _decode_jpeg is None or picture.format != "JPEG" or not _is_taken(data):
        return None
    try:
        rgb: npt.NDArray[np.uint8] = _decode_jpeg(data, "RGB", fastdct=False, fastupsample=False, strict=True)
    except Exception:  # what is wrong with the file, if anything, is Pillow's to say
        return None
    if rgb.shape != (picture.height, picture.width, 3):
        return None
    rgb.flags.writeable = False
    return rgb


def damage(picture: Image.Image, data: bytes) -> str | None:
    """What libjpeg-turbo says of compressed data that do not make up a picture, which it decodes all the same.

    Pillow does not tell, simplejpeg does: None without it, and for intact pictures. The picture is decoded at an eighth
    of its size, which takes half of the time.
    """
    if _decode_jpeg is None:
        return None
    space = "CMYK" if picture.mode == "CMYK" else "GRAY"
    try:
        _decode_jpeg(data, space, fastdct=True, fastupsample=True, min_height=1, min_width=1, min_factor=8, strict=True)
    except Exception as error:
        return str(error) if _DAMAGE.search(str(error)) else None
    return None


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


def _is_taken(data: bytes) -> bool:
    try:
        scan_start = _scan_start(data)
    except struct.error:  # the file ends within its header
        return False
    return scan_start is not None and not _has_two_ff(data, scan_start)


def _scan_start(data: bytes) -> int | None:
    """Where the compressed data begin; None where the header is anything but one of those that this module takes."""
    position = 2
    is_frame_taken = False
    while True:
        ff, marker, length = _SEGMENT.unpack_from(data, position)
        content, position = position + _SEGMENT.size, position + 2 + length
        if ff != 0xFF or length < 2:
            return None
        if marker == _SCAN_MARKER:
            return position if is_frame_taken else None
        if marker in _FRAME_MARKERS:
            is_frame_taken = _is_frame_taken(data[content:position])
        elif marker not in _OTHER_MARKERS:
            return None


def _is_frame_taken(frame: bytes) -> bool:
    """The number of components is at offset 5; name, sampling factors and quantisation table of each follow."""
    return frame[5:6] == b"\1" or tuple(frame[7::3]) in _SAMPLINGS


def _has_two_ff(data: bytes, start: int) -> bool:
    values = np.frombuffer(data, np.uint8)[start:]
    return bool((values[1:] & values[:-1]).max(initial=0) == 0xFF)
