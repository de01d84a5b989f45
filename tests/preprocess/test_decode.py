"""Pictures of every kind, and files that are none."""

from __future__ import annotations

import io
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evaltools.errors import ImageError
from evaltools.preprocess.decode import decode_image, decode_picture, read_picture


def saved(folder: Path, name: str, picture: Image.Image, **options: object) -> Path:
    picture.save(folder / name, **options)  # type: ignore[arg-type]
    return folder / name


def test_greyscale_fills_three_channels(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.jpg", Image.new("L", (8, 8), 90))
    assert np.unique(decode_image(path)).tolist() == [90]
    assert decode_image(path).shape == (8, 8, 3)


def test_exif_orientation_is_ignored(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = saved(tmp_path, "a.JPG", Image.new("RGB", (8, 4)), exif=exif)
    assert decode_image(path).shape == (4, 8, 3)


def test_cmyk_multiplies_by_black_with_integer_division(tmp_path: Path) -> None:
    """Adobe files store inverted ink: ink 55 is stored as 200, black 105 as 150; 200 * 150 // 255 = 117."""
    path = saved(tmp_path, "a.jpg", Image.new("CMYK", (16, 16), (55, 0, 255, 105)), quality=100, subsampling=0)
    red, green, blue = decode_image(path)[8, 8].tolist()
    assert abs(red - 117) <= 1
    assert abs(green - 150) <= 1
    assert blue <= 1


def without_adobe_marker(jpeg: bytes) -> bytes:
    """The same file without its APP14 segment."""
    start = jpeg.index(b"\xff\xee")
    length = int.from_bytes(jpeg[start + 2 : start + 4], "big")
    return jpeg[:start] + jpeg[start + 2 + length :]


def test_cmyk_without_the_adobe_marker_is_inverted_first(tmp_path: Path) -> None:
    """The file stores 200 and 150; inverted 55 and 105; 55 * 105 // 255 = 22."""
    path = saved(tmp_path, "a.jpg", Image.new("CMYK", (16, 16), (55, 0, 255, 105)), quality=100, subsampling=0)
    path.write_bytes(without_adobe_marker(path.read_bytes()))
    red, green, blue = decode_image(path)[8, 8].tolist()
    assert abs(red - 22) <= 1
    assert green <= 1
    assert abs(blue - 105) <= 1


def test_a_pipe_is_no_picture(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jpg")
    with pytest.raises(ImageError, match="is not a regular file"):
        decode_image(tmp_path / "a.jpg")


def test_sixteen_bit_png_keeps_the_high_byte(tmp_path: Path) -> None:
    values = np.array([[0, 255, 256, 65535]], np.uint16)
    path = saved(tmp_path, "a.png", Image.fromarray(values))
    assert decode_image(path)[0, :, 0].tolist() == [0, 0, 1, 255]


def test_palette_and_transparency(tmp_path: Path) -> None:
    palette = Image.new("P", (2, 2), 1)
    palette.putpalette([0, 0, 0, 10, 20, 30])
    assert decode_image(saved(tmp_path, "p.png", palette))[0, 0].tolist() == [10, 20, 30]
    clear = Image.new("RGBA", (2, 2), (10, 20, 30, 0))
    assert decode_image(saved(tmp_path, "t.png", clear))[0, 0].tolist() == [10, 20, 30]


def test_raw_rgb(tmp_path: Path) -> None:
    path = tmp_path / "a.rgb8"
    path.write_bytes(bytes(range(12)))
    assert decode_image(path, 2, 2)[1, 0].tolist() == [6, 7, 8]
    with pytest.raises(ImageError, match="has 12 bytes; a raw .rgb8 picture for this model has 3x2x3 = 18 bytes"):
        decode_image(path, 2, 3)


def test_a_truncated_jpeg_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(buffer, "JPEG")
    path = tmp_path / "a.jpg"
    path.write_bytes(buffer.getvalue()[:-200])
    with pytest.raises(ImageError, match="is not a readable JPEG picture: image file is truncated"):
        decode_image(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"])
def test_a_file_that_is_no_picture_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(content)
    with pytest.raises(ImageError, match="is not a readable JPEG picture"):
        decode_image(path)


def test_the_ending_says_how_to_read(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.png", Image.new("RGB", (2, 2)))
    with pytest.raises(ImageError, match="extension '.gif' is not supported; use .jpeg, .jpg, .png, .rgb8"):
        decode_image(path.rename(tmp_path / "a.gif"))


def test_a_picture_beyond_the_native_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.preprocess.decode._MAX_COMPONENT_COUNT", 3 * 16)
    with pytest.raises(ImageError, match="is too large: 4x4x3"):
        decode_image(saved(tmp_path, "a.png", Image.new("RGB", (4, 4))))


@pytest.mark.parametrize("name", ["a.jpg", "a.JPEG", "a.png", "grey.jpg", "raw.rgb8"])
def test_what_was_read_is_decoded_without_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "raw.rgb8":
        path.write_bytes(bytes(range(60)))
    else:
        Image.effect_noise((5, 4), 50).convert("L" if name == "grey.jpg" else "RGB").save(path)
    expected = decode_image(path, 4, 5)
    data = read_picture(path)
    assert data == path.read_bytes()
    path.unlink()
    assert np.array_equal(decode_picture(data, path.suffix, 4, 5), expected)


def test_huge_files_are_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.touch()
    os.truncate(path, (1 << 30) + 1)
    with pytest.raises(ImageError, match=r"cannot be read: it is too large: more than 1073741824 bytes"):
        decode_image(path)


def test_a_small_file_of_many_pixels_is_not_decoded(tmp_path: Path) -> None:
    """Of one colour, 13000x13000 pixels take half a megabyte as a PNG, and half a gigabyte unpacked."""
    path = saved(tmp_path, "a.png", Image.new("1", (13000, 13000)))
    content = path.read_bytes()
    header = content.index(b"IHDR")
    chunk = content[header : header + 4 + 8] + b"\x08\x02" + content[header + 14 : header + 17]
    path.write_bytes(content[:header] + chunk + zlib.crc32(chunk).to_bytes(4, "big") + content[header + 21 :])
    with pytest.raises(ImageError, match="is too large: 13000x13000x3; it unpacks from"):
        decode_image(path)


def stating(jpeg: bytes, marker: bytes, width: int, height: int) -> bytes:
    """The same file with another size in its frame."""
    size = jpeg.index(marker) + 5
    return jpeg[:size] + height.to_bytes(2, "big") + width.to_bytes(2, "big") + jpeg[size + 4 :]


@pytest.mark.parametrize(("progressive", "marker", "bits"), [(False, b"\xff\xc0", 2), (True, b"\xff\xc2", 1)])
def test_a_jpeg_with_less_than_the_picture_that_it_states_is_damaged(
    tmp_path: Path, progressive: bool, marker: bytes, bits: int
) -> None:
    """With 4:2:0, 5000x5000 pixels are 625 * 625 blocks of brightness and twice 313 * 313 of colour."""
    path = saved(tmp_path, "a.jpg", Image.new("RGB", (16, 16)), progressive=progressive, subsampling="4:2:0")
    path.write_bytes(stating(path.read_bytes(), marker, 5000, 5000))
    least = (625 * 625 + 2 * 313 * 313) * bits // 8
    with pytest.raises(ImageError, match=f"is damaged: it states 5000x5000 pixels, which take {least} bytes or more"):
        decode_image(path)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"optimize": True}, {"restart_marker_blocks": 1}])
@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
def test_the_emptiest_picture_is_no_damaged_one(
    tmp_path: Path, mode: str, options: dict[str, bool], subsampling: str
) -> None:
    """Of one colour, at the lowest quality: nothing takes fewer bytes."""
    path = saved(tmp_path, "a.jpg", Image.new(mode, (799, 601)), quality=1, subsampling=subsampling, **options)
    assert decode_image(path).shape == (601, 799, 3)


def test_a_picture_that_memory_does_not_suffice_for_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("evaltools.preprocess.decode.rgb_as_pillow", full)
    with pytest.raises(ImageError, match="^there is not enough memory to decode it$"):
        decode_image(saved(tmp_path, "a.jpg", Image.new("RGB", (4, 4))))
