"""JPEG through simplejpeg against Pillow alone: the same pixels, or the same error. Which files count as damaged."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, UnidentifiedImageError

from evaltools.errors import ImageError
from evaltools.preprocess.decode import decode_image, decode_picture
from evaltools.preprocess.jpeg import rgb_as_pillow

simplejpeg = pytest.importorskip("simplejpeg", reason="no simplejpeg for this platform")

Pixels = npt.NDArray[np.uint8]
ADOBE, JFIF = b"\xff\xee", b"\xff\xe0"
FRAME, PROGRESSIVE_FRAME, SCAN, QUANTISATION = b"\xff\xc0", b"\xff\xc2", b"\xff\xda", b"\xff\xdb"
SIZES = [(1, 1), (1, 2), (1, 9), (2, 1), (3, 17), (8, 8), (15, 16), (16, 16), (17, 33), (64, 48), (9, 200)]


def drawn(height: int, width: int, seed: int = 0) -> Pixels:
    """A colour gradient with noise, different for every size and seed."""
    generator = np.random.default_rng((height, width, seed))
    rows, columns = np.mgrid[:height, :width]
    smooth = np.stack([rows * 5, columns * 3, 255 - rows - columns], axis=2) % 256
    noisy: Pixels = np.clip(smooth + generator.integers(-40, 40, smooth.shape), 0, 255).astype(np.uint8)
    return noisy


def jpeg(pixels: Pixels, mode: str = "RGB", **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def by_pillow(data: bytes) -> Pixels | str:
    """What Pillow alone makes of a file: the pixels, or the error in evaltools' words."""
    try:
        with Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
            return np.asarray(picture.convert("RGB"))
    except UnidentifiedImageError:
        return "is not a readable JPEG picture: cannot identify image file"
    except Exception as error:
        return f"is not a readable JPEG picture: {error}"


def outcome(data: bytes, *, damaged: bool = True) -> Pixels | str:
    """What evaltools makes of a file; of a damaged one as the native tool, which takes what Pillow takes."""
    try:
        return decode_picture(data, ".jpg", damaged=damaged)
    except ImageError as error:
        return str(error)


