"""Image file -> RGB bytes, as the native tools decode them.

The native tool reads baseline and progressive JPEG with libjpeg-turbo (slow integer DCT, fancy upsampling) and ignores
EXIF orientation and ICC profiles. Pillow uses the same decoder with the same settings, and so does simplejpeg, which is
faster and decodes where it gives the same bytes (see :mod:`evaltools.preprocess.jpeg`). Beyond native: PNG is read, and
greyscale, palette, transparent, CMYK and 16-bit pictures have a stated rule each (see :func:`decode_picture`).

Reading and decoding are steps of their own, so that their times can be separated: :func:`read_picture` and
:func:`decode_picture`; :func:`decode_image` does both.
"""

from __future__ import annotations

import io
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from PIL import Image, ImageOps, UnidentifiedImageError

from evaltools.errors import ImageError
from evaltools.file_content import DATA_BYTES, Unreadable, content_of, opened, require_unpacked
from evaltools.preprocess.jpeg import damage, least_bytes, rgb_as_pillow

RgbImage = npt.NDArray[np.uint8]

_MAX_COMPONENT_COUNT: Final = 1 << 29
"""The native decoder refuses pictures with width * height * components at or above this."""
_NO_MEMORY: Final = "there is not enough memory to decode it"
_ORIENTATION_TAG: Final = 0x0112
_READING_A_HEADER: Final = threading.Lock()


class PictureHeader(Struct, frozen=True):
    """Width and height in pixels as stored; ``is_rotated`` where EXIF asks viewers to turn or mirror the picture.

    ``has_alpha``: it says how transparent its places are.
    """

    width: int
    height: int
    is_rotated: bool
    has_alpha: bool = False


def decode_image(path: Path, height: int | None = None, width: int | None = None) -> RgbImage:
    """Read one picture as RGB: :func:`read_picture`, then :func:`decode_picture`.

    ``height`` and ``width`` are needed for ``.rgb8`` files only, which carry no size of their own.

    Returns an array ``(H, W, 3)`` of uint8, rows from top to bottom.

    Raises :class:`ImageError` for a file that is unreadable, truncated, too large, or no picture.

    >>> import tempfile
    >>> picture = Path(tempfile.mkdtemp()) / "grey.png"
    >>> Image.new("L", (4, 2), 7).save(picture)
    >>> decode_image(picture).shape, int(decode_image(picture)[0, 0, 2])
    ((2, 4, 3), 7)
    """
    return decode_picture(read_picture(path), path.suffix, height, width, path)


def read_picture(path: Path) -> bytes:
    """The bytes of a picture file, for :func:`decode_picture`.

    Raises :class:`ImageError` for a file that is missing, unreadable, not a regular file, larger than 2^30 bytes, or of
    an extension that is not decoded.
    """
    if path.suffix.lower() != ".rgb8":
        _decoder(path.suffix.lower())
    try:
        return content_of(path, DATA_BYTES)
    except Unreadable as error:
        raise ImageError(f"cannot be read: {error}") from error


def decode_picture(
    data: bytes,
    extension: str,
    height: int | None = None,
    width: int | None = None,
    path: Path | None = None,
    damaged: bool = False,
) -> RgbImage:
    """Decode the bytes of a picture file whose name ends in ``extension`` (``path.suffix``, in capitals or not).

    ``height`` and ``width`` are needed for ``.rgb8`` files only; ``path`` is named where a file is not a picture.
    ``damaged`` takes what libjpeg-turbo makes of JPEG data that it calls corrupt, as the native tool does.

    Returns an array ``(H, W, 3)`` of uint8, rows from top to bottom. Rules by picture kind:

    * EXIF orientation and colour profiles are ignored, as in the native tool.
    * Greyscale is repeated in the three channels. Palette pictures are looked up, transparency is dropped.
    * CMYK JPEG is converted as ``c * k / 255`` with integer division on the values that the file stores; without an
      Adobe marker as ``(255 - c) * (255 - k) / 255``.
    * 16-bit PNG keeps its high byte, ``value >> 8``.

    Raises :class:`ImageError` for bytes that are truncated, damaged, too large, or no picture of the extension's kind.

    >>> decode_picture(bytes(range(12)), ".rgb8", 2, 2)[1, 0].tolist()
    [6, 7, 8]
    """
    extension = extension.lower()
    if extension == ".rgb8":
        return _rgb8_to_rgb(data, height, width)
    decoder = _decoder(extension)
    with _opened(io.BytesIO(data), decoder, path) as picture:
        _check_size(picture, len(data))
        return decoder.to_rgb(picture, data, damaged)


