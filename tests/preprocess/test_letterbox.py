"""Pictures on a canvas of another shape: where they lie, what the canvas holds, boxes there and back."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from evaltools.errors import ImageError
from evaltools.preprocess import ImageToTensor, PictureHeader, decode_image, picture_header
from evaltools.preprocess.resize import legacy_bilinear
from evaltools.preprocess.tensor import Letterbox, Placement

SIZES = [(480, 640), (640, 480), (333, 500), (1, 1), (7, 3000), (3000, 7), (320, 320), (427, 640), (100, 101)]
CANVASES = [(320, 320), (416, 416), (256, 384), (384, 256), (1, 1), (5, 640)]


def noise(height: int, width: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(height * 7919 + width).integers(0, 256, (height, width, 3), dtype=np.uint8)


def letterboxed(image: npt.NDArray[np.uint8], dtype: str, letterbox: Letterbox) -> npt.NDArray[Any]:
    to_tensor = ImageToTensor(32, 48, np.dtype(dtype), crop_fraction=None, letterbox=letterbox)
    canvas: npt.NDArray[Any] = to_tensor(image)[0]
    return canvas


@pytest.mark.parametrize(
    ("size", "centered", "at_the_corner"),
    [
        ((640, 480), (0, 40, 320, 240), (0, 0, 320, 240)),  # portrait
        ((480, 640), (40, 0, 240, 320), (0, 0, 240, 320)),  # landscape
        ((50, 50), (0, 0, 320, 320), (0, 0, 320, 320)),  # square, made larger
        ((333, 500), (53, 0, 213, 320), (0, 0, 213, 320)),  # 213.12; the odd pixel lies below
        ((3, 3000), (159, 0, 1, 320), (0, 0, 1, 320)),  # 0.32 is one pixel still
        ((3000, 3), (0, 159, 320, 1), (0, 0, 320, 1)),
    ],
)
def test_places_worked_out_by_hand(
    size: tuple[int, int], centered: tuple[int, int, int, int], at_the_corner: tuple[int, int, int, int]
) -> None:
    assert Letterbox().place(*size, 320, 320) == Placement(*centered, 320, 320)
    assert Letterbox("top_left").place(*size, 320, 320) == Placement(*at_the_corner, 320, 320)


@pytest.mark.parametrize("canvas", CANVASES)
@pytest.mark.parametrize("size", SIZES)
def test_one_side_fits_the_other_keeps_the_ratio_and_margins_are_even(
    size: tuple[int, int], canvas: tuple[int, int]
) -> None:
    place = Letterbox().place(*size, *canvas)
    ratio = min(Fraction(canvas[0], size[0]), Fraction(canvas[1], size[1]))
    for inner, outer, side, before in (
        (place.height, canvas[0], size[0], place.top),
        (place.width, canvas[1], size[1], place.left),
    ):
        assert 1 <= inner <= outer
        assert inner == 1 or abs(inner - side * ratio) <= Fraction(1, 2)
        assert 0 <= outer - inner - before - before <= 1
    assert place.height == canvas[0] or place.width == canvas[1]
    corner = Letterbox("top_left").place(*size, *canvas)
    assert (corner.top, corner.left) == (0, 0)
    assert (corner.height, corner.width) == (place.height, place.width)


@pytest.mark.parametrize("anchor", ["center", "top_left"])
@pytest.mark.parametrize("size", SIZES)
def test_boxes_there_and_back(size: tuple[int, int], anchor: str) -> None:
    place = Letterbox(anchor=anchor).place(*size, 320, 416)  # type: ignore[arg-type]
    boxes = np.random.default_rng(1).uniform(-0.2, 1.2, (20, 4)).astype(np.float32)
    there = [
        [
            (place.top + float(top) * place.height) / 320,
            (place.left + float(left) * place.width) / 416,
            (place.top + float(bottom) * place.height) / 320,
            (place.left + float(right) * place.width) / 416,
        ]
        for top, left, bottom, right in boxes
    ]
    back = place.to_picture(np.array(there, np.float32))
    assert back.dtype == np.float32
    # float32 of a share of the canvas, times how much smaller the picture is
    tolerance = 2e-7 * max(320 / place.height, 416 / place.width)
    np.testing.assert_allclose(back, boxes, rtol=0, atol=tolerance)


@pytest.mark.parametrize("anchor", ["center", "top_left"])
@pytest.mark.parametrize("size", [(64, 64), (40, 120), (120, 40)])
def test_what_lies_on_the_canvas_is_found_in_the_picture(size: tuple[int, int], anchor: str) -> None:
    """A white rectangle in a black picture, looked up on the canvas by its colour."""
    picture = np.zeros((*size, 3), np.uint8)
    top, left, bottom, right = size[0] // 4, size[1] // 8, size[0] // 2, size[1] // 2
    picture[top:bottom, left:right] = 255
    to_tensor = ImageToTensor(320, 320, np.dtype("uint8"), crop_fraction=None, letterbox=Letterbox(anchor=anchor))  # type: ignore[arg-type]
    rows, columns = np.nonzero(to_tensor(picture)[0, :, :, 0] > 127)  # type: ignore[operator]
    on_canvas = np.array([[rows.min(), columns.min(), rows.max() + 1, columns.max() + 1]]) / 320
    place = to_tensor.placement(*size)
    assert place is not None
    found = place.to_picture(on_canvas.astype(np.float32))[0]
    expected = [top / size[0], left / size[1], bottom / size[0], right / size[1]]
    assert found.tolist() == pytest.approx(expected, abs=0.8 / min(size))


@pytest.mark.parametrize(("dtype", "filled"), [("float32", (114 - 127.5) / 127.5), ("uint8", 114), ("int8", -14)])
def test_the_rest_of_the_canvas_is_filled(dtype: str, filled: float) -> None:
    canvas = letterboxed(noise(64, 32), dtype, Letterbox())
    assert canvas.shape == (32, 48, 3)
    assert np.unique(np.concatenate([canvas[:, :16], canvas[:, 32:]])).tolist() == pytest.approx([filled])
    assert len(np.unique(canvas[:, 16:32])) > 50


@pytest.mark.parametrize("anchor", ["center", "top_left"])
@pytest.mark.parametrize("size", [(64, 32), (50, 300), (9, 11), (32, 48)])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int8"])
def test_the_picture_is_resized_as_any_other_to_its_part(dtype: str, size: tuple[int, int], anchor: str) -> None:
    letterbox = Letterbox(anchor=anchor)  # type: ignore[arg-type]
    place = letterbox.place(*size, 32, 48)
    pixels = legacy_bilinear(noise(*size), place.height, place.width)
    converted = {
        "float32": (pixels - np.float32(127.5)) * np.float32(1 / 127.5),
        "uint8": np.floor(pixels).astype(np.uint8),
        "int8": np.trunc(pixels - np.float32(128)).astype(np.int8),
    }[dtype]
    canvas = letterboxed(noise(*size), dtype, letterbox)
    assert canvas.dtype == dtype
    part = canvas[place.top : place.top + place.height, place.left : place.left + place.width]
    assert np.array_equal(part, converted)


def test_a_picture_of_the_canvas_shape_comes_out_as_without_a_letterbox() -> None:
    plain = ImageToTensor(32, 48, np.dtype("float32"), crop_fraction=None)
    assert np.array_equal(letterboxed(noise(64, 96), "float32", Letterbox()), plain(noise(64, 96))[0])
    assert plain.placement(64, 96) is None


def save(folder: Path, name: str, **options: object) -> Path:
    Image.new("RGB", (40, 30)).save(folder / name, **options)  # type: ignore[arg-type]
    return folder / name


@pytest.mark.parametrize("name", ["a.jpg", "a.JPEG", "a.png"])
def test_size_of_a_picture_as_width_and_height(tmp_path: Path, name: str) -> None:
    assert picture_header(save(tmp_path, name)) == PictureHeader(40, 30, is_rotated=False)


@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
@pytest.mark.parametrize(("orientation", "is_rotated"), [(0, False), (1, False), (2, True), (6, True), (9, False)])
def test_size_as_stored_whatever_the_orientation(tmp_path: Path, name: str, orientation: int, is_rotated: bool) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert picture_header(save(tmp_path, name, exif=exif)) == PictureHeader(40, 30, is_rotated)


def test_damaged_exif_is_no_rotation(tmp_path: Path) -> None:
    path = save(tmp_path, "a.jpg", exif=b"Exif\0\0MM\0*\0\0")
    assert picture_header(path) == PictureHeader(40, 30, is_rotated=False)
    assert decode_image(path).shape == (30, 40, 3)


def test_raw_pictures_state_no_size(tmp_path: Path) -> None:
    (tmp_path / "a.rgb8").write_bytes(bytes(12))
    assert picture_header(tmp_path / "a.rgb8") is None


@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
def test_size_needs_no_more_than_the_header(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    Image.fromarray(noise(30, 40)).save(path)
    path.write_bytes(path.read_bytes()[:-500])
    assert picture_header(path) == PictureHeader(40, 30, is_rotated=False)
    with pytest.raises(ImageError):
        decode_image(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jpg", b"", "is not a readable JPEG picture"),
        ("a.jpg", b"GIF89a", "is not a readable JPEG picture"),
        ("a.png", b"\x89PNG\r\n\x1a\n", "is not a readable PNG picture"),
        ("a.jpg", None, "cannot be read: No such file"),
        ("a.gif", b"GIF89a", r"extension '.gif' is not supported; use .jpeg, .jpg, .png, .rgb8"),
        ("a", b"", r"extension '\(none\)' is not supported"),
    ],
)
def test_files_of_which_the_size_is_unknown(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ImageError, match=message):
        picture_header(tmp_path / name)