def is_same(one: Pixels | str, other: Pixels | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one == other
    return one.shape == other.shape and bool(np.array_equal(one, other))


def never_called(*_: object, **options: object) -> Pixels:
    pytest.fail("simplejpeg was given the file")


def is_taken(data: bytes) -> bool:
    """Whether simplejpeg decodes the file."""
    with Image.open(io.BytesIO(data)) as picture:
        return rgb_as_pillow(picture, data) is not None


def assert_same(data: bytes, *, taken: bool) -> None:
    assert is_taken(data) is taken
    expected = by_pillow(data)
    assert isinstance(expected, np.ndarray)
    assert is_same(outcome(data), expected)


def segment(data: bytes, marker: bytes) -> tuple[int, int]:
    """Start and end of the first segment with that marker."""
    start = data.index(marker)
    return start, start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")


def without(data: bytes, marker: bytes) -> bytes:
    start, end = segment(data, marker)
    return data[:start] + data[end:]


def inserted(data: bytes, position: int, more: bytes) -> bytes:
    return data[:position] + more + data[position:]


def changed(data: bytes, position: int, value: int) -> bytes:
    return data[:position] + bytes([value]) + data[position + 1 :]


@pytest.mark.parametrize("quality", [1, 10, 50, 75, 95, 100])
@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
def test_every_quality_and_sampling(quality: int, subsampling: str) -> None:
    for height, width in SIZES:
        pixels = drawn(height, width, quality)
        assert_same(jpeg(pixels, quality=quality, subsampling=subsampling), taken=True)
        assert_same(jpeg(pixels, quality=quality, subsampling=subsampling, optimize=True), taken=True)


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("interval", [{"restart_marker_blocks": 1}, {"restart_marker_rows": 1}])
def test_restart_intervals(subsampling: str, interval: dict[str, Any]) -> None:
    for height, width in SIZES:
        assert_same(jpeg(drawn(height, width), subsampling=subsampling, **interval), taken=True)


@pytest.mark.parametrize("sampling", [0x11, 0x21, 0x12, 0x22, 0x41])
def test_greyscale_whatever_its_sampling_says(sampling: int) -> None:
    for height, width in SIZES:
        data = jpeg(drawn(height, width), "L", quality=90)
        assert_same(changed(data, segment(data, FRAME)[0] + 11, sampling), taken=True)


def with_component_names(data: bytes, names: bytes) -> bytes:
    """The same file with other component identifiers in the frame and in the scan."""
    frame, scan = segment(data, FRAME)[0], segment(data, SCAN)[0]
    for index, name in enumerate(names):
        data = changed(data, frame + 10 + 3 * index, name)
        data = changed(data, scan + 5 + 2 * index, name)
    return data


@pytest.mark.parametrize("names", [b"\1\2\3", b"\0\1\2", b"RGB", b"rgb", b"\1\2\1", b"\x22\x23\x24"])
@pytest.mark.parametrize("marker", ["JFIF", "none", "Adobe 0", "Adobe 1", "Adobe 2", "JFIF and Adobe 0"])
def test_how_colours_are_stored(names: bytes, marker: str) -> None:
    data = with_component_names(jpeg(drawn(33, 20), subsampling="4:4:4"), names)
    if "JFIF" not in marker:
        data = without(data, JFIF)
    if "Adobe" in marker:
        data = inserted(
            data, segment(data, QUANTISATION)[0], ADOBE + b"\0\x0eAdobe\0d\0\0\0\0" + bytes([int(marker[-1])])
        )
    assert is_same(outcome(data), by_pillow(data))


def test_colours_stored_as_red_green_and_blue() -> None:
    assert_same(jpeg(drawn(40, 30), keep_rgb=True, subsampling="4:4:4"), taken=True)


def test_coarse_quantisation_tables_of_16_bits() -> None:
    data = jpeg(drawn(40, 30), qtables=[[300 + 9 * index for index in range(64)], [700] * 64])
    start = segment(data, QUANTISATION)[0]
    assert data[start + 4] >> 4 == 1
    assert_same(data, taken=True)


def test_metadata_of_every_kind() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = jpeg(drawn(20, 30), exif=exif, icc_profile=bytes(70_000), comment=b"\xff\xda\xff\xd9\xff\xff")
    assert_same(data, taken=True)


def test_of_several_pictures_in_a_row_the_first_counts() -> None:
    first, second = jpeg(drawn(20, 30)), jpeg(drawn(40, 50))
    assert_same(first + second, taken=True)
    assert_same(first + b"\0" * 5000 + second, taken=True)
    assert is_same(outcome(first + second), by_pillow(first))


def test_the_result_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    data = jpeg(drawn(8, 8))
    assert not decode_picture(data, ".jpg").flags.writeable
    monkeypatch.setattr("evaltools.preprocess.jpeg._decode_jpeg", None)
    assert not decode_picture(data, ".jpg").flags.writeable


def cut_after_scans(data: bytes, count: int) -> bytes:
    """A progressive file that ends, correctly, after its first scans."""
    position, end = 0, len(data)
    for _ in range(count + 1):
        position = data.find(SCAN, position) + 2
        if position == 1:
            return data
        end = position - 2
    return data[:end] + b"\xff\xd9"


def test_progressive_pictures_are_left_to_pillow() -> None:
    for height, width in SIZES:
        data = jpeg(drawn(height, width), progressive=True)
        assert PROGRESSIVE_FRAME in data
        assert_same(data, taken=False)
        for count in range(1, 10):
            assert_same(cut_after_scans(data, count), taken=False)


@pytest.mark.parametrize("sampling", ["440", "411"])
def test_rare_samplings_are_left_to_pillow(sampling: str) -> None:
    assert_same(simplejpeg.encode_jpeg(drawn(37, 45), colorsubsampling=sampling), taken=False)


@pytest.mark.parametrize("adobe", [True, False])
def test_cmyk_is_left_to_pillow(monkeypatch: pytest.MonkeyPatch, adobe: bool) -> None:
    data = jpeg(drawn(33, 20), "CMYK")
    data = data if adobe else without(data, ADOBE)
    assert not is_taken(data)
    decoded = outcome(data)
    assert isinstance(decoded, np.ndarray)
    monkeypatch.setattr("evaltools.preprocess.jpeg._decode_jpeg", None)
    assert is_same(decoded, outcome(data))


@pytest.mark.parametrize("marker", [0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCD, 0xCF])
def test_other_kinds_of_compression(monkeypatch: pytest.MonkeyPatch, marker: int) -> None:
    """The name of the kind alone is changed: what Pillow makes of that, or says about it, stays."""
    if marker != 0xC1:  # sequential, too
        monkeypatch.setattr("evaltools.preprocess.jpeg._decode_jpeg", never_called)
    for mode in ("RGB", "L"):
        data = jpeg(drawn(24, 24), mode)
        data = changed(data, segment(data, FRAME)[0] + 1, marker)
        assert is_same(outcome(data), by_pillow(data))


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (4, 12),
        (4, 16),
        (4, 2),
        (9, 2),
        (9, 4),
        (9, 5),
        (9, 0),
        (5, 0),
        (6, 0),
        (6, 25),
        (8, 200),
        (11, 0x31),
        (11, 0x14),
    ],
)
def test_frames_that_say_other_than_the_data(offset: int, value: int) -> None:
    """Precision, number of components, height, width and sampling are changed."""
    data = jpeg(drawn(24, 24))
    data = changed(data, segment(data, FRAME)[0] + offset, value)
    assert is_same(outcome(data), by_pillow(data))