def picture_header(path: Path) -> PictureHeader | None:
    """What the header of a picture states, without decoding it; None for ``.rgb8`` files, which have none.

    Raises :class:`ImageError` for a file that is unreadable, no picture, or of another kind than its name says.
    """
    extension = path.suffix.lower()
    if extension == ".rgb8":
        return None
    try:
        with opened(path) as file, _opened(file, _decoder(extension), path) as picture:
            return PictureHeader(picture.width, picture.height, _is_rotated(picture), picture.has_transparency_data)
    except Unreadable as error:
        raise ImageError(f"cannot be read: {error}") from error


def stored_values(path: Path) -> tuple[str, npt.NDArray[np.generic]]:
    """A picture's values as the file has them, such as the numbers of a palette, and Pillow's mode, which says what.

    Raises :class:`ImageError` as :func:`decode_image` does.
    """
    data, decoder = read_picture(path), _decoder(path.suffix.lower())
    with _opened(io.BytesIO(data), decoder, path) as picture:
        _check_size(picture, len(data))
        return picture.mode, np.asarray(picture)


def preview(path: Path, side: int) -> Image.Image:
    """A picture as viewers show it, turned as EXIF says, in RGB and at most ``side`` pixels wide and high.

    Damaged EXIF turns nothing. Raises :class:`ImageError` as :func:`decode_image` does.
    """
    data, decoder = read_picture(path), _decoder(path.suffix.lower())
    with _opened(io.BytesIO(data), decoder, path) as picture:
        _check_size(picture, len(data))
        picture.draft("RGB", (2 * side, 2 * side))
        try:
            with _without_warnings():
                turned = ImageOps.exif_transpose(picture)
        except Exception:  # struct.error, TypeError, SyntaxError, ...
            turned = picture
        small = turned.convert("RGB")
    small.thumbnail((side, side))
    return small


def _is_rotated(picture: Image.Image) -> bool:
    """Whether EXIF before the pixels says so; damaged EXIF, which decoding ignores, says nothing."""
    try:
        with _without_warnings():
            # A PNG's own getexif() decodes the picture.
            orientation = Image.Image.getexif(picture).get(_ORIENTATION_TAG)
    except Exception:  # Pillow raises SyntaxError, struct.error, KeyError, ...
        return False
    return orientation in range(2, 9)


@contextmanager
def _opened(source: BinaryIO | io.FileIO, decoder: _Decoder, path: Path | None) -> Iterator[Image.Image]:
    try:
        with _without_warnings():
            picture = Image.open(source, formats=[decoder.pillow_format])
        with picture:
            yield picture
    except ImageError:
        raise
    except MemoryError as error:
        raise ImageError(_NO_MEMORY) from error
    except UnidentifiedImageError as error:  # Pillow's text names the object that it read from
        name = "" if path is None else f" {os.fspath(path)!r}"
        raise ImageError(f"{decoder.unreadable}: cannot identify image file{name}") from error
    except Exception as error:  # Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error, ...
        raise ImageError(f"{decoder.unreadable}: {error}") from error


