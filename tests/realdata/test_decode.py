"""Photos through simplejpeg, through Pillow, and through both as evaltools does it: the same bytes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from evaltools.errors import ImageError
from evaltools.preprocess.decode import decode_image, decode_picture, read_picture
from evaltools.preprocess.jpeg import rgb_as_pillow


@pytest.fixture(scope="module")
def files(shared: Path) -> list[Path]:
    """200 ImageNet photos and 94 of COCO."""
    found = [path for kind in ("imagenet", "coco") for path in (shared / "realdata" / kind / "images").iterdir()]
    assert len(found) >= 294
    return sorted(found)


def by_pillow(path: Path) -> npt.NDArray[np.uint8]:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def test_every_photo_is_decoded_as_by_pillow(files: list[Path]) -> None:
    different = [path.name for path in files if not np.array_equal(decode_image(path), by_pillow(path))]
    assert different == []


def test_a_photo_cut_at_a_third_and_ended_is_damaged(files: list[Path]) -> None:
    pytest.importorskip("simplejpeg", reason="no simplejpeg for this platform")
    for path in files[::10]:
        data = read_picture(path)
        with pytest.raises(ImageError, match="is damaged"):
            decode_picture(data[: len(data) // 3] + b"\xff\xd9", path.suffix)


def test_simplejpeg_decodes_nearly_all_photos(files: list[Path]) -> None:
    pytest.importorskip("simplejpeg", reason="no simplejpeg for this platform")
    left_to_pillow = []
    for path in files:
        data = read_picture(path)
        with Image.open(io.BytesIO(data)) as picture:
            rgb = rgb_as_pillow(picture, data)
        if rgb is None:
            left_to_pillow.append(path.name)
        else:
            assert np.array_equal(rgb, decode_picture(data, path.suffix)), path
    assert len(left_to_pillow) <= len(files) // 20, left_to_pillow