@pytest.mark.parametrize("options", [{}, {"subsampling": "4:4:4"}, {"restart_marker_blocks": 2}, {"progressive": True}])
def test_files_cut_anywhere(options: dict[str, Any]) -> None:
    data = jpeg(drawn(19, 25), **options)
    for length in range(len(data)):
        assert is_same(outcome(data[:length]), by_pillow(data[:length])), length


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The file with bits flipped, bytes replaced, put in or left out, or its end cut off."""
    result = bytearray(data)
    first = data.index(SCAN) if chance.random() < 0.5 else 2
    position = chance.randrange(first, len(data))
    kind = chance.choice(["flip", "flip", "replace", "marker", "insert", "delete", "cut"])
    if kind == "flip":
        for _ in range(chance.randint(1, 3)):
            result[chance.randrange(first, len(data))] ^= 1 << chance.randrange(8)
    elif kind == "replace":
        result[position] = chance.choice([0x00, 0xD0, 0xD9, 0xDA, 0xFF, chance.randrange(256)])
    elif kind == "marker":
        result[position:position] = bytes([0xFF, chance.choice([0x00, 0xD0, 0xD9, 0xDA, 0xC0, 0xC4, 0xE1, 0xFF])])
    elif kind == "insert":
        result[position:position] = chance.randbytes(chance.randint(1, 4))
    elif kind == "delete":
        del result[position : position + chance.randint(1, 5)]
    else:
        del result[position:]
    return bytes(result)


def read_by_pillow_in_parts(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Pillow reads 65536 bytes at a time, so that where the parts end matters in large files only."""
    monkeypatch.setattr("PIL.ImageFile.MAXBLOCK", size)


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_files_damaged_at_random(monkeypatch: pytest.MonkeyPatch, mode: str, subsampling: str) -> None:
    chance = random.Random(f"{mode} {subsampling}")
    pictures = [
        jpeg(drawn(40, 56), mode, quality=95, subsampling=subsampling),
        jpeg(drawn(90, 100), mode, quality=98, subsampling=subsampling),
        jpeg(drawn(40, 56), mode, quality=80, subsampling=subsampling, restart_marker_blocks=3),
        jpeg(drawn(40, 56), mode, quality=60, subsampling=subsampling, progressive=True),
    ]
    seen: Counter[str] = Counter()
    for _ in range(250):
        data = damaged(chance.choice(pictures), chance)
        for size in (65536, chance.randint(600, 9000)):
            read_by_pillow_in_parts(monkeypatch, size)
            expected = by_pillow(data)
            assert is_same(outcome(data), expected), data.hex()
            seen["refused" if isinstance(expected, str) else "taken" if is_taken(data) else "left to Pillow"] += 1
    assert min(seen["refused"], seen["taken"], seen["left to Pillow"]) > 50


