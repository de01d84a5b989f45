"""What is said of a folder of pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from evaltools.datasets.image_folder import alpha_remarks, list_images


@pytest.mark.parametrize("mode", ["RGBA", "LA", "palette"])
def test_an_alpha_channel_that_is_dropped_is_said(mode: str, tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    Image.new("RGB", (4, 4)).save(tmp_path / "b.jpg")
    (tmp_path / "c.png").write_bytes(b"no picture")
    assert list_images(tmp_path, "--images").remarks() == []
    if mode == "palette":
        Image.new("P", (4, 4)).save(tmp_path / "d.PNG", transparency=0)
    else:
        Image.new(mode, (4, 4)).save(tmp_path / "d.PNG")
    (said,) = list_images(tmp_path, "--images").remarks()
    assert said.startswith("1 of the first 4 pictures, such as 'd.PNG', have an alpha channel, which is dropped: ")


def test_a_large_folder_is_judged_by_its_first_pictures(tmp_path: Path) -> None:
    Image.new("RGBA", (4, 4)).save(tmp_path / "with.png")
    Image.new("RGB", (4, 4)).save(tmp_path / "without.png")
    many = [tmp_path / "without.png"] * 64
    assert alpha_remarks([*many, tmp_path / "with.png"]) == []
    assert alpha_remarks([tmp_path / "with.png", *many])[0].startswith("1 of the first 64 pictures")