@contextmanager
def _without_warnings() -> Iterator[None]:
    """While a header is read, Pillow warns about metadata, which is ignored, and about sizes below our own limit.

    Filters of warnings are those of the whole process, so one thread at a time.
    """
    with _READING_A_HEADER, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _decoder(extension: str) -> _Decoder:
    if extension not in _DECODERS:
        raise ImageError(
            f"extension {extension or '(none)'!r} is not supported; use {', '.join(sorted(IMAGE_EXTENSIONS))}"
        )
    return _DECODERS[extension]


class _Decoder:
    """Which Pillow plug-in reads an extension, and how its picture, or the file's bytes, become RGB.

    The last argument of ``to_rgb`` says whether a damaged picture is taken.
    """

    def __init__(self, pillow_format: str, to_rgb: Callable[[Image.Image, bytes, bool], RgbImage]) -> None:
        self.pillow_format: Final = pillow_format
        self.to_rgb: Final = to_rgb
        self.unreadable: Final = f"is not a readable {pillow_format} picture"


def _check_size(picture: Image.Image, file_bytes: int) -> None:
    components = len(picture.getbands())
    if picture.width * picture.height * components >= _MAX_COMPONENT_COUNT:
        message = f"is too large: {picture.width}x{picture.height}x{components}, at most 2^29 values are decoded"
        raise ImageError(message)
    try:
        require_unpacked(picture.width * picture.height * components, file_bytes)
    except Unreadable as error:
        raise ImageError(f"is too large: {picture.width}x{picture.height}x{components}; {error}") from error


def _jpeg_to_rgb(picture: Image.Image, data: bytes, damaged: bool) -> RgbImage:
    least = least_bytes(data)
    if len(data) < least:
        raise ImageError(
            f"is damaged: it states {picture.width}x{picture.height} pixels, which take {least} bytes or more, and has "
            f"{len(data)}"
        )
    rgb = rgb_as_pillow(picture, data)
    if rgb is not None:
        return rgb
    reason = None if damaged else damage(picture, data)
    if reason is not None:
        raise ImageError(f"is damaged, says libjpeg-turbo: {reason}")
    return _cmyk_to_rgb(picture) if picture.mode == "CMYK" else np.asarray(picture.convert("RGB"))


def _cmyk_to_rgb(picture: Image.Image) -> RgbImage:
    """Native rule for four-component JPEG: ``c * k / 255``, with inverted values where there is no Adobe marker.

    Pillow inverts what the file stores on reading, with and without the marker.
    """
    values = np.asarray(picture).astype(np.uint16)
    if "adobe" in picture.info:
        values = np.uint16(255) - values
    rgb = values[..., :3] * values[..., 3:] // 255
    return rgb.astype(np.uint8)


def _png_to_rgb(picture: Image.Image, _data: bytes, _damaged: bool) -> RgbImage:
    if picture.mode.startswith("I"):
        high_byte = (np.asarray(picture).astype(np.uint32) >> 8).astype(np.uint8)
        return np.repeat(high_byte[..., None], 3, axis=2)
    if picture.mode == "P":
        picture = picture.convert("RGBA")
    return np.asarray(picture.convert("RGB"))


def _rgb8_to_rgb(data: bytes, height: int | None, width: int | None) -> RgbImage:
    if height is None or width is None:
        raise ImageError("is a raw .rgb8 file; its height and width must be given")
    expected = height * width * 3
    if len(data) != expected:
        message = f"has {len(data)} bytes; a raw .rgb8 picture for this model has {width}x{height}x3 = {expected} bytes"
        raise ImageError(message)
    return np.frombuffer(data, np.uint8).reshape(height, width, 3)


_JPEG: Final = _Decoder("JPEG", _jpeg_to_rgb)
_DECODERS: Final = {".jpg": _JPEG, ".jpeg": _JPEG, ".png": _Decoder("PNG", _png_to_rgb)}

IMAGE_EXTENSIONS: Final = frozenset({*_DECODERS, ".rgb8"})
"""File name endings (lower case) that :func:`decode_image` reads."""