def test_doubled_ff_where_pillow_reads_the_next_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """There libjpeg-turbo makes something else of them than it does with the whole file at hand."""
    data = jpeg(drawn(120, 120), quality=98, subsampling="4:4:4")
    read_by_pillow_in_parts(monkeypatch, 8192)
    differing = 0
    position = data.index(b"\xff\0", segment(data, SCAN)[1])
    while 0 < position < 4 * 8192:
        doubled = inserted(data, position, b"\xff")
        expected = by_pillow(doubled)
        assert is_same(outcome(doubled), expected)
        differing += not is_same(simplejpeg.decode_jpeg(doubled, "RGB", strict=False), expected)
        position = data.find(b"\xff\0", position + 2)
    assert differing > 0


KINDS: list[tuple[str, dict[str, Any]]] = [
    ("RGB", {}),
    ("L", {}),
    ("CMYK", {}),
    ("RGB", {"progressive": True}),
    ("RGB", {"restart_marker_blocks": 2}),
    ("RGB", {"optimize": True, "subsampling": "4:4:4"}),
]
END = b"\xff\xd9"


@pytest.mark.parametrize(("mode", "options"), KINDS)
def test_a_picture_cut_and_ended_is_damaged_unless_the_native_tool_is_imitated(
    mode: str, options: dict[str, Any]
) -> None:
    data = jpeg(drawn(120, 160), mode, quality=95, **options)
    cut = data[: len(data) // 3] + END
    assert outcome(cut, damaged=False) == (
        "is damaged, says libjpeg-turbo: Corrupt JPEG data: premature end of data segment"
    )
    grey_below = outcome(cut)
    assert isinstance(grey_below, np.ndarray)
    assert grey_below.shape == (120, 160, 3)


def test_bytes_that_are_no_code_are_damage() -> None:
    """No Huffman code of the standard tables has only ones in all of its 16 bits.

    libjpeg-turbo looks for that in progressive pictures, and elsewhere near the end only.
    """
    data = jpeg(drawn(24, 24), "L", quality=95)
    middle = (segment(data, SCAN)[1] + len(data)) // 2
    assert "bad Huffman code" in str(outcome(inserted(data, middle, b"\xff\0" * 8), damaged=False))


@pytest.mark.parametrize("marker", [0xD3, 0xD5])
def test_a_restart_marker_out_of_order_is_damage(marker: int) -> None:
    data = jpeg(drawn(64, 64), restart_marker_rows=1)
    position = data.index(b"\xff\xd0", segment(data, SCAN)[1])
    assert "instead of RST" in str(outcome(changed(data, position + 1, marker), damaged=False))


@pytest.mark.parametrize(("mode", "options"), KINDS)
def test_odd_pictures_whose_pixels_are_whole_count(mode: str, options: dict[str, Any]) -> None:
    """Bytes before and behind the end marker, an unknown revision of JFIF, EXIF that makes no sense."""
    data = jpeg(drawn(120, 160), mode, exif=b"Exif\0\0nothing", **options)
    whole = outcome(data, damaged=False)
    assert isinstance(whole, np.ndarray)
    odd = [data[:-2] + b"\x12\x34\x56" + END, data + bytes(500), data + data]
    if JFIF in data:
        odd.append(changed(data, data.index(b"JFIF\0") + 5, 9))
    for each in odd:
        assert is_same(outcome(each, damaged=False), whole)


def test_sizes_are_checked_before_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.preprocess.jpeg._decode_jpeg", never_called)
    data = jpeg(drawn(40, 30))
    with monkeypatch.context() as patch:
        patch.setattr("evaltools.preprocess.decode._MAX_COMPONENT_COUNT", 3 * 1200)
        assert outcome(data) == "is too large: 30x40x3, at most 2^29 values are decoded"
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 500)
    assert outcome(data) == by_pillow(data)
    assert "exceeds limit of 1000 pixels" in str(outcome(data))


def test_without_simplejpeg_pillow_decodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("evaltools.preprocess.jpeg._decode_jpeg", None)
    for mode in ("RGB", "L"):
        data = jpeg(drawn(24, 16), mode)
        (tmp_path / "a.jpg").write_bytes(data)
        assert_same(data, taken=False)
        assert is_same(decode_image(tmp_path / "a.jpg"), by_pillow(data))


def test_where_simplejpeg_is_not_installed() -> None:
    code = (
        "import sys\n"
        "sys.modules['simplejpeg'] = None\n"
        "from evaltools.preprocess import jpeg\n"
        "assert jpeg._decode_jpeg is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
