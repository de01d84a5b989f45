"""Small pictures: bounded, upright, with boxes where they belong; what cannot be shown is said."""

from __future__ import annotations

import base64
import io
import random
from pathlib import Path

import pytest
from PIL import Image

from evaltools.report.page.rendering.other_files import thumbnail
from evaltools.result.section import Frame, Picture

NAN = float("nan")


def picture(name: str, *frames: Frame) -> Picture:
    return Picture("gone", name, "lost", "bad", (), frames)


@pytest.mark.parametrize(("size", "small"), [((800, 400), (320, 160)), ((100, 500), (64, 320)), ((8, 6), (8, 6))])
def test_a_picture_keeps_its_shape_within_320_pixels(
    size: tuple[int, int], small: tuple[int, int], tmp_path: Path
) -> None:
    Image.new("RGB", size, "red").save(tmp_path / "a.png")
    found = thumbnail(picture("a.png"), [tmp_path])
    assert (found.width, found.height) == small
    head, _, content = found.address.partition(",")
    assert head == "data:image/jpeg;base64"
    with Image.open(io.BytesIO(base64.b64decode(content))) as opened:
        assert opened.size == small


def test_boxes_are_cut_at_the_edges_and_those_that_are_no_boxes_are_left_out() -> None:
    frames = [
        Frame((0.25, 0.5, 0.75, 1.5), "cat"),
        Frame((-1.0, -1.0, 0.5, 0.5), "dog"),
        Frame((0.5, 0.5, 0.5, 0.9), "empty"),
        Frame((0.0, NAN, 1.0, 1.0), "no number"),
        Frame((1.2, 0.0, 1.5, 1.0), "outside"),
    ]
    found = thumbnail(picture("a.png", *frames), []).frames
    assert [tuple(placed[1:]) for placed in found] == [(50.0, 25.0, 50.0, 50.0), (0.0, 0.0, 50.0, 50.0)]


@pytest.mark.parametrize("name", ["missing.png", "a\0b.png", "folder", "x" * 9000, "../private.png", "/{}/private.png"])
def test_what_is_not_there_or_elsewhere_has_no_picture(name: str, tmp_path: Path) -> None:
    """A result may name any picture of the disk."""
    (tmp_path / "images" / "folder").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(tmp_path / "private.png")
    found = thumbnail(picture(name.format(tmp_path)), [tmp_path / "images"])
    assert (found.address, found.is_here, found.missing) == ("", False, "")


def test_what_is_no_picture_is_said(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no picture")
    found = thumbnail(picture("text.png"), [tmp_path])
    assert (found.address, found.is_here, found.missing) == ("", True, "the file is not a picture that can be read")


def test_the_first_folder_that_has_a_picture_gives_it(tmp_path: Path) -> None:
    for name, size in (("first", (4, 4)), ("second", (8, 8))):
        (tmp_path / name).mkdir()
        Image.new("RGB", size).save(tmp_path / name / "a.png")
    folders = [tmp_path / name for name in ("gone", "second", "first")]
    assert thumbnail(picture("a.png"), folders).width == 8


def test_a_picture_is_told_with_its_answers_and_boxes() -> None:
    given = Picture(
        "gone", "a.png", "2 boxes", "bad", ["scores shift by 0.1"], [Frame((0.0, 0.0, 1.0, 1.0), "cat 0.75")]
    )
    assert thumbnail(given, []).text == "a.png: 2 boxes; scores shift by 0.1; cat 0.75"


def test_damaged_exif_costs_no_picture(tmp_path: Path) -> None:
    """Cameras write such, and decoding for a model ignores all of it; of these files, some make Pillow raise."""
    exif = Image.Exif()
    exif[0x0112], exif[0x010F], exif[0x0132], exif[0x829A] = 6, "maker", "2020:01:01 00:00:00", (1, 30)
    Image.new("RGB", (40, 20)).save(tmp_path / "a.jpg", exif=exif)
    content, chance, failed = (tmp_path / "a.jpg").read_bytes(), random.Random(1), 0
    start = content.index(b"Exif") + 6
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 6)):
            damaged[start + chance.randrange(90)] = chance.choice([0, 255, chance.randrange(256)])
        (tmp_path / "a.jpg").write_bytes(damaged)
        found = thumbnail(picture("a.jpg"), [tmp_path])
        assert found.missing or {found.width, found.height} == {40, 20}
        failed += bool(found.missing)
    assert failed < 40, "where the damage lies outside of EXIF"
